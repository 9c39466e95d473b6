package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seeds returns the seed of TROUPE_SIM_SEED, or a share of TROUPE_SIM_SEEDS seeds, or a few.
func seeds(t *testing.T, few, share uint64) (first, n uint64) {
	number := func(name string, or uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return or
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	if os.Getenv("TROUPE_SIM_SEED") != "" {
		return number("TROUPE_SIM_SEED", 0), 1
	}
	return 0, number("TROUPE_SIM_SEEDS", max(few/fewer, 1)*share) / share
}

func report(t *testing.T, seed uint64, r Result) {
	t.Helper()
	t.Errorf("seed %d: %v\nthe end of its trace:\n%s\n\nto see it again: TROUPE_SIM_SEED=%d go "+
		"test ./internal/testing/sim", seed, r.Err, strings.Join(r.Trace, "\n"), seed)
}

// failures is the maximal number of failing seeds reported.
const failures = 3

// perform runs the seeds.
func perform(t *testing.T, o Options, few, share uint64) {
	first, n := seeds(t, few, share)
	o.Stacks = n == 1
	began, steps, failed := time.Now(), 0, 0
	for seed := first; seed < first+n && failed < failures; seed++ {
		r := Run(seed, o)
		steps += r.Steps
		if r.Err != nil {
			failed++
			report(t, seed, r)
		}
	}
	t.Logf("%d seeds, %d steps in %s: %.0f seeds/s", n, steps,
		time.Since(began).Round(time.Millisecond), float64(n)/time.Since(began).Seconds())
}

func TestChainsWithoutFaults(t *testing.T) { perform(t, Options{Plain: true}, 50, 1) }

func TestSingleMemberUnderFaults(t *testing.T) { perform(t, Options{}, 200, 1) }

func TestActorsOfStepsCrashInTheMiddleOfAFanOut(t *testing.T) {
	for seed := range uint64(200) {
		if Run(seed, Options{}).Trips > 0 {
			return
		}
	}
	t.Fatal("none did in 200 seeds")
}

func TestAttachedWorkersReturnInTimeAndTooLate(t *testing.T) {
	resumed, over, passed := 0, 0, 0
	for seed := uint64(0); seed < 200 && (resumed == 0 || over == 0 || passed == 0); seed++ {
		r := Run(seed, Options{Cluster: true})
		resumed, over, passed = resumed+r.Resumed, over+r.Over, passed+r.Passed
	}
	require.Positive(t, resumed, "sessions that went on")
	require.Positive(t, over, "sessions that others had the jobs of")
	require.Positive(t, passed, "jobs for workers of other members")
}

func TestExternalWorkIsFoundAgainAndTakenOver(t *testing.T) {
	found, followed := 0, 0
	for seed := uint64(0); seed < 200 && (found == 0 || followed == 0); seed++ {
		r := Run(seed, Options{})
		found, followed = found+r.Found, followed+r.Followed
	}
	require.Positive(t, found, "who begins it once more")
	require.Positive(t, followed, "who looks after what another member has begun")
}

func TestSchedules(t *testing.T) { perform(t, Options{Clock: true}, 40, 2) }

func TestSchedulesOfClusters(t *testing.T) { perform(t, Options{Clock: true, Cluster: true}, 40, 2) }

func TestSchedulesWhileMembersJoinAndLeave(t *testing.T) {
	perform(t, Options{Clock: true, Cluster: true, Planned: true}, 20, 4)
}

func TestGossipIsWrongInEveryWay(t *testing.T) {
	for name, o := range map[string]Options{"in storms": {Cluster: true}, "while members come and go": {Cluster: true, Planned: true}} {
		t.Run(name, func(t *testing.T) {
			untold := map[string]bool{"stale": true, "empty": true}
			for _, lie := range lies {
				untold[lie.name] = true
			}
			for seed := uint64(0); seed < 200 && len(untold) > 0; seed++ {
				for lie := range Run(seed, o).Lies {
					delete(untold, lie)
				}
			}
			require.Empty(t, untold)
		})
	}
}

func TestNoTaskIsStuckAfterARewind(t *testing.T) {
	for name, o := range map[string]Options{"one member": {Rewinds: true}, "a cluster": {Rewinds: true, Cluster: true}} {
		t.Run(name, func(t *testing.T) { perform(t, o, 60, 3) })
	}
}

func TestASeedGivesTheSameRunEveryTime(t *testing.T) {
	for name, o := range map[string]Options{"one member": {}, "a cluster": {Cluster: true},
		"a cluster with planned moves":    {Cluster: true, Planned: true},
		"a cluster whose store goes back": {Cluster: true, Rewinds: true}} {
		t.Run(name, func(t *testing.T) {
			seen := map[uint64]uint64{}
			for seed := range uint64(max(12/fewer, 3)) {
				first, second := Run(seed, o), Run(seed, o)
				if first.Hash != second.Hash || first.Steps != second.Steps {
					t.Fatalf("seed %d: %d steps with hash %x, then %d with %x", seed, first.Steps, first.Hash, second.Steps, second.Hash)
				}
				if other, is := seen[first.Hash]; is {
					t.Fatalf("seeds %d and %d give the same run", other, seed)
				}
				seen[first.Hash] = seed
			}
		})
	}
}

func TestClustersWithPlannedMoves(t *testing.T) {
	perform(t, Options{Cluster: true, Planned: true}, 40, 6)
}

func TestClustersUnderFaults(t *testing.T) { perform(t, Options{Cluster: true}, 70, 3) }
