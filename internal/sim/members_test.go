package sim

import (
	"testing"

	"github.com/troupe-engine/troupe/persistence/storetest"
)

// TestMembersOfTheModelAreThoseOfAStore holds the store of the simulator to what every store has to
// do about its members.
func TestMembersOfTheModelAreThoseOfAStore(t *testing.T) {
	storetest.Ownership(t, newModel(newWorld(0)))
}
