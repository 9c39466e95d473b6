package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

const aFunction = `{"mode":"code","code":"f"}`

var (
	napping = flow.CodeWait{Name: "nap", Use: 1, Kind: flow.CodeSleep, MS: 1}
	unpaid  = flow.CodeWait{Name: "paid", Use: 1, Kind: flow.CodeSignal, Key: "paid"}
	paid    = flow.Signal{Key: "paid", Value: []byte(`7`)}
)

// waitingFunction is a flow. It begins its waits, and ends when the test lets it.
type waitingFunction struct {
	waits    []flow.CodeWait
	began    chan struct{}      // closed when the waits have begun
	register chan struct{}      // closed when the function may register its receiver
	ends     chan flow.CodeStep // ends of waits that the receiver got
	finish   chan struct{}      // closed when the function may end
}

func newWaitingFunction(waits ...flow.CodeWait) *waitingFunction {
	return &waitingFunction{waits: waits, began: make(chan struct{}), register: make(chan struct{}),
		ends: make(chan flow.CodeStep, 100), finish: make(chan struct{})}
}

func (f *waitingFunction) Carry(ctx context.Context, _ flow.Job) flow.Report {
	if err := carriers.FunctionHostOf(ctx).Record(nil, f.waits); err != nil {
		return flow.Report{Error: err.Error(), Fatal: true}
	}
	close(f.began)
	<-f.register
	carriers.FunctionHostOf(ctx).Listen(func(step flow.CodeStep) { f.ends <- step })
	select {
	case <-f.finish:
	case <-ctx.Done():
	}
	return flow.Report{Output: []byte(`1`)}
}

func (f *waitingFunction) config() actors.Config {
	return actors.Config{Carriers: map[flow.ExecType]actors.Carrier{flow.ExecCode: f}}
}

// begin starts a task of the function and returns when its waits have begun.
func (f *waitingFunction) begin(t *testing.T, th *harness) (id string) {
	t.Helper()
	id = th.insist(t, engine.NewTask{VersionID: th.publish(t, aFunction), Params: []byte(`{}`)})
	receive(t, f.began)
	return id
}

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.Fail(t, "nothing came")
	}
	return v
}

func TestRunningFunctionGetsTheEndOfItsWait(t *testing.T) {
	f := newWaitingFunction(unpaid)
	th := start(t, f.config())
	id := f.begin(t, th)
	close(f.register)
	require.NoError(t, th.Do(t.Context(), id, paid, ""))
	end := receive(t, f.ends)
	require.Equal(t, []any{"paid", flow.CodeSignal, "7"}, []any{end.Place(), end.Kind, string(end.Output)})
	close(f.finish)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

func TestEndOfAWaitIsKeptUntilTheFunctionRegistersItsReceiver(t *testing.T) {
	f := newWaitingFunction(napping)
	th := start(t, f.config())
	id := f.begin(t, th)
	require.Eventually(t, func() bool {
		view, err := th.reader.View(t.Context(), id)
		return err == nil && len(view.State.Root.Function.Steps) == 1
	}, patience, time.Millisecond)
	close(f.register)
	require.Equal(t, "nap", receive(t, f.ends).Name)
	close(f.finish)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

func TestEndOfAWaitReachesAFunctionWhoseTaskHasMoved(t *testing.T) {
	f := newWaitingFunction(unpaid)
	c := newCircuit(nil)
	a := c.join(t, f.config())
	c.give(a, persistence.AllShards()...)
	b := c.join(t, newWaitingFunction().config())
	id := f.begin(t, a)
	close(f.register)
	require.NoError(t, a.Lose(t.Context(), shardOf(id)))
	c.give(b, shardOf(id)...)
	require.NoError(t, b.Do(t.Context(), id, paid, ""))
	require.Equal(t, "paid", receive(t, f.ends).Name)

	require.NoError(t, b.Lose(t.Context(), shardOf(id)))
	c.give(a, shardOf(id)...)
	require.Equal(t, "paid", receive(t, f.ends).Name, "a task that is loaded sends what it has")
	close(f.finish)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

// TestFunctionGoesOnWhenTheAnswerToItsEndedWaitIsLost loses the answer of the store to the row in
// which the function is given up and delivered again, because its wait is over at once.
func TestFunctionGoesOnWhenTheAnswerToItsEndedWaitIsLost(t *testing.T) {
	over := napping
	over.MS = 0
	var lost atomic.Bool
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	th := start(t, actors.Config{
		Store: faulty.Wrap(store, faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
			for i := range batch {
				if bytes.Contains(batch[i].Events, []byte(flow.HeldWaiting)) && !lost.Swap(true) {
					return faulty.Lose()
				}
			}
			return faulty.Fault{}
		}}),
		Carriers: map[flow.ExecType]actors.Carrier{flow.ExecCode: carry(func(_ context.Context, j flow.Job) flow.Report {
			if len(j.Function.Steps) == 0 {
				return flow.Report{GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{over}}}
			}
			return flow.Report{Output: []byte(`1`)}
		})}})
	id := th.insist(t, engine.NewTask{VersionID: th.publish(t, aFunction), Params: []byte(`{}`)})
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	require.True(t, lost.Load())
}

