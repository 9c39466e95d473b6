package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// CodeCounts counts events of functions, to show that such events occur in a kind of run.
type CodeCounts struct {
	Calls    int // calls by carriers
	Works    int // tries of steps that have begun
	Repeated int // steps that began once more in another delivery
	Stale    int // results of older deliveries that were refused
	Undone   int // recorded undos
	Restarts int
	Races    int
	Waits    int // recorded ends of waits
	Canceled int // tasks that were canceled
	Failed   int // tasks that failed
	Replays  int // replays of prefixes that were compared
}

// codeLedger keeps the actions of functions, and checks them against the promises of durable
// functions.
type codeLedger struct {
	w      *simWorld
	check  *commitChecker
	tasks  map[string]*codeRecord
	counts *CodeCounts
}

// codeRecord has the actions of the function of a task. Places have the prefix of their restart.
type codeRecord struct {
	steps  []flow.CodeStep         // recorded, in their order, of all lives
	stored map[string]int          // positions of the recorded steps, by place
	asked  map[string]map[int]bool // deliveries that have reported a result, by place
	given  map[string]int          // deliveries in which work has begun, by place
	keys   map[string]string       // idempotency keys, by place
	places map[string]string       // places, by idempotency key
	tries  map[string]int          // tries that have begun, by place
	undoes map[string]string       // places of the undone steps, by the place of the undo
	ops    map[string]*codeOp      // operations whose work has begun, by place
}

func newCodeLedger(w *simWorld, check *commitChecker, counts *CodeCounts) *codeLedger {
	return &codeLedger{w: w, check: check, tasks: map[string]*codeRecord{}, counts: counts}
}

func (l *codeLedger) recordOf(task string) *codeRecord {
	r := l.tasks[task]
	if r == nil {
		r = &codeRecord{stored: map[string]int{}, asked: map[string]map[int]bool{}, keys: map[string]string{},
			places: map[string]string{}, tries: map[string]int{}, undoes: map[string]string{}, ops: map[string]*codeOp{},
			given: map[string]int{}}
		l.tasks[task] = r
	}
	return r
}

// stepPlace returns the place of a recorded step. A pause between tries has the place of its step.
func stepPlace(s *flow.CodeStep) string {
	if s.Kind == flow.CodeRetry {
		return fmt.Sprint(s.Place(), " pause ", s.Tries)
	}
	return s.Place()
}

// noteEvent checks an event of a function that is about to be stored.
func (l *codeLedger) noteEvent(s *flow.State, e *flow.Event) {
	if e.Type == flow.AttemptHeld && strings.HasPrefix(e.Error, "nondeterministic: ") {
		l.w.failRun("the function of task %s is held: %s", s.Task, e.Error)
	}
	if e.Type != flow.StepRecorded {
		return
	}
	r := l.recordOf(s.Task)
	step := flow.CodeStep{Name: e.Node, Use: e.Visit, Kind: flow.CodeKind(e.Action), Output: e.Output, Error: e.Error,
		Details: e.Details, Tries: e.Total, StartedAt: e.Until, EndedAt: e.At, Hash: e.InputRef}
	place := stepPlace(&step)
	if _, twice := r.stored[place]; twice {
		l.w.failRun("task %s: the step %s is recorded twice", s.Task, place)
	}
	r.stored[place] = len(r.steps)
	r.steps = append(r.steps, step)
	switch step.Kind {
	case flow.CodeUndo:
		l.counts.Undone++
	case flow.CodeRace:
		l.counts.Races++
	}
	switch step.Kind {
	case flow.CodeSleep, flow.CodeRetry, flow.CodeSignal, flow.CodeApproval:
		l.counts.Waits++
		l.checkWait(s, e)
	default:
		if given := deliveryOf(s); !r.asked[place][given] {
			l.w.failRun("task %s: the step %s is recorded, of the deliveries %v, while its function has delivery %d", s.Task,
				place, r.asked[place], given)
		}
	}
}

// checkWait checks that a wait does not end too early. A signal may end it at any time.
func (l *codeLedger) checkWait(s *flow.State, e *flow.Event) {
	for _, st := range s.Root.Function.Waits {
		if st.Key == e.Node && st.Visit == e.Visit && st.AwaitedKey() == "" && e.At < st.Due {
			l.w.failRun("task %s: the wait %s ends at %d, its time is %d", s.Task, e.Node, e.At, st.Due)
		}
	}
}

// deliveryOf returns the number of the delivery of a function; -1 if it has none.
func deliveryOf(s *flow.State) int {
	if st := s.Root.Step; st != nil && len(st.Units) == 1 && st.Units[0].Live != nil {
		return st.Units[0].Live.Given
	}
	return -1
}

// noteResults notes which results a carrier reports.
func (l *codeLedger) noteResults(job *flow.Job, steps []flow.CodeStep) {
	r := l.recordOf(job.Task)
	for i := range steps {
		place := stepPlace(&steps[i])
		if r.asked[place] == nil {
			r.asked[place] = map[int]bool{}
		}
		r.asked[place][job.Given] = true
	}
}

// isCurrent reports whether a delivery is the newest stored delivery.
func (l *codeLedger) isCurrent(job *flow.Job) bool {
	t := l.check.tasks[job.Task]
	if t == nil || deliveryOf(t.state) != job.Given {
		return false
	}
	st := t.state.Root.Step
	return st.Visit == job.Visit && int(st.Units[0].Attempt) == job.Attempt
}

