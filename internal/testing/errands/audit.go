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

// Figures are the measurements of a run.
type Figures struct {
	Tasks, Attempts, Redeliveries int
	Dags                          int // number of tasks in dag mode
	holds                         []*permitHold
	attempts                      map[string]*attemptRecord // by job
	// tasks of schedules, by schedule and slot
	slots map[string]map[string][]string
}

// Audit reads the store after all members have ended. It checks that the tasks are exactly the
// acknowledged tasks and the tasks of schedules, and that their journals keep the promises.
func Audit(t *testing.T, setting string, want map[string]Outcome) Figures {
	ctx := t.Context()
	store, err := troupe.OpenStore(ctx, setting, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()

	rows, err := store.ListTasks(ctx, persistence.TaskFilter{Limit: 1 << 20})
	require.NoError(t, err)
	f := Figures{Tasks: len(rows), attempts: map[string]*attemptRecord{}, slots: map[string]map[string][]string{}}
	var ids []string
	for i := range rows {
		if !f.noteSlot(&rows[i]) {
			ids = append(ids, rows[i].ID)
		}
	}
	slices.Sort(ids)
	require.Equal(t, slices.Sorted(maps.Keys(want)), ids, "the tasks in the store are those that were acknowledged")

	reader := persistence.NewReader(store, flow.Limits{})
	for i := range rows {
		end, acknowledged := want[rows[i].ID]
		f.auditTask(t, store, reader, &rows[i], func(got Outcome) Outcome {
			if acknowledged {
				return end
			}
			return Outcome{"completed", "", got.Shared}
		})
	}
	checkNothingLeft(t, store)
	return f
}

// noteSlot records the slot of a schedule's task. It returns false for other tasks.
func (f *Figures) noteSlot(row *persistence.TaskRow) bool {
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

// auditTask checks a task and its journal.
func (f *Figures) auditTask(t *testing.T, store persistence.Store, reader *persistence.Reader,
	row *persistence.TaskRow, want func(got Outcome) Outcome) {
	ctx := t.Context()
	l := journalLedger{task: row.ID, attempts: map[flow.Address]*attemptRecord{}, requests: map[string]bool{}}
	story := l.readJournal(ctx, t, store)
	view, err := reader.View(ctx, row.ID)
	require.NoError(t, err)
	plan := view.State.Root.Plan
	got := newOutcome(string(view.State.Status), view.State.Error, view.State.Root.SharedJSON(),
		plan.Mode() == flow.ModeDag, view.State.Result())
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
		a.noteProgram(view.State.Plan, at)
		f.attempts[flow.JobID(row.ID, at)] = a
	}
	f.Attempts += len(l.attempts)
	f.Redeliveries += l.redeliveries
	f.holds = append(f.holds, l.holds...)
	permits, err := store.PermitsOf(ctx, row.ID)
	require.NoError(t, err)
	assert.Empty(t, permits, "task %s has ended, and has keys", row.ID)
}

// noteProgram records the program of an attempt's node.
func (a *attemptRecord) noteProgram(plan *flow.Plan, at flow.Address) {
	scope := plan.ScopeOf(at.Scope)
	if scope == nil || scope.Nodes[at.Node] == nil {
		return
	}
	n := scope.Nodes[at.Node]
	if a.inContainer = n.Exec.Type == flow.ExecContainer; a.inContainer || n.Exec.Type.Started() {
		a.tries = n.Retry.Max + 1
	}
}

// checkNothingLeft checks that the store holds no jobs, no unfinished tasks and no awaited external
// work.
func checkNothingLeft(t *testing.T, store persistence.Store) {
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
	for _, x := range outside { // cancellations may be retried for a while after the end
		assert.True(t, x.Recalled, "work outside is looked after for %s, whose task has ended", x.Job)
	}
}

// journalLedger checks one journal by its raw events, because folding skips invalid ones.
type journalLedger struct {
	task         string
	attempts     map[flow.Address]*attemptRecord
	requests     map[string]bool
	holds        []*permitHold
	ended        bool
	redeliveries int
	problems     []string
}

type attemptRecord struct {
	claimed, ended bool
	deliveries     int    // deliveries lost
	ok             bool   // whether the attempt has succeeded
	err            string // error otherwise
	deferred       int64  // time since which it waits for external work; 0 if it does not
	tries          int    // maximal number of attempts of its program; 0 if it has none
	inContainer    bool   // whether the program of the attempt runs in a container
}

func (l *journalLedger) addProblem(format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// readJournal checks a task's journal and returns it as text.
func (l *journalLedger) readJournal(ctx context.Context, t *testing.T, store persistence.Store) string {
	rows, err := store.Rows(ctx, l.task, 0, persistence.Part{Rows: 1 << 20, Bytes: 1 << 40})
	require.NoError(t, err)
	var story strings.Builder
	for i, row := range rows {
		if row.Seq != int64(i+1) {
			l.addProblem("journal row %d has number %d", i+1, row.Seq)
		}
		events, err := flow.DecodeEvents(row.Events)
		require.NoError(t, err, "task %s, row %d", l.task, row.Seq)
		for k := range events {
			e := &events[k]
			fmt.Fprintf(&story, "%4d %d %s %s %s %s %s\n", row.Seq, e.At, e.Type, e.Address(), e.Status, e.Worker, e.Error)
			l.applyEvent(e)
		}
	}
	if !l.ended {
		l.addProblem("the task has not ended")
	}
	return story.String()
}

func (l *journalLedger) applyEvent(e *flow.Event) {
	if l.ended && e.Type != flow.SignalReceived {
		l.addProblem("%s at %s after the task's end", e.Type, e.Address())
	}
	if e.Request != "" {
		if l.requests[e.Request] {
			l.addProblem("request %s had its effect twice", e.Request)
		}
		l.requests[e.Request] = true
	}
	switch e.Type {
	case flow.TaskCreated:
		l.addHolds(flow.Address{Attempt: 1}, e, l.permitsOf(e))
	case flow.TaskEnded:
		l.ended = true
		l.releaseHolds("")
	case flow.PermitGranted:
		l.grantHold(e)
	case flow.AttemptsDispatched:
		l.startAttempts(e)
	case flow.AttemptClaimed, flow.AttemptRequeued, flow.AttemptMoved, flow.AttemptDeferred, flow.AttemptEnded:
		l.moveAttempt(e)
	}
}

// permitsOf returns the permits that an event requests.
func (l *journalLedger) permitsOf(e *flow.Event) (list []flow.Permit) {
	if len(e.Permits) > 0 {
		if err := json.Unmarshal(e.Permits, &list); err != nil {
			l.addProblem("%s asks for %s: %v", e.Address(), e.Permits, err)
		}
	}
	return list
}

func (l *journalLedger) startAttempts(e *flow.Event) {
	permits := l.permitsOf(e)
	for i := range e.Total {
		at := e.Address()
		at.Unit += i
		if l.attempts[at] != nil {
			l.addProblem("attempt %s was started twice", at)
		}
		l.attempts[at] = &attemptRecord{}
		l.addHolds(at, e, permits)
	}
}

func (l *journalLedger) moveAttempt(e *flow.Event) {
	a := l.attempts[e.Address()]
	if a == nil || a.ended {
		l.addProblem("%s of attempt %s, which is not in flight", e.Type, e.Address())
		return
	}
	switch e.Type {
	case flow.AttemptClaimed:
		if a.claimed {
			l.addProblem("attempt %s was claimed by two", e.Address())
		}
		a.claimed = true
	case flow.AttemptRequeued:
		if a.claimed = false; e.Total > a.deliveries { // otherwise it was returned before it began
			l.redeliveries++
		}
		a.deliveries = e.Total
	case flow.AttemptDeferred:
		if a.deferred > 0 {
			l.addProblem("attempt %s waits for work outside for the second time", e.Address())
		}
		a.deferred = e.At
	case flow.AttemptEnded:
		a.ended, a.ok, a.err = true, e.Status == string(flow.AttemptOK), e.Error
		l.releaseHolds(flow.JobID(l.task, e.Address()))
	}
}
