package troupe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/flow"
)

type order struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

type receipt struct {
	Reservation string `json:"reservation"`
	Charge      string `json:"charge"`
}

// ledger counts the effects of steps by their idempotency keys.
type ledger struct {
	mu      sync.Mutex
	effects []string
}

func (l *ledger) addEffect(ctx context.Context, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects = append(l.effects, name)
	return name + " " + troupe.JobFrom(ctx).Step, nil
}

func (l *ledger) effectList() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}

// shopFlow charges for an order in two steps. pay is called in the second one.
func shopFlow(l *ledger, pay func() error) durable.Func[order, receipt] {
	return func(f *durable.Flow, _ order) (r receipt, err error) {
		if r.Reservation, err = durable.Do(f, "reserve", func(ctx context.Context) (string,
			error) {
			return l.addEffect(ctx, "reserve")
		}); err != nil {
			return r, err
		}
		f.Undo("release", func(ctx context.Context) error { _, err := l.addEffect(ctx, "release"); return err })
		r.Charge, err = durable.Do(f, "charge", func(ctx context.Context) (string, error) {
			if err := pay(); err != nil {
				return "", err
			}
			return l.addEffect(ctx, "charge")
		})
		return r, err
	}
}

func acceptPayment() error { return nil }

func TestFlowThatIsAFunctionRunsItsSteps(t *testing.T) {
	e, l := opened(t), &ledger{}
	troupe.HandleFlow(e, "checkout", shopFlow(l, acceptPayment))
	id, err := e.Start(t.Context(), "checkout", order{"ann", 3})
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	var r receipt
	require.NoError(t, json.Unmarshal(result.Value, &r))
	require.Equal(t, receipt{"reserve reserve", "charge charge"}, r)
	require.Equal(t, []string{"reserve", "charge"}, l.effectList())

	steps, err := e.Steps(t.Context(), id, troupe.StepQuery{})
	require.NoError(t, err)
	var names []string
	for _, s := range steps.Items {
		names = append(names, fmt.Sprint(s.Node, " ", s.State))
	}
	require.Equal(t, []string{"main completed", "reserve completed", "charge completed"}, names)
	runs, err := e.Runs(t.Context(), id, troupe.Paging{})
	require.NoError(t, err)
	require.Len(t, runs.Items, 3)
}

func TestInputsOfAFunctionAreChecked(t *testing.T) {
	e := opened(t)
	troupe.HandleFlow(e, "checkout", shopFlow(&ledger{}, acceptPayment))
	_, err := e.Start(t.Context(), "checkout", map[string]any{"customer": 3, "amount": 1, "colour": "red"})
	require.ErrorContains(t, err, "customer")
	require.ErrorContains(t, err, "colour")
	_, err = e.Start(t.Context(), "checkout", map[string]any{"customer": "ann"})
	require.ErrorContains(t, err, "amount")
}

func TestFailedFunctionIsUndone(t *testing.T) {
	e, l := opened(t), &ledger{}
	troupe.HandleFlow(e, "checkout", shopFlow(l, func() error { return troupe.Fatal(errors.New("no money")) }))
	id, err := e.Start(t.Context(), "checkout", order{"ann", 3})
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, result.Status)
	require.Contains(t, result.Error, "step charge: no money")
	require.Equal(t, []string{"reserve", "release"}, l.effectList())
	require.ErrorContains(t, e.Retry(t.Context(), id), "undone")
}

