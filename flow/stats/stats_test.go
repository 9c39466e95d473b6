package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
)

// durations returns durations of all lengths, from zero to years.
func durations(rng *rand.Rand) []int64 {
	list := make([]int64, 1+rng.IntN(400))
	widest := 1 + rng.IntN(40)
	for i := range list {
		list[i] = rng.Int64N(1 << rng.IntN(widest))
	}
	return list
}

func sketchOf(list ...int64) *stats.Sketch {
	s := &stats.Sketch{}
	for _, ms := range list {
		s.Observe(ms)
	}
	return s
}

func TestQuantilesHaveAnErrorOfNinePercentAtMost(t *testing.T) {
	for seed := range uint64(500) {
		list := durations(rand.New(rand.NewPCG(seed, 0)))
		s := sketchOf(list...)
		slices.Sort(list)
		for _, percent := range []int{1, 50, 95, 99, 100} {
			exact := list[(len(list)*percent+99)/100-1]
			require.InDelta(t, exact, s.Quantile(percent), 0.09*float64(exact)+0.5, "seed %d, %d %% of %v", seed, percent, list)
		}
		require.Equal(t, list[len(list)-1], s.Max())
	}
	require.Equal(t, stats.Times{}, sketchOf().Times())
	require.Equal(t, stats.Times{P50: 7, P95: 7, P99: 7, Max: 7}, sketchOf(7).Times())
	require.Equal(t, int64(math.MaxInt64), sketchOf(-5, math.MaxInt64).Max())
}

func countsOf(rng *rand.Rand) *stats.Counts {
	c := &stats.Counts{Began: rng.Int64N(9), Skipped: rng.Int64N(9), LastFailed: "t", LastFailedAt: rng.Int64N(1 << 40)}
	for _, ms := range durations(rng) {
		c.End([]flow.TaskStatus{flow.TaskCompleted, flow.TaskFailed, flow.TaskCanceled}[rng.IntN(3)], "task", rng.Int64N(1<<41), ms)
	}
	for _, ms := range durations(rng) {
		c.Tally(&flow.Tally{What: flow.TallyClaimed, MS: ms}, "task", 0)
	}
	return c
}

// same returns the stored form of counts, which is complete.
func same(t *testing.T, c *stats.Counts) []byte {
	b := c.Append(nil)
	read, err := stats.Decode(b)
	require.NoError(t, err)
	require.Equal(t, b, read.Append(nil))
	return b
}

func TestCountsCanBeAddedInAnyOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		parts := []*stats.Counts{countsOf(rng), countsOf(rng), countsOf(rng), {}}
		var there, back, tree stats.Counts
		for i := range parts {
			there.Add(parts[i])
			back.Add(parts[len(parts)-1-i])
		}
		pair := stats.Counts{}
		pair.Add(parts[1])
		pair.Add(parts[2])
		tree.Add(parts[0])
		tree.Add(&pair)
		// The first bucket of a sketch depends on the order; its content does not.
		require.Equal(t, there.Took.Times(), back.Took.Times(), "seed %d", seed)
		require.Equal(t, same(t, &there), same(t, &back), "seed %d", seed)
		require.Equal(t, same(t, &there), same(t, &tree), "seed %d", seed)
	}
}

func TestInvalidStatisticsAreRejected(t *testing.T) {
	whole := countsOf(rand.New(rand.NewPCG(1, 1))).Append(nil)
	for n := range len(whole) / 2 {
		_, err := stats.Decode(whole[:n])
		require.Error(t, err, "the first %d bytes", n)
	}
	_, err := stats.Decode(append([]byte{9}, whole[1:]...))
	require.Error(t, err, "of another form")
}

func TestPlanScopesHaveNoVisits(t *testing.T) {
	for scope, of := range map[string]string{"": "", "sub#1": "sub", "a#2/b#3": flow.ScopeKey("a", "b"), "~2": "~"} {
		require.Equal(t, of, stats.PlanScope(scope), scope)
	}
}