// checkStored checks that results are stored before their function receives them.
func (l *codeLedger) checkStored(c *codeCarrier, job *flow.Job, steps []flow.CodeStep) {
	for i := range steps {
		if _, stored := l.recordOf(job.Task).stored[stepPlace(&steps[i])]; !stored {
			l.w.failRun("%s: the result of %s of task %s is acknowledged and not stored", c.h.name, stepPlace(&steps[i]), job.Task)
		}
	}
}

// checkVisible checks that a function continues only after a stored result.
func (l *codeLedger) checkVisible(c *codeCarrier, id, place string) {
	job := c.deliveries[id]
	place = job.RestartPrefix() + place
	if _, stored := l.recordOf(job.Task).stored[place]; !stored {
		l.w.failRun("%s: the function of task %s goes on behind %s, whose result is not stored", c.h.name, job.Task, place)
	}
}

// beginWork checks that work may begin, and reports whether it fails.
func (l *codeLedger) beginWork(c *codeCarrier, job *flow.Job, work *codeWork) (fails bool) {
	r, place := l.recordOf(job.Task), job.RestartPrefix()+work.place
	if _, stored := r.stored[place]; stored && l.isCurrent(job) {
		l.w.failRun("%s: the step %s of task %s is recorded and runs again, in delivery %d", c.h.name, place, job.Task, job.Given)
	}
	if key, ran := r.keys[place]; ran && key != work.key {
		l.w.failRun("%s: the step %s of task %s has the key %q, and had %q before", c.h.name, place, job.Task, work.key, key)
	}
	if other, used := r.places[work.key]; used && other != place {
		l.w.failRun("%s: the steps %s and %s of task %s have one key, %q", c.h.name, place, other, job.Task, work.key)
	}
	r.keys[place], r.places[work.key] = work.key, place
	if work.undoes != "" {
		undone := job.RestartPrefix() + work.undoes
		if before, known := r.undoes[place]; known && before != undone {
			l.w.failRun("%s: the step %s of task %s undoes %s, and did undo %s", c.h.name, place, job.Task, undone, before)
		}
		if _, stored := r.stored[undone]; !stored {
			l.w.failRun("%s: the step %s of task %s undoes %s, which is not recorded", c.h.name, place, job.Task, undone)
		}
		r.undoes[place] = undone
	}
	l.counts.Works++
	if before, ran := r.given[place]; ran && before != job.Given {
		l.counts.Repeated++
	}
	r.ops[place], r.given[place] = work.op, job.Given
	r.tries[place]++
	l.w.addTrace("%s begins %s of %s, delivery %d", c.h.name, place, job.Task, job.Given)
	return r.tries[place] <= work.op.fails && work.undoes == ""
}

// lifePrefix returns the prefix of the places of a function that has begun anew some times.
func lifePrefix(life int) string {
	if life == 0 {
		return ""
	}
	return fmt.Sprint("~", life+1, "/")
}

// lifeOf returns the recorded steps of a function between two restarts.
func (r *codeRecord) lifeOf(life int) (steps []flow.CodeStep) {
	for _, s := range r.steps {
		if strings.TrimSuffix(s.Name, flow.TrimRestartPrefix(s.Name)) == lifePrefix(life) {
			steps = append(steps, s)
		}
	}
	return steps
}

// checkUndos checks the steps of the last life that were undone: newest first, and once. If the
// undoing is complete, each step that has an undo was undone.
func (l *codeLedger) checkUndos(task string, steps []flow.CodeStep, complete bool) {
	r := l.recordOf(task)
	undone, last := map[string]bool{}, len(steps)
	for i := range steps {
		if steps[i].Kind != flow.CodeUndo {
			continue
		}
		step := r.undoes[steps[i].Place()]
		at := slices.IndexFunc(steps, func(s flow.CodeStep) bool { return s.Kind == flow.CodeDo && s.Place() == step })
		if at < 0 || at >= last || undone[step] {
			l.w.failRun("task %s: %s undoes %q, which is number %d of its steps, behind number %d", task, steps[i].Place(), step, at, last)
		}
		undone[step], last = true, at
	}
	for i := range steps {
		s := &steps[i]
		op := r.ops[s.Place()]
		if complete && s.Kind == flow.CodeDo && s.Error == "" && op != nil && op.undo && !undone[s.Place()] {
			l.w.failRun("task %s has ended without a result, and %s is not undone", task, s.Place())
		}
	}
}

// verifyFunction checks the end of the task of a function.
func (u *simUser) verifyFunction(s *flow.State) {
	record := u.ledger.recordOf(u.task)
	var in codeInput
	_ = json.Unmarshal(u.play.params, &in)
	last := s.Root.Visits[flow.CodeMain] - 1
	u.ledger.counts.Restarts += last
	steps := record.lifeOf(last)
	u.ledger.checkUndos(u.task, steps, s.Status != flow.TaskCompleted && !u.forced)
	if s.Status == flow.TaskCanceled && u.cancels {
		u.ledger.counts.Canceled++
		return
	}
	out, failed, wrong := evaluateFunction(u.play.code, in, record)
	var result codeInput
	_ = json.Unmarshal(s.Root.Shared[flow.CodeResult], &result)
	switch {
	case wrong != nil:
		u.w.failRun("task %s: %v", u.task, wrong)
	case failed == nil && (s.Status != flow.TaskCompleted || result != out):
		u.w.failRun("task %s is %s with %+v and the error %q, it should return %+v", u.task, s.Status, result, s.Error, out)
	case failed != nil && (s.Status != flow.TaskFailed || !strings.Contains(s.Error, failed.Error())):
		u.w.failRun("task %s is %s with the error %q, it should fail with %q", u.task, s.Status, s.Error, failed)
	default:
		if failed != nil {
			u.ledger.counts.Failed++
		}
		u.checkReplays(s, steps, out, failed)
	}
}
