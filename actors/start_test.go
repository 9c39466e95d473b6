package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAStartThatIsRefusedLeavesNothingBehind(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 20 * time.Millisecond})
	version := th.publish(t, untilApproved)
	_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`[1]`)})
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
	id, created, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`{"n":1}`)})
	require.NoError(t, err)
	require.True(t, created)
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(row.Params))
}

func TestParamsAreStoredWithDefaults(t *testing.T) {
	th := start(t, actors.Config{})
	version := th.publish(t, `{"inputs":{"n":"int","limit":"int = `+
		`3"},"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.d"}}}}`)
	_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`{}`)})
	var bad *flow.BadInputs
	require.ErrorAs(t, err, &bad)
	id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`{"n":1}`)})
	require.NoError(t, err)
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, `{"n":1,"limit":3}`, string(row.Params))
	again, created, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`{"n":1}`)})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, id, again)
}

func TestARepeatedStartStillCountsAsTheCreator(t *testing.T) {
	th := start(t, actors.Config{})
	n := engine.NewTask{VersionID: th.publish(t, untilApproved), Key: "k", Request: "first"}
	for range 2 { // its answer was lost
		_, created, err := th.StartTask(t.Context(), n)
		require.NoError(t, err)
		require.True(t, created)
	}
	n.Request = "second"
	_, created, err := th.StartTask(t.Context(), n)
	require.NoError(t, err)
	require.False(t, created)
	n.Params = json.RawMessage(`{"other":1}`)
	_, _, err = th.StartTask(t.Context(), n)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestACallerMayChooseTheTaskID(t *testing.T) {
	th := start(t, actors.Config{})
	n := engine.NewTask{VersionID: th.publish(t, untilApproved),
		ID: "6FA459EA-EE8A-3CA4-894E-DB77E160355E", Params: json.RawMessage(`{"a":1}`)}
	id, created, err := th.StartTask(t.Context(), n)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "6fa459ea-ee8a-3ca4-894e-db77e160355e", id)
	again, created, err := th.StartTask(t.Context(), n)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, id, again)

	other := n
	other.Params = json.RawMessage(`{"a":2}`)
	_, _, err = th.StartTask(t.Context(), other)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	other = n
	other.VersionID, other.Newest = th.publish(t, untilApproved), true
	_, _, err = th.StartTask(t.Context(), other)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err), "of another flow")
	n.ID = "mine"
	_, _, err = th.StartTask(t.Context(), n)
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
}

func TestACommandReportsWhetherItChangedAnything(t *testing.T) {
	th := start(t, actors.Config{})
	id, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: th.publish(t, untilApproved)})
	require.NoError(t, err)
	for _, want := range []bool{true, false} {
		events, err := th.Tell(t.Context(), id, flow.Cancel{}, "")
		require.NoError(t, err)
		require.Equal(t, want, len(events) > 0)
	}
}

func TestAStartThatTheDeletionOfItsFlowOvertakesIsRefused(t *testing.T) {
	inner := model.New(model.Options{})
	store := faulty.Wrap(inner, faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
		return faulty.Fault{Before: func(ctx context.Context) error {
			_, err := inner.DeleteFlow(ctx, batch[0].Create.FlowID, 9)
			return err
		}}
	}})
	th := start(t, actors.Config{Store: store})
	version := th.publish(t, untilApproved)
	for range 2 {
		_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version})
		require.Equal(t, flow.NotFound, flow.ErrorKindOf(err))
		require.ErrorContains(t, err, version)
	}
}

func TestStartsRefusedTogetherAreAllAnswered(t *testing.T) {
	committing, second := make(chan struct{}), make(chan struct{})
	var commits, commands atomic.Int64
	cfg := actors.Config{Host: actors.Host{Probe: func(actor string, message any) {
		if actor == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" && commands.Add(1) == 2 {
			close(second)
		}
	}}}
	cfg.Store = faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
		if commits.Add(1) == 1 {
			close(committing)
			<-second
		}
		return faulty.Fault{Before: func(context.Context) error { return persistence.ErrRefused }}
	}})
	th := start(t, cfg)
	n := engine.NewTask{VersionID: th.publish(t, untilApproved), Key: "k", Params: json.RawMessage(`{"n":1}`)}
	answers := make(chan error, 2)
	ask := func() {
		_, _, err := th.StartTask(t.Context(), n)
		answers <- err
	}
	go ask()
	<-committing
	go ask()
	for range 2 {
		select {
		case err := <-answers:
			require.Contains(t, []flow.ErrorKind{flow.Invalid, flow.Busy}, flow.ErrorKindOf(err), "%v", err)
		case <-time.After(patience):
			require.Fail(t, "a start was not answered")
		}
	}
}
