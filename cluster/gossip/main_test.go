package gossip

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A probe of another member outlives the shutdown until its own time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}