// TestRecordedStepsAreNotRepeated closes the engine in the middle of a step, and goes on in another
// one.
func TestRecordedStepsAreNotRepeated(t *testing.T) {
	store, l := "sqlite:"+filepath.Join(t.TempDir(), "x.db"), &ledger{}
	first, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	reached := make(chan struct{})
	troupe.HandleFlow(first, "checkout", func(f *durable.Flow, _ order) (receipt, error) {
		_, err := durable.Do(f, "reserve", func(ctx context.Context) (string, error) { return l.addEffect(ctx, "reserve") })
		if err != nil {
			return receipt{}, err
		}
		return receipt{}, f.Do("charge", func(ctx context.Context) error {
			close(reached)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	id, err := first.Start(t.Context(), "checkout", order{"ann", 3})
	require.NoError(t, err)
	<-reached
	require.NoError(t, first.Close())

	second, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	defer second.Close()
	troupe.HandleFlow(second, "checkout", shopFlow(l, acceptPayment))
	result, err := second.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.Equal(t, []string{"reserve", "charge"}, l.effectList())
}

// TestFunctionThatDoesNotFitItsHistoryIsHeld changes the code while a task runs, and back.
func TestFunctionThatDoesNotFitItsHistoryIsHeld(t *testing.T) {
	store, l := "sqlite:"+filepath.Join(t.TempDir(), "x.db"), &ledger{}
	open := func(fn durable.Func[order, receipt]) *troupe.Engine {
		e, err := troupe.Open(t.Context(), troupe.Config{Store: store})
		require.NoError(t, err)
		troupe.HandleFlow(e, "checkout", fn)
		return e
	}
	reached := make(chan struct{})
	e := open(func(f *durable.Flow, _ order) (receipt, error) {
		if _, err := durable.Do(f, "reserve", func(ctx context.Context) (string,
			error) {
			return l.addEffect(ctx, "reserve")
		}); err != nil {
			return receipt{}, err
		}
		close(reached)
		<-f.Context().Done()
		return receipt{}, f.Context().Err()
	})
	id, err := e.Start(t.Context(), "checkout", order{"ann", 3})
	require.NoError(t, err)
	<-reached
	require.NoError(t, e.Close())

	e = open(func(f *durable.Flow, _ order) (receipt, error) {
		return receipt{}, f.Do("book", func(_ context.Context) error { return nil })
	})
	require.Eventually(t, func() bool {
		w, err := e.Waiting(t.Context(), id)
		return err == nil && len(w.Waits) > 0 && w.Waits[0].Kind == "code"
	}, time.Minute, 10*time.Millisecond)
	w, err := e.Waiting(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "nondeterministic: at step reserve the history has do reserve, the code asked for do book", w.Waits[0].Text)
	task, err := e.Task(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "running", task.State)
	require.NoError(t, e.Close())

	e = open(shopFlow(l, acceptPayment))
	defer e.Close()
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.Equal(t, []string{"reserve", "charge"}, l.effectList())
}

func TestRetriedFunctionRepeatsItsFailedStep(t *testing.T) {
	e, l := opened(t), &ledger{}
	var solvent atomic.Bool
	troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ order) (string, error) {
		if _, err := durable.Do(f, "reserve", func(ctx context.Context) (string,
			error) {
			return l.addEffect(ctx, "reserve")
		}); err != nil {
			return "", err
		}
		return durable.Do(f, "charge", func(ctx context.Context) (string, error) {
			if !solvent.Load() {
				return "", errors.New("no money")
			}
			return l.addEffect(ctx, "charge")
		}, durable.Retry(1, time.Millisecond))
	})
	id, err := e.Start(t.Context(), "bill", order{"ann", 3})
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, result.Status)
	solvent.Store(true)
	require.NoError(t, e.Retry(t.Context(), id))
	result, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.Equal(t, []string{"reserve", "charge"}, l.effectList())
}

func TestPausedFunctionStopsAtItsNextStep(t *testing.T) {
	e, l := opened(t), &ledger{}
	reached, goOn := make(chan struct{}), make(chan struct{})
	troupe.HandleFlow(e, "bill", func(f *durable.Flow, _ order) (string, error) {
		if err := f.Do("wait", func(_ context.Context) error { close(reached); <-goOn; return nil }); err != nil {
			return "", err
		}
		return durable.Do(f, "charge", func(ctx context.Context) (string, error) { return l.addEffect(ctx, "charge") })
	})
	id, err := e.Start(t.Context(), "bill", order{"ann", 3})
	require.NoError(t, err)
	<-reached
	require.NoError(t, e.Pause(t.Context(), id))
	close(goOn)
	require.Eventually(t, func() bool {
		steps, err := e.Steps(t.Context(), id, troupe.StepQuery{})
		return err == nil && len(steps.Items) == 2
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, l.effectList())
	require.NoError(t, e.Resume(t.Context(), id))
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.Equal(t, []string{"charge"}, l.effectList())
}

func TestFlowOfAProgramWithoutItIsHeld(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	first, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	require.NoError(t, first.Publish(t.Context(), "bill", []byte(`{"name":"bill","code":"bill"}`)))
	id, err := first.Start(t.Context(), "bill", nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		w, err := first.Waiting(t.Context(), id)
		return err == nil && len(w.Waits) > 0 && w.Waits[0].Kind == "code"
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, first.Close())
	second, err := troupe.Open(t.Context(), troupe.Config{Store: store})
	require.NoError(t, err)
	defer second.Close()
	troupe.HandleFlow(second, "bill", func(f *durable.Flow, _ map[string]any) (int, error) {
		return durable.Do(f, "add", func(context.Context) (int, error) { return 3, nil })
	})
	result, err := second.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
	require.Equal(t, "3", string(result.Value))
}

// TestCanceledFunctionIsUndone cancels a task during a step.
func TestCanceledFunctionIsUndone(t *testing.T) {
	e, l := opened(t), &ledger{}
	reached, ended := make(chan struct{}), make(chan struct{})
	troupe.HandleFlow(e, "trip", func(f *durable.Flow, _ order) (string, error) {
		for _, name := range []string{"hotel", "flight"} {
			if _, err := durable.Do(f, name, func(ctx context.Context) (string, error) { return l.addEffect(ctx, name) }); err != nil {
				return "", err
			}
			f.Undo("cancel "+name, func(ctx context.Context) error { _, err := l.addEffect(ctx, "cancel "+name); return err })
		}
		return "", f.Do("wait", func(ctx context.Context) error {
			close(reached)
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		})
	})
	id, err := e.Start(t.Context(), "trip", order{"ann", 3})
	require.NoError(t, err)
	<-reached
	require.NoError(t, e.Cancel(t.Context(), id))
	<-ended
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, result.Status, result.Error)
	require.Equal(t, []string{"hotel", "flight", "cancel flight", "cancel hotel"}, l.effectList())
}
