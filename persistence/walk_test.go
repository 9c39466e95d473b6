package persistence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// longTask is a store with one task that loops: one step per row, and a checkpoint after every
// hundredth row.
type longTask struct {
	persistence.Store
	row   persistence.TaskRow
	rows  int64
	read  int // rows and checkpoints
	blind bool
	size  int64 // size of the snapshot
}

func (s *longTask) Task(context.Context, string) (*persistence.TaskRow, error) {
	row := s.row
	return &row, nil
}

func (s *longTask) Version(context.Context, string) (*persistence.Version, error) {
	return &persistence.Version{ID: s.row.VersionID,
		Definition: []byte(`{"start":"a","nodes":{"a":{"func":"f"}},"edges":[{"from":"a","to":"a"}]}`)}, nil
}

func (s *longTask) Flow(context.Context, string) (*persistence.Flow, error) {
	return nil, persistence.ErrNotFound
}

func (s *longTask) Rows(_ context.Context, _ string, after int64, p persistence.Part) ([]persistence.Row, error) {
	rows := []persistence.Row{}
	for seq := after + 1; seq <= s.rows && len(rows) < p.Rows; seq++ {
		rows = append(rows, persistence.Row{Seq: seq, Events: flow.AppendEvents(nil, turn(seq))})
	}
	s.read += len(rows)
	return rows, nil
}

func (s *longTask) Sizes(context.Context, []string) ([]int64, error) { return []int64{s.size}, nil }

func (s *longTask) Checkpoints(context.Context, string) (list []int64, err error) {
	for seq := int64(100); seq <= s.rows; seq += 100 {
		list = append(list, seq)
	}
	return list, nil
}

func (s *longTask) Checkpoint(ctx context.Context, _ string, seq int64) ([]byte, error) {
	s.read++
	if s.blind {
		return []byte("of another format"), nil
	}
	plan, err := persistence.NewReader(s, flow.Limits{}).Plan(ctx, "v")
	if err != nil {
		return nil, err
	}
	state := flow.NewState("t", plan)
	for n := int64(1); n <= seq; n++ {
		for _, e := range turn(n) {
			flow.Evolve(state, &e)
		}
	}
	return flow.EncodeSnapshot(state).Bytes(), nil
}

func (s *longTask) Load(ctx context.Context, _ []string) ([]*persistence.Record, error) {
	snapshot, err := s.Checkpoint(ctx, "t", s.rows)
	return []*persistence.Record{{TaskRow: s.row, Snapshot: snapshot, SnapshotSeq: s.rows}}, err
}

// turn returns the events of a step that is entered, carried out and left.
func turn(n int64) []flow.Event {
	events := []flow.Event{
		{Type: flow.StepEntered, Total: 1},
		{Type: flow.AttemptsDispatched, Total: 1, Attempt: 1},
		{Type: flow.AttemptEnded, Attempt: 1, Status: string(flow.AttemptOK), Output: fmt.Append(nil, n)},
		{Type: flow.StepEnded, Status: "completed", Next: "a"},
	}
	for i := range events {
		events[i].Node, events[i].Visit, events[i].At = "a", int(n), 1000+n
	}
	if n == 1 {
		return append([]flow.Event{{Type: flow.TaskCreated, At: 1000}}, events...)
	}
	return events
}

func newLongTask(rows int64) (*longTask, *persistence.Reader) {
	s := &longTask{rows: rows, row: persistence.TaskRow{ID: "t", VersionID: "v", CreatedAt: 1000}}
	return s, persistence.NewReader(s, flow.Limits{})
}

func TestAPageOfALongHistoryReadsLittle(t *testing.T) {
	s, reader := newLongTask(3000)
	var deep flow.Place
	outputs := 0
	for p := (&flow.RunPage{More: true}); p.More; {
		var err error
		p, err = reader.Runs(t.Context(), "t", p.Next, 500, 1<<20)
		require.NoError(t, err)
		for _, r := range p.Runs {
			outputs++
			require.Equal(t, fmt.Sprint(outputs), string(r.Output))
		}
		if p.More {
			deep = p.Next
		}
	}
	require.Equal(t, 3000, outputs)

	s.read = 0
	p, err := reader.Runs(t.Context(), "t", deep, 10, 1<<20)
	require.NoError(t, err)
	require.Equal(t, "2501", string(p.Runs[0].Output))
	require.Less(t, s.read, 200, "rows and checkpoints, of 3,000")

	s.read = 0
	steps, err := reader.Steps(t.Context(), "t", flow.StepQuery{After: deep, Most: 10, Bytes: 1 << 20})
	require.NoError(t, err)
	require.Equal(t, 2501, steps.Steps[0].Visit)
	require.Less(t, s.read, 300)

	first, err := reader.Steps(t.Context(), "t", flow.StepQuery{Most: 10, Bytes: 1 << 20})
	require.NoError(t, err)
	require.Equal(t, 1, first.Steps[0].Visit)

	s.read = 0
	run, err := reader.Run(t.Context(), "t", flow.Address{Node: "a", Visit: 1777, Attempt: 1})
	require.NoError(t, err)
	require.Equal(t, "1777", string(run.Output))
	require.Less(t, s.read, 200)
	_, err = reader.Run(t.Context(), "t", flow.Address{Node: "a", Visit: 7777, Attempt: 1})
	require.ErrorIs(t, err, persistence.ErrNotFound)
}

