package sim

import (
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runInBubble returns the result of a run with functions. One processor keeps their goroutines in
// the same order, as far as they are not preempted.
func runInBubble(t *testing.T, seed uint64, o Options) (r Result) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	o.Code = true
	synctest.Test(t, func(*testing.T) {
		r = Run(seed, o)
		time.Sleep(time.Hour) // timers of the actors' library
	})
	return r
}

// performCode runs the seeds with functions.
func performCode(t *testing.T, o Options, few, share uint64) {
	first, n := seeds(t, few, share)
	o.Stacks = n == 1
	failed, began, sum := 0, time.Now(), CodeCounts{}
	for seed := first; seed < first+n && failed < failures; seed++ {
		r := runInBubble(t, seed, o)
		sum.addCounts(&r.Code)
		if r.Err != nil {
			failed++
			report(t, seed, r)
		}
	}
	t.Logf("%d seeds in %s: %+v", n, time.Since(began).Round(time.Millisecond), sum)
}

// addCounts adds the counts of another run.
func (c *CodeCounts) addCounts(more *CodeCounts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(more).Elem()
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

func TestFunctionsWithoutFaults(t *testing.T) { performCode(t, Options{Plain: true}, 20, 10) }

func TestFunctionsUnderFaults(t *testing.T) { performCode(t, Options{}, 40, 5) }

func TestFunctionsOfClustersUnderFaults(t *testing.T) {
	performCode(t, Options{Cluster: true}, 20, 10)
}

// TestASeedGivesTheSameRunOfFunctionsAgain allows for goroutines that are preempted in between.
func TestASeedGivesTheSameRunOfFunctionsAgain(t *testing.T) {
	for name, o := range map[string]Options{"one member": {}, "a cluster": {Cluster: true}} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(max(12/fewer, 3)) {
				first, same := runInBubble(t, seed, o), false
				for try := 0; try < 5 && !same; try++ {
					again := runInBubble(t, seed, o)
					same = again.Hash == first.Hash && again.Steps == first.Steps
					first = again
				}
				require.True(t, same, "seed %d gives another run each time", seed)
			}
		})
	}
}

func TestFunctionsAreCutOffUndoneAndBegunAnew(t *testing.T) {
	var sum CodeCounts
	for seed := uint64(0); seed < 400 && !sum.isComplete(); seed++ {
		r := runInBubble(t, seed, Options{})
		sum.addCounts(&r.Code)
	}
	require.True(t, sum.isComplete(), "%+v", sum)
}

// isComplete reports whether each kind of event has been there.
func (c *CodeCounts) isComplete() bool {
	counts := reflect.ValueOf(c).Elem()
	for i := range counts.NumField() {
		if counts.Field(i).Int() == 0 {
			return false
		}
	}
	return true
}