// aside is a place outside the store for one large value: that of the signal.
type aside struct{ lost atomic.Bool }

const reference = `"outside"`

func (*aside) Large(v json.RawMessage) bool { return string(v) == "7" }

func (*aside) Keep(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(reference), nil
}

func (*aside) KeepFields(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	return params, nil
}

func (*aside) Refer(_ string, v json.RawMessage) (json.RawMessage, []persistence.Object) {
	return v, nil
}

func (*aside) WriteMade(context.Context, []persistence.Object) error { return nil }

func (*aside) DropMade([]persistence.Object) {}

func (*aside) Refers(v json.RawMessage) bool { return string(v) == reference }

func (a *aside) WholeFor(_ context.Context, v json.RawMessage) (json.RawMessage, error) {
	switch {
	case !a.Refers(v):
		return v, nil
	case a.lost.Load():
		return nil, flow.ErrNoContent
	}
	return json.RawMessage("7"), nil
}

func (*aside) Patiently(ctx context.Context) context.Context { return ctx }

func (*aside) Aside(func(do func())) {}

func (*aside) Foreign(string, json.RawMessage) []persistence.Object { return nil }

// beginWithLargeSignal begins a task of the function and sends it a signal with a large value.
func (f *waitingFunction) beginWithLargeSignal(t *testing.T, place *aside) (th *harness, id string) {
	t.Helper()
	cfg := f.config()
	cfg.Payloads = place
	th = start(t, cfg)
	id = f.begin(t, th)
	close(f.register)
	require.NoError(t, th.Do(t.Context(), id, paid, ""))
	return th, id
}

func TestFunctionGetsTheContentOfTheEndOfItsWait(t *testing.T) {
	f := newWaitingFunction(unpaid)
	th, id := f.beginWithLargeSignal(t, &aside{})
	require.Equal(t, "7", string(receive(t, f.ends).Output))
	close(f.finish)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

func TestFunctionFailsIfTheContentOfTheEndOfItsWaitIsLost(t *testing.T) {
	f, place := newWaitingFunction(unpaid), &aside{}
	place.lost.Store(true)
	th, id := f.beginWithLargeSignal(t, place)
	require.Equal(t, "main: "+flow.ErrNoContent.Error(), th.ended(t, id).State.Error)
	require.Empty(t, f.ends)
}

func TestEndOfAWaitThatWasNotSentComesFromTheNextOwnerOfTheTask(t *testing.T) {
	f := newWaitingFunction(unpaid)
	c := newCircuit(nil)
	a := c.join(t, f.config())
	c.give(a, persistence.AllShards()...)
	b, next := c.join(t, newWaitingFunction().config()), c.join(t, newWaitingFunction().config())
	c.lines[b].drop = func() bool { return true }
	id := f.begin(t, a)
	close(f.register)
	require.NoError(t, a.Lose(t.Context(), shardOf(id)))
	c.give(b, shardOf(id)...)
	require.NoError(t, b.Do(t.Context(), id, paid, ""))
	require.NoError(t, b.Lose(t.Context(), shardOf(id)))
	require.Empty(t, f.ends)
	c.give(next, shardOf(id)...)
	require.Equal(t, "paid", receive(t, f.ends).Name)
	close(f.finish)
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}

// givingUpFunction is a flow. It is given up while it waits for a signal, when the test lets it.
type givingUpFunction struct{ began, giveUp chan struct{} }

func (f *givingUpFunction) Carry(_ context.Context, j flow.Job) flow.Report {
	if len(j.Function.Steps) > 0 {
		return flow.Report{Output: j.Function.Steps[0].Output}
	}
	close(f.began)
	<-f.giveUp
	return flow.Report{GivenUp: &flow.GivenUp{Reason: flow.HeldWaiting, Waits: []flow.CodeWait{unpaid}}}
}

func TestFunctionThatWasGivenUpForAnotherMemberIsCarriedOutAgain(t *testing.T) {
	f := &givingUpFunction{began: make(chan struct{}), giveUp: make(chan struct{})}
	c := newCircuit(nil)
	a := c.join(t, actors.Config{Carriers: map[flow.ExecType]actors.Carrier{flow.ExecCode: f}})
	c.give(a, persistence.AllShards()...)
	b := c.join(t, newWaitingFunction().config())
	id := a.insist(t, engine.NewTask{VersionID: a.publish(t, aFunction), Params: []byte(`{}`)})
	receive(t, f.began)
	require.NoError(t, a.Lose(t.Context(), shardOf(id)))
	c.give(b, shardOf(id)...)
	close(f.giveUp)
	require.Eventually(t, func() bool {
		view, err := b.reader.View(t.Context(), id)
		return err == nil && len(view.State.Root.Function.Waits) == 1
	}, patience, time.Millisecond)
	require.NoError(t, b.Lose(t.Context(), shardOf(id)))
	c.give(a, shardOf(id)...)
	require.NoError(t, a.Do(t.Context(), id, paid, ""))
	require.Equal(t, flow.TaskCompleted, c.ended(t, id).State.Status)
}
