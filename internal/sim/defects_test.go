package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// forgetful is a store that says "written" and now and then does not write.
type forgetful struct {
	persistence.Store
	rng *rand.Rand
}

func (f forgetful) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	if f.rng.IntN(20) == 0 {
		return make([]error, len(batch)), nil
	}
	return f.Store.Commit(ctx, incarnation, batch)
}

// careless is a store that now and then does not note what is to be looked after abroad.
type careless struct {
	persistence.Store
	rng *rand.Rand
}

func (c careless) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		if x := batch[i].Externals; x != nil && len(x.Track) > 0 && c.rng.IntN(5) == 0 {
			batch[i].Externals = nil
		}
	}
	return c.Store.Commit(ctx, incarnation, batch)
}

// hurried is a store that takes a schedule from whoever comes, whatever others have written since he read it.
type hurried struct{ persistence.Store }

func (h hurried) PutSchedule(ctx context.Context, s persistence.Schedule) error {
	if now, err := h.Schedule(ctx, s.Name); err == nil {
		s.Revision = now.Revision
	}
	return h.Store.PutSchedule(ctx, s)
}

// hasty is a store that says "written" before it writes.
type hasty struct {
	persistence.Store
	later *[]func()
}

func (h hasty) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	for _, write := range *h.later {
		write()
	}
	*h.later = []func(){func() { _, _ = h.Store.Commit(ctx, incarnation, batch) }}
	return make([]error, len(batch)), nil
}

// forgetEdge has a dag forget one of its edges: who waits for it is not told, or does not wait at all.
func forgetEdge(p *flow.Plan, both bool) {
	if p.Root.Dag == nil {
		return
	}
	for _, n := range p.Root.Dag.List {
		last := len(n.Dag.Dependents) - 1
		if last < 0 || p.Root.Dag.List[n.Dag.Dependents[last]].Kind == flow.KindOutput {
			continue
		}
		d := p.Root.Dag.List[n.Dag.Dependents[last]]
		n.Dag.Dependents = n.Dag.Dependents[:last]
		if both {
			d.Dag.Deps = slices.DeleteFunc(d.Dag.Deps, func(dep int) bool { return dep == n.Dag.Index })
		}
		return
	}
}

// TestPlantedDefectsAreCaught proves that the simulator can fail.
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
		"work abroad that is begun once more without a word": func(uint64) Options { return Options{Unaware: true} },
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
			for seed := range uint64(400) {
				if r := Run(seed, plant(seed)); r.Err != nil {
					t.Logf("caught by seed %d: %.300v", seed, r.Err)
					return
				}
			}
			require.Fail(t, "400 seeds did not notice")
		})
	}
}
