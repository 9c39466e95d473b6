//go:build !race

package sim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// caughtBy are seeds that are known to catch rare defects; the search starts there.
var caughtBy = map[string]uint64{
	"a store of schedules that heeds no revisions":    236,
	"jobs taken from whom gossip calls dead":          153,
	"losses that leave out which time they are about": 35,
}

// TestPlantedDefectsOfFunctionsAreCaught proves that the simulator finds defects of functions.
func TestPlantedDefectsOfFunctionsAreCaught(t *testing.T) {
	for name, tt := range map[string]struct {
		options Options
		first   uint64 // a seed that is known to catch it
		found   string // part of the failure
	}{
		"a recorded step that runs again":  {Options{Shortened: true}, 0, "is recorded and runs again"},
		"results of older deliveries":      {Options{Ageless: true}, 274, "while its function has delivery"},
		"results that are heard too early": {Options{Hasty: true}, 0, "not stored"},
		"undos in another order":           {Options{Shuffled: true}, 108, "behind number"},
		"waits that are lost with their task": {Options{Store: func(s persistence.Store) persistence.Store { return sleepless{s} }}, 0,
			"its columns are written as"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(1000) {
				seed := (tt.first + i) % 1000
				r := runInBubble(t, seed, tt.options)
				if r.Err != nil && strings.Contains(r.Err.Error(), tt.found) {
					t.Logf("caught by seed %d: %.300v", seed, r.Err)
					return
				}
			}
			require.Fail(t, "1000 seeds did not notice")
		})
	}
}

// TestPlantedDefectsAreCaught proves that the simulator finds defects.
func TestPlantedDefectsAreCaught(t *testing.T) {
	for name, plant := range map[string]func(seed uint64) Options{
		"a store that loses what it says is written": func(seed uint64) Options {
			rng := rand.New(rand.NewPCG(seed, 1))
			return Options{Store: func(s persistence.Store) persistence.Store { return forgetful{s, rng} }}
		},
		"a store that forgets what is to be looked after": func(seed uint64) Options {
			rng := rand.New(rand.NewPCG(seed, 1))
			return Options{Store: func(s persistence.Store) persistence.Store { return careless{s, rng} }}
		},
		"members that do not notice that their store went back": func(uint64) Options { return Options{Rewinds: true, Unseen: true} },
		"work abroad that is begun once more without a word":    func(uint64) Options { return Options{Unaware: true} },
		"a store of schedules that heeds no revisions": func(uint64) Options {
			return Options{Clock: true, Store: func(s persistence.Store) persistence.Store { return hurried{s} }}
		},
		"slots whose tasks have no keys": func(uint64) Options { return Options{Clock: true, Keyless: true} },
		"a committer that speaks before the commit": func(uint64) Options {
			later := new([]func())
			return Options{Store: func(s persistence.Store) persistence.Store { return hasty{s, later} }}
		},
		"a counter that is never told of one end": func(uint64) Options {
			return Options{Plan: func(p *flow.Plan) { forgetEdge(p, false) }}
		},
		"a counter that begins one too low": func(uint64) Options {
			return Options{Plan: func(p *flow.Plan) { forgetEdge(p, true) }}
		},
		"a gentle cancel after which jobs are still handed out": func(uint64) Options {
			return Options{Plan: func(p *flow.Plan) { p.Profile = flow.ProfilePgflow }}
		},
		"fan-outs that are not undone": func(uint64) Options {
			return Options{Plan: func(p *flow.Plan) { forgetCompensations(p.Root) }}
		},
		"tasks of flows that were deleted":                 func(uint64) Options { return Options{Orphans: true} },
		"a limit that lets one too many in":                func(uint64) Options { return Options{Generous: true} },
		"no fence against old incarnations":                func(uint64) Options { return Options{Unfenced: true} },
		"a cluster without fences":                         func(uint64) Options { return Options{Cluster: true, Unfenced: true} },
		"forwards without request ids":                     func(uint64) Options { return Options{Cluster: true, Nameless: true} },
		"losses that leave out which time they are about":  func(uint64) Options { return Options{Cluster: true, Timeless: true} },
		"sessions that go on while others have their jobs": func(uint64) Options { return Options{Fickle: true} },
		"one job more than a worker takes":                 func(uint64) Options { return Options{Greedy: true} },
		"jobs taken from whom gossip calls dead": func(uint64) Options {
			return Options{Cluster: true, Planned: true, Gullible: true}
		},
		"planned moves that repeat work": func(uint64) Options { return Options{Cluster: true, Planned: true, Oblivious: true} },
	} {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(400) {
				seed := (caughtBy[name] + i) % 400
				if r := Run(seed, plant(seed)); r.Err != nil {
					t.Logf("caught by seed %d: %.300v", seed, r.Err)
					return
				}
			}
			require.Fail(t, "400 seeds did not notice")
		})
	}
}
