//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

// eachWarmth runs a test with functions that stay in memory while they wait, and with functions
// that do not.
func eachWarmth(t *testing.T, test func(t *testing.T, open func() *troupe.Engine)) {
	t.Parallel()
	for name, warm := range map[string]time.Duration{"warm": time.Minute, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
			test(t, func() *troupe.Engine {
				e, err := troupe.Open(t.Context(), troupe.Config{Store: store, KeepWarm: warm})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, e.Close()) })
				return e
			})
		})
	}
}

// awaitKind returns when a task waits for something of a kind.
func awaitKind(t *testing.T, e *troupe.Engine, id, kind string) (w *troupe.Waiting) {
	t.Helper()
	require.Eventually(t, func() (waits bool) {
		var err error
		w, err = e.Waiting(t.Context(), id)
		return err == nil && len(w.Waits) == 1 && w.Waits[0].Kind == kind
	}, patience, 5*time.Millisecond)
	return w
}

// requireResult checks the state and the value of a task.
func requireResult(t *testing.T, e *troupe.Engine, id, value string) {
	t.Helper()
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.JSONEq(t, value, string(result.Value))
}

func TestFunctionSleepsAndGoesOn(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		var calls, steps atomic.Int64
		e := open()
		troupe.HandleFlow(e, "nap", func(f *durable.Flow, _ input) (int, error) {
			calls.Add(1)
			for range 3 {
				f.Sleep("rest", 2*time.Millisecond)
				if err := f.Do("work", func(context.Context) error { steps.Add(1); return nil }); err != nil {
					return 0, err
				}
			}
			return 7, nil
		})
		id, err := e.Start(t.Context(), "nap", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, "7")
		require.EqualValues(t, 3, steps.Load())
		if t.Name() == "TestFunctionSleepsAndGoesOn/warm" {
			require.EqualValues(t, 1, calls.Load(), "it stayed in memory")
		} else {
			require.EqualValues(t, 4, calls.Load(), "it is called again behind each wait")
		}
		page, err := e.Steps(t.Context(), id, troupe.StepQuery{})
		require.NoError(t, err)
		require.Len(t, page.Items, 7)
		require.Equal(t, "rest", page.Items[1].Node)
		require.Equal(t, "completed", string(page.Items[1].State))
	})
}

type payment struct {
	Amount int `json:"amount"`
}

func TestFunctionWaitsForASignalAcrossARestart(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		var reserved atomic.Int64
		bill := func(f *durable.Flow, _ input) (int, error) {
			if err := f.Do("reserve", func(context.Context) error { reserved.Add(1); return nil }); err != nil {
				return 0, err
			}
			first, err := durable.Signal[payment](f, "paid", durable.Within(time.Hour))
			if err != nil {
				return 0, err
			}
			second, err := durable.Signal[payment](f, "paid")
			return first.Amount*10 + second.Amount, err
		}
		e := open()
		troupe.HandleFlow(e, "bill", bill)
		id, err := e.Start(t.Context(), "bill", input{"a"})
		require.NoError(t, err)
		w := awaitKind(t, e, id, "signal")
		require.Contains(t, w.Waits[0].Text, "paid")
		require.NoError(t, e.Close())

		e = open()
		troupe.HandleFlow(e, "bill", bill)
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`{"amount":3}`)))
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`{"amount":4}`)))
		requireResult(t, e, id, "34")
		require.EqualValues(t, 1, reserved.Load())
	})
}

func TestSignalThatCameEarlierEndsTheWait(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, goOn := open(), make(chan struct{})
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (p payment, err error) {
			if err := f.Do("prepare", func(context.Context) error { <-goOn; return nil }); err != nil {
				return p, err
			}
			return durable.Signal[payment](f, "paid")
		})
		id, err := e.Start(t.Context(), "bill", input{"a"})
		require.NoError(t, err)
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`{"amount":3}`)))
		close(goOn)
		requireResult(t, e, id, `{"amount":3}`)
	})
}

func TestSignalThatDoesNotComeInTimeIsAnError(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (string, error) {
			_, err := durable.Signal[payment](f, "paid", durable.Within(time.Millisecond))
			if !errors.Is(err, durable.ErrTimeout) {
				return "", fmt.Errorf("got %w", err)
			}
			return "late", nil
		})
		id, err := e.Start(t.Context(), "bill", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, `"late"`)
	})
}

