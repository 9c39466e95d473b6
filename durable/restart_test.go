//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

// rounds is the input of a function that begins anew in each round.
type rounds struct {
	Name  string `json:"name,omitempty"`
	Round int    `json:"round,omitempty"`
	Sum   int    `json:"sum,omitempty"`
}

// payRounds adds up the numbers of ten rounds.
func (s *setup) payRounds(f *durable.Flow, in rounds) (sum int, err error) {
	n, err := durable.Do(f, "pay", func(ctx context.Context) (int, error) {
		s.addLine("pay", in.Name, strconv.Itoa(in.Round), troupe.JobFrom(ctx).Key())
		s.reachPoint(in.Name, "in", in.Round)
		return in.Round, nil
	})
	if err != nil {
		return 0, err
	}
	s.reachPoint(in.Name, "after", in.Round)
	f.Sleep("rest", 2*time.Millisecond)
	s.reachPoint(in.Name, "rested", in.Round)
	in.Sum += n
	if in.Round++; in.Round <= 10 {
		return 0, f.Restart(in)
	}
	return in.Sum, nil
}

func TestFunctionBeginsAnewDespiteKills(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Tasks: []string{startTask(t, store, "rounds", "a")}}
		s.Kills = []string{"a-in-1", "a-rested-3", "a-after-4", "a-in-5", "a-rested-10"}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, len(s.Kills)+1, programs)
		require.Contains(t, said, "completed 55")
		keys := map[string]string{}
		for _, line := range readLedger(t, s.Dir) {
			if earlier, ran := keys[line[2]]; ran {
				require.Equal(t, earlier, line[3], "the idempotency key of round "+line[2])
				require.Contains(t, s.Kills, "a-in-"+line[2], "a recorded step ran again")
			}
			keys[line[2]] = line[3]
		}
		require.Len(t, keys, 11)
		seen := map[string]bool{}
		for _, key := range keys {
			require.False(t, seen[key], "two rounds share the key "+key)
			seen[key] = true
		}
	})
}

func TestFunctionThatBeginsAnewForgetsItsSteps(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		const steps, last = 20, 4
		e := open()
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (int, error) {
			for range steps {
				if err := f.Do("work", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			if in.Round++; in.Round < last {
				return 0, f.Restart(in)
			}
			f.Sleep("rest", time.Hour)
			return in.Round, nil
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		awaitKind(t, e, id, "timer")
		page, err := e.Steps(t.Context(), id, troupe.StepQuery{Paging: troupe.Paging{Limit: 100}})
		require.NoError(t, err)
		names := map[string]int{}
		for _, step := range page.Items {
			names[step.Node]++
		}
		require.Equal(t, steps, names["work"])
		require.Equal(t, steps, names["~4/work"], "the history keeps all rounds apart")
		main := page.Items[len(page.Items)-2-steps]
		require.Equal(t, []any{"main", last}, []any{main.Node, main.Visit})
	})
}

func TestSignalsOutliveARestart(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (int, error) {
			n, err := durable.Signal[int](f, "paid")
			if err != nil {
				return 0, err
			}
			in.Sum = in.Sum*10 + n
			if in.Round++; in.Round < 3 {
				durable.Go(f, "watch", func(f *durable.Flow) (int, error) { return durable.Signal[int](f, "never") })
				return 0, f.Restart(in)
			}
			return in.Sum, nil
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		for n := range 3 {
			require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(strconv.Itoa(n+1))))
		}
		requireResult(t, e, id, "123")
	})
}

// TestLargeInputsOfRestartsAreKeptApart has inputs and values that the tasks only refer to.
func TestLargeInputsOfRestartsAreKeptApart(t *testing.T) {
	t.Parallel()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + t.TempDir() + "/x.db", KeepWarm: -1,
		PayloadStore: "file://" + t.TempDir(), PayloadThreshold: 1_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (int, error) {
		if err := f.Set("name", in.Name); err != nil {
			return 0, err
		}
		if in.Round++; in.Round < 4 {
			in.Name += strings.Repeat("x", 2_000)
			return 0, f.Restart(in)
		}
		f.Sleep("rest", time.Millisecond)
		return len(in.Name), nil
	})
	id, err := e.Start(t.Context(), "fn", rounds{})
	require.NoError(t, err)
	requireResult(t, e, id, "6000")
	value, err := e.Value(t.Context(), id, "shared", troupe.ValueQuery{Key: "name"})
	require.NoError(t, err)
	require.Len(t, value, 6_002)
}

func TestOnlyUndosSinceTheRestartRun(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var undone atomic.Int64
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (int, error) {
			if err := f.Do("book", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			f.Undo("cancel", func(context.Context) error { undone.Add(1 + int64(in.Round)*10); return nil })
			if in.Round == 0 {
				return 0, f.Restart(rounds{Round: 1})
			}
			return 0, errors.New("full")
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskFailed, result.Status)
		require.EqualValues(t, 11, undone.Load())
	})
}

func TestTaskOfAFunctionThatBeganAnewIsRetried(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var works atomic.Bool
		var counts atomic.Int64
		troupe.HandleFlow(e, "fn", func(f *durable.Flow, in rounds) (int, error) {
			if err := f.Do("count", func(context.Context) error { counts.Add(1); return nil }); err != nil {
				return 0, err
			}
			if in.Round < 2 {
				return 0, f.Restart(rounds{Round: in.Round + 1})
			}
			err := f.Do("work", func(context.Context) error {
				if !works.Load() {
					return errors.New("not yet")
				}
				return nil
			})
			return in.Round, err
		})
		id, err := e.Start(t.Context(), "fn", rounds{})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskFailed, result.Status)
		works.Store(true)
		require.NoError(t, e.Retry(t.Context(), id))
		requireResult(t, e, id, "2")
		require.EqualValues(t, 3, counts.Load(), "recorded steps are not repeated")
	})
}

func TestRestartsThatCannotBeFail(t *testing.T) {
	for name, c := range map[string]struct {
		restart func(f *durable.Flow) error
		says    string
	}{
		"without a step":  {func(f *durable.Flow) error { return f.Restart(rounds{Round: 1}) }, "it has run no step"},
		"with a number":   {func(f *durable.Flow) error { f.Now(); return f.Restart(7) }, "must be a JSON object, and is a number"},
		"another input":   {func(f *durable.Flow) error { f.Now(); return f.Restart(map[string]string{"round": "one"}) }, "round"},
		"inside a branch": {restartInBranch, "a branch cannot restart the function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + t.TempDir() + "/x.db"})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			troupe.HandleFlow(e, "fn", func(f *durable.Flow, _ rounds) (int, error) {
				return 0, c.restart(f)
			})
			id, err := e.Start(t.Context(), "fn", rounds{})
			require.NoError(t, err)
			result, err := e.Wait(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, flow.TaskFailed, result.Status)
			require.Contains(t, result.Error, c.says)
		})
	}
}

func restartInBranch(f *durable.Flow) error {
	_, err := durable.All(f, "part", func(f *durable.Flow) (int, error) { return 0, f.Restart(rounds{}) })
	return err
}
