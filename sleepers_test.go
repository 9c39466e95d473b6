package troupe_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// TestSleepingFunctionsTakeNoMemoryAndEndWhenTheyAreWoken lets TROUPE_SLEEPERS functions wait for
// an hour at once, a thousand by default. The member restarts while they sleep.
func TestSleepingFunctionsTakeNoMemoryAndEndWhenTheyAreWoken(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { sleepAndWake(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db")) })
	t.Run("postgres", func(t *testing.T) { sleepAndWake(t, pgtest.DSN(t)) })
}

func sleepAndWake(t *testing.T, store string) {
	sleepers, err := strconv.Atoi(cmp.Or(os.Getenv("TROUPE_SLEEPERS"), "1000"))
	require.NoError(t, err)
	var calls, before, behind atomic.Int64
	open := func() *troupe.Engine {
		e, err := troupe.Open(t.Context(), troupe.Config{Store: store, KeepWarm: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		troupe.HandleFlow(e, "sleeper", func(f *durable.Flow, _ order) (int, error) {
			calls.Add(1)
			if err := f.Do("before", func(context.Context) error { before.Add(1); return nil }); err != nil {
				return 0, err
			}
			woken, err := durable.Signal[int](f, "wake", durable.Within(time.Hour))
			if err != nil {
				return 0, err
			}
			return woken, f.Do("behind", func(context.Context) error { behind.Add(1); return nil })
		})
		return e
	}
	idBy := make([]string, sleepers)
	eachOfThem := func(do func(i int) error) {
		var callers sync.WaitGroup
		for from := range 32 {
			callers.Go(func() {
				for i := from; i < sleepers; i += 32 {
					if err := do(i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		callers.Wait()
		require.False(t, t.Failed())
	}

	e := open()
	eachOfThem(func(i int) (err error) {
		idBy[i], err = e.Start(t.Context(), "sleeper", order{})
		return err
	})
	asleep := func() bool { return e.InMemory() == 0 }
	require.Eventually(t, func() bool { return before.Load() == int64(sleepers) && asleep() }, 5*time.Minute, 10*time.Millisecond)
	require.NoError(t, e.Close())

	e = open()
	_, err = e.Task(t.Context(), idBy[0])
	require.NoError(t, err)
	require.True(t, asleep(), "a member that starts loads none of them")
	eachOfThem(func(i int) error { return e.Signal(t.Context(), idBy[i], "wake", json.RawMessage(`7`)) })
	eachOfThem(func(i int) error {
		result, err := e.Wait(t.Context(), idBy[i])
		if err == nil && string(result.Value) != "7" {
			t.Errorf("%s is %s: %s %s", idBy[i], result.Status, result.Value, result.Error)
		}
		return err
	})
	require.EqualValues(t, sleepers, before.Load(), "a recorded step does not run again")
	require.EqualValues(t, sleepers, behind.Load())
	require.EqualValues(t, 2*sleepers, calls.Load(), "each was called to begin, and when it was woken")
	require.NoError(t, e.Close())
}
