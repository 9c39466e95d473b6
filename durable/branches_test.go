//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

// startFunction starts a task of a function.
func startFunction[Out any](t *testing.T, e *troupe.Engine, fn durable.Func[input, Out]) (id string) {
	t.Helper()
	troupe.HandleFlow(e, "fn", fn)
	id, err := e.Start(t.Context(), "fn", input{"a"})
	require.NoError(t, err)
	return id
}

func TestBranchesRunSideBySide(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var met sync.WaitGroup
		met.Add(3)
		meet := func(v int) func(f *durable.Flow) (int, error) {
			return func(f *durable.Flow) (int, error) {
				return durable.Do(f, "meet", func(context.Context) (int, error) { met.Done(); met.Wait(); return v, nil })
			}
		}
		id := startFunction(t, e, func(f *durable.Flow, _ input) ([]int, error) {
			first := durable.Go(f, "first", meet(1))
			others, err := durable.All(f, "others", meet(2), meet(3))
			if err != nil {
				return nil, err
			}
			one, err := first.Wait(f)
			return append(others, one), err
		})
		requireResult(t, e, id, "[2,3,1]")
		page, err := e.Steps(t.Context(), id, troupe.StepQuery{})
		require.NoError(t, err)
		var names []string
		for _, step := range page.Items {
			names = append(names, step.Node)
		}
		require.ElementsMatch(t, []string{"main", "first/meet", "others/0/meet", "others/1/meet"}, names)
	})
}

func TestEachRunsAtMostSoManyAtOnce(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var busy, most, steps atomic.Int64
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			items := make([]int, 40)
			for i := range items {
				items[i] = i
			}
			squares, err := durable.Each(f, "square", items, 4, func(f *durable.Flow, k int) (int, error) {
				f.Sleep("wait", time.Millisecond)
				return durable.Do(f, "work", func(context.Context) (int, error) {
					n := busy.Add(1)
					defer busy.Add(-1)
					for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
					}
					steps.Add(1)
					if k == 7 {
						return 0, errors.New("seven")
					}
					return k * k, nil
				})
			})
			return fmt.Sprint(squares[6:9], " ", err), nil
		})
		requireResult(t, e, id, `"[36 0 64] square[7]: step square/7/work: seven"`)
		require.EqualValues(t, 40, steps.Load())
		require.LessOrEqual(t, most.Load(), int64(4))
	})
}

// TestManyBranchesWaitAtOnce has more waits at once than begin together.
func TestManyBranchesWaitAtOnce(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		id := startFunction(t, e, func(f *durable.Flow, _ input) (int, error) {
			items := make([]int, 1_000)
			naps, err := durable.Each(f, "nap", items, len(items), func(f *durable.Flow, _ int) (int, error) {
				f.Sleep("rest", time.Millisecond)
				return 1, nil
			})
			return len(naps), err
		})
		requireResult(t, e, id, "1000")
	})
}

// paidOrLate returns the signal that came in time, or "late".
func paidOrLate(f *durable.Flow, limit time.Duration) (string, error) {
	_, v, err := durable.Race(f, "paid or late",
		func(f *durable.Flow) (string, error) { return durable.Signal[string](f, "paid") },
		func(f *durable.Flow) (string, error) { f.Sleep("limit", limit); return "late", nil })
	return v, err
}

func TestRaceOfASignalAndATimerHasOneWinner(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			first, err := paidOrLate(f, time.Hour)
			if err != nil {
				return "", err
			}
			second, err := paidOrLate(f, time.Millisecond)
			if err != nil {
				return "", err
			}
			third, err := durable.Signal[string](f, "paid")
			return first + " " + second + " " + third, err
		})
		require.Eventually(t, func() bool {
			w, err := e.Waiting(t.Context(), id)
			return err == nil && len(w.Waits) == 2
		}, patience, 5*time.Millisecond)
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`"one"`)))
		require.Eventually(t, func() bool { // the timer of the first race and the signal of the second are withdrawn
			w, err := e.Waiting(t.Context(), id)
			return err == nil && len(w.Waits) == 1 && w.Waits[0].Node == "paid"
		}, patience, 5*time.Millisecond)
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`"three"`)))
		requireResult(t, e, id, `"one late three"`)
	})
}

