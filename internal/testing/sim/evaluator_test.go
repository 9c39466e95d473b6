package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// TestTheEvaluatorAndTheCoreAgree compares both without any faults.
func TestTheEvaluatorAndTheCoreAgree(t *testing.T) {
	first, n := seeds(t, 2_000, 1)
	statuses := map[flow.TaskStatus]int{}
	for seed := first; seed < first+n; seed++ {
		p := drawDag(rand.New(rand.NewPCG(seed, 1)), true)
		limits := flow.Limits{Deliveries: endless}
		plan, err := p.compilePlan(limits)
		require.NoError(t, err, "seed %d: %s", seed, p.definition)
		s, err := runReference(p, plan, limits)
		require.NoError(t, err, "seed %d: %s", seed, p.definition)
		got := dagOutcomeOf(s)
		if p.loose {
			got.Shared = p.want.Shared
		}
		require.Equal(t, p.want, got, "seed %d: %s with %s", seed, p.definition, p.params)
		statuses[got.Status]++
	}
	t.Log(statuses)
}
