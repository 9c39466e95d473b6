package persistence_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// longTask is a store with one task, which loops: a step more with each row.
type longTask struct {
	persistence.Store
	row  persistence.TaskRow
	rows int64
	read atomic.Int64 // rows
}

func (s *longTask) Task(context.Context, string) (*persistence.TaskRow, error) {
	row := s.row
	return &row, nil
}

func (s *longTask) Version(context.Context, string) (*persistence.Version, error) {
	return &persistence.Version{ID: s.row.VersionID, Definition: []byte(`{"start":"a","nodes":{"a":{"func":"f"}},"edges":[{"from":"a","to":"a"}]}`)}, nil
}

func (s *longTask) Flow(context.Context, string) (*persistence.Flow, error) {
	return nil, persistence.ErrNotFound
}

func (s *longTask) Rows(_ context.Context, _ string, after int64, p persistence.Part) ([]persistence.Row, error) {
	rows := []persistence.Row{}
	for seq := after + 1; seq <= s.rows && len(rows) < p.Rows; seq++ {
		rows = append(rows, persistence.Row{Seq: seq, Events: flow.AppendEvents(nil, turn(seq, s.row.CreatedAt+seq))})
	}
	s.read.Add(int64(len(rows)))
	return rows, nil
}

// turn is a step that is entered, carried out and left.
func turn(n, at int64) []flow.Event {
	events := []flow.Event{
		{Type: flow.StepEntered, Total: 1},
		{Type: flow.AttemptsStarted, Total: 1, Attempt: 1},
		{Type: flow.AttemptEnded, Attempt: 1, Status: string(flow.AttemptOK), Output: fmt.Append(nil, n)},
		{Type: flow.StepEnded, Status: "completed"},
	}
	for i := range events {
		events[i].Node, events[i].Visit, events[i].At = "a", int(n), at
	}
	if n == 1 {
		return append([]flow.Event{{Type: flow.TaskCreated, At: at}}, events...)
	}
	return events
}

func newLongTask(rows int64) (*longTask, *persistence.Reader) {
	s := &longTask{rows: rows, row: persistence.TaskRow{ID: "t", VersionID: "v", CreatedAt: 1000}}
	return s, persistence.NewReader(s, flow.Limits{})
}

func TestALongHistoryIsReadOnceForAllOfItsPages(t *testing.T) {
	s, reader := newLongTask(5000)
	first, err := reader.Runs(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, first, 5000)
	require.Equal(t, int64(5000), s.read.Load())

	s.rows += 20
	second, err := reader.Runs(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, int64(5020), s.read.Load(), "only what is new was read")
	fresh, err := persistence.NewReader(s, flow.Limits{}).Runs(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, fresh, 5020)
	require.Equal(t, fresh[5019].Output, second[5019].Output)
	require.Equal(t, len(fresh), len(second))
	require.Len(t, first, 5000, "an answer does not change any more")
}

func TestAShortHistoryIsNotKept(t *testing.T) {
	s, reader := newLongTask(10)
	for range 2 {
		_, err := reader.Runs(t.Context(), "t")
		require.NoError(t, err)
	}
	require.Equal(t, int64(20), s.read.Load())
}

func TestATaskIsNotToldTheHistoryOfADeletedOneOfItsName(t *testing.T) {
	s, reader := newLongTask(2000)
	_, err := reader.Runs(t.Context(), "t")
	require.NoError(t, err)
	s.rows, s.row.CreatedAt = 3, 2000
	runs, err := reader.Runs(t.Context(), "t")
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Equal(t, int64(2001), runs[0].StartedAt)
}

// A task may be deleted between the reading of its row and that of its journal.
func TestTheHistoryOfATaskThatIsBeingDeletedIsNotFound(t *testing.T) {
	store := &longTask{row: persistence.TaskRow{ID: "t", VersionID: "v"}, rows: 0}
	reader := persistence.NewReader(store, flow.Limits{})
	_, err := reader.History(t.Context(), "t")
	require.ErrorIs(t, err, persistence.ErrNotFound)
	_, err = reader.Runs(t.Context(), "t")
	require.ErrorIs(t, err, persistence.ErrNotFound)
	_, err = reader.Fold(t.Context(), &persistence.Record{TaskRow: store.row})
	require.ErrorIs(t, err, persistence.ErrNotFound)
}
