package errands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// Figures are what a run came to.
type Figures struct {
	Tasks, Attempts, Redeliveries int
	Dags                          int // of the tasks, those in dag mode
	holds                         []*hold
	attempts                      map[string]*attempt            // by job
	slots                         map[string]map[string][]string // tasks that began by the clock, by schedule and slot
}

// Audit reads a store that nobody uses any more: the tasks are those that were acknowledged, and those of schedules, and their
// journals keep the promises.
func Audit(t *testing.T, setting string, want map[string]Outcome) Figures {
	ctx := t.Context()
	store, err := troupe.OpenStore(ctx, setting, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()

	rows, err := store.ListTasks(ctx, persistence.TaskFilter{Limit: 1 << 20})
	require.NoError(t, err)
	f := Figures{Tasks: len(rows), attempts: map[string]*attempt{}, slots: map[string]map[string][]string{}}
	var ids []string
	for i := range rows {
		if !f.slot(&rows[i]) {
			ids = append(ids, rows[i].ID)
		}
	}
	slices.Sort(ids)
	require.Equal(t, slices.Sorted(maps.Keys(want)), ids, "the tasks in the store are those that were acknowledged")

	reader := persistence.NewReader(store, flow.Limits{})
	for i := range rows {
		end, acknowledged := want[rows[i].ID]
		f.audit(t, store, reader, &rows[i], func(got Outcome) Outcome {
			if acknowledged {
				return end
			}
			return Outcome{"completed", "", got.Shared}
		})
	}
	nothingLeft(t, store)
	return f
}

// slot notes which slot a task has begun for. It is false for one that somebody started.
func (f *Figures) slot(row *persistence.TaskRow) bool {
	name := row.Labels[schedule.LabelName]
	if name == "" {
		return false
	}
	if f.slots[name] == nil {
		f.slots[name] = map[string][]string{}
	}
	slot := row.Labels[schedule.LabelSlot]
	f.slots[name][slot] = append(f.slots[name][slot], row.ID)
	return true
}

// audit goes through one task.
func (f *Figures) audit(t *testing.T, store persistence.Store, reader *persistence.Reader, row *persistence.TaskRow, want func(got Outcome) Outcome) {
	ctx := t.Context()
	l := ledger{task: row.ID, attempts: map[flow.Address]*attempt{}, requests: map[string]bool{}}
	story := l.read(ctx, t, store)
	view, err := reader.View(ctx, row.ID)
	require.NoError(t, err)
	plan := view.State.Root.Plan
	got := newOutcome(string(view.State.Status), view.State.Error, view.State.Root.SharedJSON(), plan.Mode() == flow.ModeDag, view.State.Result())
	ok := assert.Equal(t, want(got), got, "task %s as its journal has it", row.ID)
	ok = assert.Equal(t, got.State, row.Status, "task %s in listings", row.ID) && ok
	ok = assert.Empty(t, l.problems, "task %s", row.ID) && ok
	if !ok {
		t.Logf("the journal of task %s:\n%s", row.ID, story)
	}
	if plan.Mode() == flow.ModeDag {
		f.Dags++
	}
	for at, a := range l.attempts {
		a.programmed(view.State.Plan, at)
		f.attempts[flow.JobID(row.ID, at)] = a
	}
	f.Attempts += len(l.attempts)
	f.Redeliveries += l.redeliveries
	f.holds = append(f.holds, l.holds...)
	permits, err := store.PermitsOf(ctx, row.ID)
	require.NoError(t, err)
	assert.Empty(t, permits, "task %s has ended, and has keys", row.ID)
}

// programmed notes what is known of an attempt's program from its node.
func (a *attempt) programmed(plan *flow.Plan, at flow.Address) {
	scope := plan.ScopeOf(at.Scope)
	if scope == nil || scope.Nodes[at.Node] == nil {
		return
	}
	n := scope.Nodes[at.Node]
	if a.boxed = n.Exec.Type == flow.ExecContainer; a.boxed || n.Exec.Type.Started() {
		a.tries = n.Retry.Max + 1
	}
}

// nothingLeft holds a store to having no jobs, no tasks under way and no work outside that anybody waits for.
func nothingLeft(t *testing.T, store persistence.Store) {
	ctx := t.Context()
	left, err := store.QueueRows(ctx, nil, 0, "", 100)
	require.NoError(t, err)
	assert.Empty(t, left, "jobs are left in the queue")
	depth, err := store.QueueDepth(ctx)
	require.NoError(t, err)
	assert.Empty(t, depth)
	unfinished, err := store.Unfinished(ctx, nil, "", 100)
	require.NoError(t, err)
	assert.Empty(t, unfinished)
	outside, err := store.NextExternals(ctx, nil, 100)
	require.NoError(t, err)
	for _, x := range outside { // what is to be called off may be tried for a while after the end
		assert.True(t, x.Recalled, "work outside is looked after for %s, whose task has ended", x.Job)
	}
}

// ledger follows one journal, from the facts alone: folding passes over what does not fit.
type ledger struct {
	task         string
	attempts     map[flow.Address]*attempt
	requests     map[string]bool
	holds        []*hold
	ended        bool
	redeliveries int
	problems     []string
}

type attempt struct {
	claimed, ended bool
	deliveries     int    // in vain
	ok             bool   // it has ended well
	err            string // else
	deferred       int64  // since when it waits for work outside; 0 = it does not
	tries          int    // how many there may be of its program; 0 = it is none
	boxed          bool   // its program is in a container
}

func (l *ledger) problem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// read goes through a task's journal and retells it.
func (l *ledger) read(ctx context.Context, t *testing.T, store persistence.Store) string {
	rows, err := store.Rows(ctx, l.task, 0, persistence.Part{Rows: 1 << 20, Bytes: 1 << 40})
	require.NoError(t, err)
	var story strings.Builder
	for i, row := range rows {
		if row.Seq != int64(i+1) {
			l.problem("journal row %d has number %d", i+1, row.Seq)
		}
		events, err := flow.DecodeEvents(row.Events)
		require.NoError(t, err, "task %s, row %d", l.task, row.Seq)
		for k := range events {
			e := &events[k]
			fmt.Fprintf(&story, "%4d %d %s %s %s %s %s\n", row.Seq, e.At, e.Type, e.Address(), e.Status, e.Worker, e.Error)
			l.event(e)
		}
	}
	if !l.ended {
		l.problem("the task has not ended")
	}
	return story.String()
}

func (l *ledger) event(e *flow.Event) {
	if l.ended && e.Type != flow.SignalReceived {
		l.problem("%s at %s after the task's end", e.Type, e.Address())
	}
	if e.Request != "" {
		if l.requests[e.Request] {
			l.problem("request %s had its effect twice", e.Request)
		}
		l.requests[e.Request] = true
	}
	switch e.Type {
	case flow.TaskCreated:
		l.asks(flow.Address{Attempt: 1}, e, l.permits(e))
	case flow.TaskEnded:
		l.ended = true
		l.letsGo("")
	case flow.PermitGranted:
		l.granted(e)
	case flow.AttemptsStarted:
		l.started(e)
	case flow.AttemptClaimed, flow.AttemptReturned, flow.AttemptPassed, flow.AttemptDeferred, flow.AttemptEnded:
		l.moved(e)
	}
}

// permits are those that an event asks for.
func (l *ledger) permits(e *flow.Event) (list []flow.Permit) {
	if len(e.Permits) > 0 {
		if err := json.Unmarshal(e.Permits, &list); err != nil {
			l.problem("%s asks for %s: %v", e.Address(), e.Permits, err)
		}
	}
	return list
}

func (l *ledger) started(e *flow.Event) {
	permits := l.permits(e)
	for i := range e.Total {
		at := e.Address()
		at.Unit += i
		if l.attempts[at] != nil {
			l.problem("attempt %s was started twice", at)
		}
		l.attempts[at] = &attempt{}
		l.asks(at, e, permits)
	}
}

func (l *ledger) moved(e *flow.Event) {
	a := l.attempts[e.Address()]
	if a == nil || a.ended {
		l.problem("%s of attempt %s, which is not in flight", e.Type, e.Address())
		return
	}
	switch e.Type {
	case flow.AttemptClaimed:
		if a.claimed {
			l.problem("attempt %s was claimed by two", e.Address())
		}
		a.claimed = true
	case flow.AttemptReturned:
		if a.claimed = false; e.Total > a.deliveries { // else it was given back unbegun
			l.redeliveries++
		}
		a.deliveries = e.Total
	case flow.AttemptDeferred:
		if a.deferred > 0 {
			l.problem("attempt %s waits for work outside for the second time", e.Address())
		}
		a.deferred = e.At
	case flow.AttemptEnded:
		a.ended, a.ok, a.err = true, e.Status == string(flow.AttemptOK), e.Error
		l.letsGo(flow.JobID(l.task, e.Address()))
	}
}
