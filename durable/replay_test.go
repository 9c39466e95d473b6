//go:build unix

package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
)

// sellTickets is a function with branches, waits, an undo and random numbers. wrap is the name of
// one of its steps, and version the newest way that its code knows.
func sellTickets(wrap string, version int, effects *int) func(f *durable.Flow, in input) (int, error) {
	return func(f *durable.Flow, _ input) (int, error) {
		f.Undo("release", func(context.Context) error { *effects++; return nil })
		sum := 0
		if version == 0 || f.Version("tax", 1, version) == 1 {
			sum = f.Random().IntN(1000)
		}
		packed, err := durable.Each(f, "pack", []int{1, 2, 3}, 2, func(f *durable.Flow, n int) (int, error) {
			f.Sleep("dry", time.Millisecond)
			return durable.Do(f, wrap, func(context.Context) (int, error) { *effects++; return n + sum, nil }, durable.Input(sum))
		})
		if err != nil {
			return 0, err
		}
		if _, err := durable.Signal[int](f, "paid"); err != nil {
			return 0, err
		}
		return len(packed), nil
	}
}

func TestHistoryOfATaskIsReplayedWithOtherCode(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e, made, again := openStore(t, store), 0, 0
		troupe.HandleFlow(e, "sell", sellTickets("wrap", 0, &made))
		id, err := e.Start(t.Context(), "sell", input{"a"})
		require.NoError(t, err)
		awaitKind(t, e, id, "signal")
		check := func(name, wrap string, version int, says string) {
			r, err := troupe.ReplayFunction(t.Context(), e, id, sellTickets(wrap, version, &again))
			require.NoError(t, err, name)
			require.Equal(t, says, r.Differs, name)
			require.GreaterOrEqual(t, r.Steps, 6, name)
			require.Zero(t, again, name)
		}
		check("the same code", "wrap", 0, "")
		check("a way that is older than the code", "wrap", 2, "")
		r, err := troupe.ReplayFunction(t.Context(), e, id, sellTickets("fold", 0, &again))
		require.NoError(t, err)
		require.Regexp(t, `^nondeterministic: at step pack/\d/wrap the history has do pack/\d/wrap, the code asked for `+
			`do pack/\d/fold$`, r.Differs)

		require.NoError(t, e.Signal(t.Context(), id, "paid", 7))
		requireResult(t, e, id, "3")
		check("a task that has ended", "wrap", 0, "")
		short, err := troupe.ReplayFunction(t.Context(), e, id, func(*durable.Flow, input) (int, error) { return 3, nil })
		require.NoError(t, err)
		require.Empty(t, short.Differs)
		require.Len(t, short.Unasked, short.Steps)
	})
}

func TestFunctionsThatBeganAnewAreReplayedFromThere(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		e := openStore(t, store)
		type round struct {
			N int `json:"n"`
		}
		count := func(step string) func(f *durable.Flow, r round) (int, error) {
			return func(f *durable.Flow, r round) (int, error) {
				n, err := durable.Do(f, fmt.Sprint(step, r.N), func(context.Context) (int, error) { return r.N, nil })
				if err == nil && n < 3 {
					return 0, f.Restart(round{n + 1})
				}
				return n, err
			}
		}
		troupe.HandleFlow(e, "count", count("step"))
		id, err := e.Start(t.Context(), "count", round{1})
		require.NoError(t, err)
		requireResult(t, e, id, "3")
		r, err := troupe.ReplayFunction(t.Context(), e, id, count("step"))
		require.NoError(t, err)
		require.Equal(t, troupe.Replay{Steps: 1}, *r)
		r, err = troupe.ReplayFunction(t.Context(), e, id, count("other"))
		require.NoError(t, err)
		require.Contains(t, r.Differs, "at step step3 the history has do step3, the code asked for do other3")
	})
}