// TestWaitOfABranchEndsWhileAnotherGoesOn lets a signal win a race against a step that runs until
// its context ends.
func TestWaitOfABranchEndsWhileAnotherGoesOn(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, stopped := open(), make(chan struct{})
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			winner, v, err := durable.Race(f, "done or stopped",
				func(f *durable.Flow) (string, error) {
					return durable.Do(f, "work", func(ctx context.Context) (string, error) {
						<-ctx.Done()
						close(stopped)
						return "", ctx.Err()
					})
				},
				func(f *durable.Flow) (string, error) { return durable.Signal[string](f, "stop") })
			return strconv.Itoa(winner) + " " + v, err
		})
		require.Eventually(t, func() bool { // the job of the function is the other one
			w, err := e.Waiting(t.Context(), id)
			return err == nil && len(w.Waits) == 2 && w.Waits[1].Kind == "signal"
		}, patience, 5*time.Millisecond)
		require.NoError(t, e.Signal(t.Context(), id, "stop", json.RawMessage(`"now"`)))
		requireResult(t, e, id, `"1 now"`)
		<-stopped
	})
}

func TestBranchesAreUndoneNewestFirst(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var mu sync.Mutex
		var undone []string
		book := func(f *durable.Flow, name string) error {
			err := f.Do("book", func(context.Context) error { return nil })
			f.Undo("cancel", func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				undone = append(undone, name)
				return nil
			})
			return err
		}
		id := startFunction(t, e, func(f *durable.Flow, _ input) (string, error) {
			if _, err := durable.All(f, "trip",
				func(f *durable.Flow) (string, error) { return "", book(f, "hotel") },
				func(f *durable.Flow) (string, error) {
					f.Sleep("later", 10*time.Millisecond)
					return "", book(f, "flight")
				}); err != nil {
				return "", err
			}
			if _, _, err := durable.Race(f, "car",
				func(f *durable.Flow) (string, error) { return "", book(f, "small car") },
				func(f *durable.Flow) (string, error) {
					if err := book(f, "large car"); err != nil {
						return "", err
					}
					return durable.Signal[string](f, "never")
				}); err != nil {
				return "", err
			}
			return "", f.Do("pay", func(context.Context) error { return errors.New("no money") })
		})
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskFailed, result.Status)
		require.Equal(t, []string{"flight", "hotel"}, undone[len(undone)-2:])
		require.ElementsMatch(t, []string{"small car", "large car"}, undone[:len(undone)-2])
	})
}

func TestCanceledBranchesAreUndone(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var undone atomic.Int64
		id := startFunction(t, e, func(f *durable.Flow, _ input) (int, error) {
			items := []int{0, 1, 2}
			_, err := durable.Each(f, "room", items, 3, func(f *durable.Flow, k int) (int, error) {
				if err := f.Do("book", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				f.Undo("cancel", func(context.Context) error { undone.Add(1); return nil })
				winner, _, err := durable.Race(f, "answer",
					func(f *durable.Flow) (bool, error) { return durable.Signal[bool](f, fmt.Sprint("yes ", k)) },
					func(f *durable.Flow) (bool, error) { return durable.Signal[bool](f, fmt.Sprint("no ", k)) })
				return winner, err
			})
			return 0, err
		})
		require.Eventually(t, func() bool {
			w, err := e.Waiting(t.Context(), id)
			return err == nil && len(w.Waits) == 6
		}, patience, 5*time.Millisecond)
		require.NoError(t, e.Cancel(t.Context(), id))
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskCanceled, result.Status)
		require.EqualValues(t, 3, undone.Load())
	})
}

// manyItems is the number of items of packItems.
const manyItems = 10_000

// packItems packs many items, 50 at a time.
func (s *setup) packItems(f *durable.Flow, in input) (sum int, err error) {
	items := make([]int, manyItems)
	for i := range items {
		items[i] = i
	}
	packed, err := durable.Each(f, "pack", items, 50, func(f *durable.Flow, k int) (int, error) {
		n, err := durable.Do(f, "wrap", func(context.Context) (int, error) {
			s.addLine("wrap", in.Name, strconv.Itoa(k))
			s.reachPoint(in.Name, "in", k)
			return k, nil
		})
		s.reachPoint(in.Name, "after", k)
		return n, err
	})
	for _, n := range packed {
		sum += n
	}
	return sum, err
}

// TestItemsThatAreRecordedAreNotRepeated kills the program three times within an Each.
func TestItemsThatAreRecordedAreNotRepeated(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Tasks: []string{startTask(t, store, "pack", "a")}}
		s.Kills = []string{"a-in-1000", "a-after-4000", "a-in-9000"}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, len(s.Kills)+1, programs)
		require.Contains(t, said, fmt.Sprint("completed ", manyItems*(manyItems-1)/2))
		lines := readLedger(t, s.Dir)
		packed := map[string]bool{}
		for _, line := range lines {
			packed[line[2]] = true
		}
		require.Len(t, packed, manyItems)
		require.LessOrEqual(t, len(lines), manyItems+len(s.Kills)*50, "only items that were cut off run again")
	})
}