func TestFunctionIsApproved(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "order", func(f *durable.Flow, _ input) (bool, error) { return durable.Approve(f, "large order") })
		for _, action := range []string{"approved", "rejected"} {
			id, err := e.Start(t.Context(), "order", input{"a"})
			require.NoError(t, err)
			awaitKind(t, e, id, "approval")
			var approval string
			require.Eventually(t, func() bool {
				page, err := e.Approvals(t.Context(), troupe.ApprovalQuery{Task: id})
				if err == nil && len(page.Items) == 1 {
					approval = page.Items[0].ID
				}
				return approval != ""
			}, patience, 5*time.Millisecond)
			_, err = e.AnswerApproval(t.Context(), approval, troupe.ApprovalAnswer{Action: action})
			require.NoError(t, err)
			requireResult(t, e, id, fmt.Sprint(action == "approved"))
		}
	})
}

// TestLongPausesBetweenTriesAreTimers restarts the program between two tries.
func TestLongPausesBetweenTriesAreTimers(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	var tries atomic.Int64
	open := func() *troupe.Engine {
		e, err := troupe.Open(t.Context(), troupe.Config{Store: store, KeepWarm: -1})
		require.NoError(t, err)
		troupe.HandleFlow(e, "call", func(f *durable.Flow, _ input) (string, error) {
			return durable.Do(f, "ring", func(context.Context) (string, error) {
				if tries.Add(1) < 3 {
					return "", errors.New("busy")
				}
				return "hello", nil
			}, durable.Retry(2, 300*time.Millisecond))
		})
		return e
	}
	e := open()
	id, err := e.Start(t.Context(), "call", input{"a"})
	require.NoError(t, err)
	w := awaitKind(t, e, id, "retry")
	require.Contains(t, w.Waits[0].Text, "busy")
	require.NoError(t, e.Close())
	e = open()
	defer e.Close()
	requireResult(t, e, id, `"hello"`)
	require.EqualValues(t, 3, tries.Load())
}

func TestWaitingFunctionIsCanceledAndUndone(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, released := open(), make(chan struct{}, 1)
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (string, error) {
			f.Undo("release", func(context.Context) error { released <- struct{}{}; return nil })
			return durable.Signal[string](f, "paid")
		})
		id, err := e.Start(t.Context(), "bill", input{"a"})
		require.NoError(t, err)
		awaitKind(t, e, id, "signal")
		require.NoError(t, e.Cancel(t.Context(), id))
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskCanceled, result.Status)
		require.Len(t, released, 1)
	})
}

// TestFunctionIsUndoneWhenTheTimeOfItsTaskIsOver lets the time of a task pass while its function
// waits.
func TestFunctionIsUndoneWhenTheTimeOfItsTaskIsOver(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e, released := open(), make(chan struct{}, 1)
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (string, error) {
			f.Undo("release", func(context.Context) error { released <- struct{}{}; return nil })
			return durable.Signal[string](f, "paid")
		})
		require.NoError(t, e.Publish(t.Context(), "impatient", []byte(`{"mode":"code","code":"bill","timeout_ms":100,
			"inputs":{"type":"object","properties":{"name":{"type":"string"}}}}`)))
		id, err := e.Start(t.Context(), "impatient", input{"a"})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, flow.TaskFailed, result.Status)
		require.Contains(t, result.Error, "timeout: the task has not ended within its timeout_ms")
		require.Len(t, released, 1)
	})
}

func TestPausedFunctionGetsItsSignalWhenItIsResumed(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var behind atomic.Bool
		troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ input) (string, error) {
			v, err := durable.Signal[string](f, "paid")
			behind.Store(true)
			return v, err
		})
		id, err := e.Start(t.Context(), "bill", input{"a"})
		require.NoError(t, err)
		awaitKind(t, e, id, "signal")
		require.NoError(t, e.Pause(t.Context(), id))
		require.NoError(t, e.Signal(t.Context(), id, "paid", json.RawMessage(`"x"`)))
		require.False(t, behind.Load())
		require.NoError(t, e.Resume(t.Context(), id))
		requireResult(t, e, id, `"x"`)
	})
}
