package spans_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/member/spans"
	"github.com/troupe-engine/troupe/persistence"
)

// journals is a store with journals that counts their reads.
type journals struct {
	persistence.Store
	mu    sync.Mutex
	rows  map[string][]persistence.Row
	reads atomic.Int64
}

func (j *journals) Version(context.Context, string) (*persistence.Version, error) {
	return &persistence.Version{Number: 1}, nil
}

func (j *journals) Rows(_ context.Context, task string, after int64, _ persistence.Part) ([]persistence.Row, error) {
	j.reads.Add(1)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows[task][after:], nil
}

// tallied counts how often each span was exported.
type tallied struct {
	mu   sync.Mutex
	told map[string]int
}

func (s *tallied) Tell(_ context.Context, list []spans.Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range list {
		s.told[span.Task+" "+span.Name]++
	}
	return nil
}

func (s *tallied) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.told {
		n += times
	}
	return n
}

// telling exports rows of many tasks with equal journals.
type telling struct {
	*testing.T
	store  *journals
	sink   *tallied
	teller *spans.Teller
	plan   *flow.Plan
	rows   int64
}

func newTelling(t *testing.T) *telling {
	tl := &telling{T: t, store: &journals{rows: map[string][]persistence.Row{}},
		sink: &tallied{told: map[string]int{}}, plan: &flow.Plan{FlowSlug: "f"}}
	tl.teller = spans.Start(spans.Options{Store: tl.store, Sink: tl.sink, Logger: slog.New(slog.DiscardHandler)})
	return tl
}

// row stores a row of each task, which ends the given number of spans per task.
func (tl *telling) row(tasks, each int, events ...flow.Event) {
	tl.Helper()
	tl.rows++
	text, before := flow.AppendEvents(nil, events), tl.sink.count()
	for n := range tasks {
		task := fmt.Sprintf("t%05d", n)
		tl.store.mu.Lock()
		tl.store.rows[task] = append(tl.store.rows[task], persistence.Row{Seq: tl.rows, Events: text})
		tl.store.mu.Unlock()
		tl.teller.Stored(actors.StoredRow{Task: task, Plan: tl.plan, Version: "v", Seq: tl.rows,
			Events: text, Ended: events[len(events)-1].Type == flow.TaskEnded})
		if n%4000 == 3999 || n == tasks-1 { // as many as can wait without drops
			require.Eventually(tl, func() bool { return tl.sink.count() == before+each*(n+1) }, time.Minute, time.Millisecond)
		}
	}
}

// end requires that every span was exported once.
func (tl *telling) end() {
	tl.teller.Close(tl.Context())
	for span, times := range tl.sink.told {
		require.Equal(tl, 1, times, span)
	}
}

func entered(node string) flow.Event {
	return flow.Event{Type: flow.StepEntered, At: 1, Node: node, Visit: 1}
}
func over(node string) flow.Event {
	return flow.Event{Type: flow.StepEnded, At: 2, Node: node, Visit: 1}
}

var begun, done = flow.Event{Type: flow.TaskCreated, At: 1}, flow.Event{Type: flow.TaskEnded, At: 3, Status: "completed"}

func TestTenThousandTasksThatWaitAreRemembered(t *testing.T) {
	tl := newTelling(t)
	tl.row(10_000, 1, begun, entered("a"))
	tl.row(10_000, 1, over("a"), entered("b"))
	tl.row(10_000, 2, over("b"), done)
	tl.end()
	require.Zero(t, tl.store.reads.Load())
}

func TestTheJournalOfADroppedTaskIsReadOnceMore(t *testing.T) {
	tl := newTelling(t)
	many := []flow.Event{begun} // only some hundred tasks of this size fit into memory
	for n := range 500 {
		many = append(many, entered(fmt.Sprint(n)))
	}
	const tasks = 300
	tl.row(tasks, 1, many...)
	for range 5 {
		tl.row(tasks, 0, flow.Event{Type: flow.SignalReceived, At: 2})
	}
	require.Zero(t, tl.store.reads.Load())
	tl.row(1, 501, done)
	tl.end()
	require.EqualValues(t, 2, tl.store.reads.Load(), "what was told, and what was not")
}