func TestCheckpointsOfAnotherFormatArePassedOver(t *testing.T) {
	s, reader := newLongTask(300)
	s.blind = true
	p, err := reader.Runs(t.Context(), "t", flow.Place{Seq: 250, Index: 9}, 10, 1<<20)
	require.NoError(t, err)
	require.Equal(t, "251", string(p.Runs[0].Output))
	run, err := reader.Run(t.Context(), "t", flow.Address{Node: "a", Visit: 200, Attempt: 1})
	require.NoError(t, err)
	require.Equal(t, "200", string(run.Output))
}

// A task may be deleted between the reads of its row and of its journal.
func TestTheHistoryOfATaskThatIsBeingDeletedIsNotFound(t *testing.T) {
	store := &longTask{row: persistence.TaskRow{ID: "t", VersionID: "v"}}
	reader := persistence.NewReader(store, flow.Limits{})
	_, err := reader.History(t.Context(), "t")
	require.ErrorIs(t, err, persistence.ErrNotFound)
	_, err = reader.Runs(t.Context(), "t", flow.Place{}, 10, 1<<20)
	require.ErrorIs(t, err, persistence.ErrNotFound)
	_, err = reader.Fold(t.Context(), &persistence.Record{TaskRow: store.row})
	require.ErrorIs(t, err, persistence.ErrNotFound)
}

// room records what is taken, unless it refuses.
type room struct {
	refusal error
	taken   []int64
}

func (r *room) Take(_ context.Context, bytes int64) error {
	if r.refusal == nil {
		r.taken = append(r.taken, bytes)
	}
	return r.refusal
}

func (r *room) Keep(bytes int64) { r.taken = append(r.taken, bytes) }

// largeJournal is a store with one task that has rows of a megabyte.
type largeJournal struct {
	longTask
	row []byte
}

func (s *largeJournal) Rows(_ context.Context, _ string, after int64, _ persistence.Part) ([]persistence.Row, error) {
	rows := []persistence.Row{}
	for seq := after + 1; seq <= s.rows && len(rows) < 4; seq++ {
		rows = append(rows, persistence.Row{Seq: seq, Events: s.row})
	}
	return rows, nil
}

func TestAHistoryInOnePieceIsBounded(t *testing.T) {
	events := turn(1)
	events[2].Output = fmt.Appendf(nil, "%q", strings.Repeat("x", 1<<20))
	s := &largeJournal{row: flow.AppendEvents(nil, events)}
	s.longTask.row.VersionID, s.rows = "v", 10
	reader := persistence.NewReader(s, flow.Limits{})
	free := &room{}
	h, err := reader.History(persistence.InRoom(t.Context(), free), "t")
	require.NoError(t, err)
	require.Len(t, h.Runs, 10)
	require.Equal(t, int64(2*10*len(s.row)), free.taken[9])

	_, err = reader.History(persistence.InRoom(t.Context(), &room{refusal: flow.Errorf(flow.Busy, "full")}), "t")
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	s.rows = 300
	_, err = reader.History(persistence.InRoom(t.Context(), free), "t")
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "256 MiB")
}

func TestReadingALargeTaskTakesRoom(t *testing.T) {
	s, reader := newLongTask(10)
	refusal := errors.New("there is none")
	full, free := &room{refusal: refusal}, &room{}
	ctx := persistence.InRoom(t.Context(), full)
	_, err := reader.Runs(ctx, "t", flow.Place{}, 10, 1<<20)
	require.NoError(t, err)
	s.size = 5 << 20
	_, err = reader.Runs(ctx, "t", flow.Place{}, 10, 1<<20)
	require.ErrorIs(t, err, refusal)
	_, err = reader.View(ctx, "t")
	require.ErrorIs(t, err, refusal)
	_, err = reader.Runs(t.Context(), "t", flow.Place{}, 10, 1<<20)
	require.NoError(t, err, "nobody limits the member itself")
	_, err = reader.Runs(persistence.InRoom(t.Context(), free), "t", flow.Place{}, 10, 1<<20)
	require.NoError(t, err)
	require.Equal(t, []int64{6 * s.size, 2 * s.size}, free.taken, "when it has been read it takes less")
}
