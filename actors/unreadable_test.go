package actors_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// unreadable writes a task with a journal in an unknown format, and a job in the queue.
func (th *harness) unreadable(t *testing.T, version string) string {
	t.Helper()
	v, err := th.store.Version(t.Context(), version)
	require.NoError(t, err)
	id := "task-unreadable"
	errs, err := th.store.Commit(t.Context(), th.Incarnation(), []persistence.Commit{{
		Task: id, Seq: 1, At: 1, Events: []byte(`{"f":99,"e":[]}`),
		Create:  &persistence.Create{FlowID: v.FlowID, VersionID: version, Params: []byte(`{"n":1}`), CreatedAt: 1},
		Columns: &persistence.Columns{Status: string(flow.TaskRunning), Cursor: "a"},
		Enqueue: []persistence.QueueRow{{JobID: flow.JobID(id, flow.Address{Node: "a", Visit: 1,
			Attempt: 1}), Task: id, Service: "s", EnqueuedAt: 1}},
	}})
	require.NoError(t, err)
	require.NoError(t, errs[0])
	return id
}

func TestAnUnreadableTaskReportsThatAndCanBeCanceled(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.unreadable(t, th.publish(t, "start: a\nnodes: {a: {service: s, exec_type: queue}}"))

	err := th.Do(t.Context(), id, flow.Signal{Key: "k", Value: json.RawMessage("1")}, "")
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "task task-unreadable: the task cannot be read: journal row 1: flow: a journal row has format 99")
	require.ErrorContains(t, err, "it can be canceled")

	require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{Gently: true}))
	view, err := th.reader.View(t.Context(), id)
	require.NoError(t, err, "from then on it can be read")
	require.Equal(t, flow.TaskCanceled, view.State.Status)
	require.Contains(t, view.State.Error, "canceled without being read: the task cannot be read")
	require.JSONEq(t, `{"n":1}`, string(view.State.Params))
	rows, err := th.store.QueueRows(t.Context(), nil, 0, "", 10)
	require.NoError(t, err)
	require.Empty(t, rows, "its jobs have left the queue")
	require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{}))
	status, err := th.Await(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, status)
	n, err := th.store.DeleteEnded(t.Context(), view.State.EndedAt+1, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestATaskWhoseVersionCannotBeReadCanBeCanceled(t *testing.T) {
	th := start(t, actors.Config{})
	version := th.publish(t, `{"start": `)
	id := th.unreadable(t, version)
	require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{}))
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, string(flow.TaskCanceled), row.Status)
	require.NotZero(t, row.EndedAt)
	require.NoError(t, th.Cancel(t.Context(), id, flow.Cancel{}), "it has ended")
	err = th.Do(t.Context(), id, flow.Signal{Key: "k", Value: json.RawMessage("1")}, "")
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
}

func TestAnUnreadableTaskDoesNotHideOthers(t *testing.T) {
	th := start(t, actors.Config{})
	version := th.publish(t, untilApproved)
	good, bad := th.begin(t, version, `{}`), th.unreadable(t, version)
	var views []*persistence.View
	err := th.reader.Each(t.Context(), []string{bad, "nobody", good}, func(v *persistence.View) error {
		views = append(views, v)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, views, 2)
	require.False(t, views[0].Readable())
	require.Equal(t, flow.TaskRunning, views[0].State.Status)
	require.Contains(t, views[0].Error, "the task cannot be read: journal row 1")
	require.True(t, views[1].Readable())
	_, err = th.reader.View(t.Context(), bad)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	require.ErrorIs(t, err, persistence.ErrUnreadable)
	_, err = th.reader.Runs(t.Context(), bad, flow.Place{}, 10, 1<<20)
	require.ErrorIs(t, err, persistence.ErrUnreadable)
}

func TestAnUnreadableTaskLeavesMemory(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 30 * time.Millisecond})
	id := th.unreadable(t, th.publish(t, untilApproved))
	require.Error(t, th.Do(t.Context(), id, flow.Pause{}, ""))
	th.eventuallyEmpty(t)
	require.NoError(t, th.Stop(t.Context()))
}
