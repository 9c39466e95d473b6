package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAClaimOrderReturnsTheJob(t *testing.T) {
	th := start(t, actors.Config{Visibility: time.Minute})
	id := th.begin(t, th.publish(t, queueOf("x")), `{"a":1}`)
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	claim := flow.Claim{Address: at, Worker: "w", Token: "secret", Until: th.Now().Add(time.Minute).UnixMilli()}
	out, err := th.Member.Do(t.Context(), engine.Order{Task: id, Command: claim})
	require.NoError(t, err)
	require.NotNil(t, out.Job)
	require.Equal(t, []any{id, at, "x", "secret", claim.Until},
		[]any{out.Job.Job.Task, out.Job.Job.Address, out.Job.Job.Service, out.Job.Token, out.Job.Until})
	require.JSONEq(t, `{"a":1}`, string(out.Job.Job.Params))
	require.NoError(t, th.Complete(t.Context(), out.Job.Job.ID(), flow.Report{Token: "secret"}))
	th.ended(t, id)
}

func TestOrdersAreAnsweredInOrder(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.begin(t, th.publish(t, `{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.ok"}}}}`), `{}`)
	outcomes, err := th.DoAll(t.Context(), engine.Orders{
		{Task: "nobody's", Command: flow.Cancel{}},
		{Task: id, Command: flow.Signal{Key: "k", Value: json.RawMessage(`{`)}},
		{Task: id, Command: flow.Signal{Key: "k", Value: json.RawMessage(`1`)}, Request: "r"},
		{Task: id, Command: flow.Signal{Key: "k", Value: json.RawMessage(`2`)}, Events: true},
	})
	require.NoError(t, err)
	require.Equal(t, flow.NotFound, flow.ErrorKindOf(outcomes[0].Err))
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(outcomes[1].Err))
	require.NoError(t, outcomes[2].Err)
	require.Equal(t, 1, outcomes[2].Changed)
	require.Empty(t, outcomes[2].Events, "nobody has asked for them")
	require.Equal(t, 1, outcomes[3].Changed)
	require.Equal(t, flow.SignalReceived, outcomes[3].Events[0].Type)
}

func TestAStoppedMemberRefusesEachOrder(t *testing.T) {
	th := start(t, actors.Config{})
	orders := engine.Orders{{Task: "a", Command: flow.Cancel{}}, {Task: "b", Command: flow.Cancel{}}}
	require.NoError(t, th.Stop(t.Context()))
	outcomes, err := th.DoAll(t.Context(), orders)
	require.NoError(t, err)
	require.Len(t, outcomes, 2)
	for _, out := range outcomes {
		require.Equal(t, flow.Busy, flow.ErrorKindOf(out.Err))
	}
}

// away is a store that cannot be read.
type away struct{ persistence.Store }

func (away) Task(context.Context, string) (*persistence.TaskRow, error) {
	return nil, persistence.ErrUnavailable
}

func TestCallersGetAnErrorWhenTheStoreIsUnavailable(t *testing.T) {
	store := openStore(t, t.TempDir()+"/troupe.db")
	t.Cleanup(func() { store.Close() })
	th := start(t, actors.Config{Store: away{store}})
	for _, err := range th.Watch(t.Context(), "task", 0) {
		require.True(t, errors.Is(err, engine.ErrUnavailable), err)
	}
	require.ErrorIs(t, th.Appears(t.Context(), "task"), engine.ErrUnavailable)
}

func TestAWatchEndsWithAnErrorWhenTheMemberStops(t *testing.T) {
	for name, end := range map[string]func(
		*harness){"in order": func(th *harness) { require.NoError(t, th.Stop(t.Context())) },
		"at once": func(th *harness) { th.Kill() }} {
		t.Run(name, func(t *testing.T) {
			th := start(t, actors.Config{})
			id := th.begin(t, th.publish(t, queueOf("x")), `{}`)
			seen, ended := make(chan int64, 100), make(chan error, 1)
			go func() {
				var broken error
				for row, err := range th.Watch(t.Context(), id, 0) {
					if broken = err; err == nil {
						seen <- row.Seq
					}
				}
				ended <- broken
			}()
			<-seen
			end(th)
			require.Equal(t, flow.Busy, flow.ErrorKindOf(<-ended), "it is not the end of the task")
		})
	}
}
