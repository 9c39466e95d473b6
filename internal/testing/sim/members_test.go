package sim

import (
	"testing"

	"github.com/troupe-engine/troupe/internal/testing/storetest"
)

// TestModelKeepsTheOwnershipContract checks the simulated store against the contract of every
// store about members.
func TestModelKeepsTheOwnershipContract(t *testing.T) {
	storetest.Ownership(t, newModel(newWorld(0)))
}
