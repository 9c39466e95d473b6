package sim

import (
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// commitChecker observes every commit, every execution of a job and every answer, and checks them
// against the promises.
type commitChecker struct {
	w      *simWorld
	store  *storeModel
	plans  map[string]*flow.Plan     // by version
	drains map[string]bool           // versions whose tasks start no jobs after a gentle cancel
	undo   map[*flow.PlanNode]string // compensation keys by node
	limits *flow.Limits
	tasks  map[string]*taskShadow
	former map[string]*taskShadow // tokens and attempts of histories that the store has lost

	timetable *scheduleUser
	ledger    *codeLedger
	planned   bool              // whether only planned moves happen
	carriers  map[string]string // executor of each job, by job id
	refused   map[string]bool   // tasks for which the store has refused a value
	// start times of holders limited by a rate, by key and holder
	rateStarts map[string]map[string]int64

	onJobMoved func(task string, e *flow.Event) // called when a job moves to another member
}

// taskShadow is the state of a task according to its journal alone.
type taskShadow struct {
	state    *flow.State
	deleted  bool // deleted together with its flow
	seq      int64
	ended    bool
	drains   bool // nothing starts after a gentle cancel
	retries  int
	at       int64
	requests map[string]flow.EventType // requests that had an effect, with the resulting event
	tokens   map[string]bool           // claim tokens
	begun    map[flow.Address]bool     // attempts known to have begun
	// attempts with external work, according to the stored events
	working    map[flow.Address]bool
	lostCounts map[flow.Address]int      // number of losses, by attempt
	attempts   map[flow.Address]bool     // started attempts; true if they have ended
	promised   map[*flow.PlanNode]string // compensation keys by node
	// units to be undone if the task does not complete, in order of completion
	owed          []owedUndo
	reruns        *rerunWatcher
	permits       []taskPermit
	takenSignals  map[string]bool // taken signals, by node and number
	waitedOutside bool            // whether the task has waited for external work
}

// newShadow returns the shadow of a new task.
func (c *commitChecker) newShadow(task, version string) *taskShadow {
	plan := c.plans[version]
	return &taskShadow{state: flow.NewState(task, plan), drains: c.drains[version], promised: c.undo, requests: map[string]flow.EventType{},
		tokens: map[string]bool{}, attempts: map[flow.Address]bool{}, begun: map[flow.Address]bool{}, working: map[flow.Address]bool{},
		lostCounts: map[flow.Address]int{}, reruns: newAgain(plan), takenSignals: map[string]bool{}}
}

func newChecker(w *simWorld) *commitChecker {
	return &commitChecker{w: w, plans: map[string]*flow.Plan{}, drains: map[string]bool{}, undo: map[*flow.PlanNode]string{},
		tasks: map[string]*taskShadow{}, former: map[string]*taskShadow{}, carriers: map[string]string{}, refused: map[string]bool{},
		rateStarts: map[string]map[string]int64{}}
}

// checkCommit checks a commit that was just written.
func (c *commitChecker) checkCommit(incarnation string, commit *persistence.Commit) {
	if c.store.findMember(incarnation) == nil {
		c.w.failRun("%s wrote to task %s after it was fenced off", incarnation, commit.Task)
	}
	t := c.tasks[commit.Task]
	// an idempotency key may be reused while its flow is being deleted
	if t == nil || t.deleted && commit.Create != nil {
		t = c.newShadow(commit.Task, commit.Create.VersionID)
		c.tasks[commit.Task] = t
		if c.timetable != nil && commit.Create.VersionID == timetableVersion {
			c.timetable.checkBegin(commit)
		}
	}
	if t.deleted {
		c.w.failRun("%s wrote to task %s, which was deleted", incarnation, commit.Task)
	}
	if commit.Events != nil {
		c.checkRow(incarnation, t, commit)
	}
	if commit.Rest != nil {
		c.w.addTrace("%s puts %s/%d to rest: %+v", incarnation, commit.Task[len(commit.Task)-4:], commit.Seq, *commit.Rest)
	}
	if commit.Seq != t.seq {
		c.w.failRun("task %s: a commit after row %d has number %d", commit.Task, t.seq, commit.Seq)
	}
	c.checkSideEffects(t, commit)
}

func (c *commitChecker) checkRow(incarnation string, t *taskShadow, commit *persistence.Commit) {
	t.seq++
	events, err := flow.DecodeEvents(commit.Events)
	if err != nil {
		c.w.failRun("task %s, row %d: %v", commit.Task, commit.Seq, err)
		return
	}
	for i := range events {
		e := &events[i]
		c.w.addTrace("%s writes %s/%d: %s %s %s", incarnation, commit.Task[len(commit.Task)-4:], commit.Seq, e.Type, e.Address(), e.Status)
		if e.At < t.at || e.At > c.w.storeNow().Add(c.w.faults.clockLead()).UnixMilli() {
			c.w.failRun("task %s, row %d: an event at %d after one at %d, when it is %d",
				commit.Task, commit.Seq, e.At, t.at, c.w.storeNow().UnixMilli())
		}
		t.at = e.At
		if e.Type == flow.AttemptRequeued && e.Total >= c.limits.Deliveries {
			c.w.failRun("task %s: %s is delivered more than %d times", commit.Task, e.Address(), c.limits.Deliveries)
		}
		if e.Type == flow.AttemptMoved {
			c.onJobMoved(commit.Task, e)
		}
		if c.ledger != nil {
			c.ledger.noteEvent(t.state, e)
		}
		c.inTime(t, e)
		c.checkTakenOnce(t, e)
		if err := t.applyEvent(e); err != nil {
			c.w.failRun("task %s, row %d: %v", commit.Task, commit.Seq, err)
		}
		flow.Evolve(t.state, e)
	}
}

// notePlan records the plan of a version before a defect changes it. It also records whether the
// version's tasks drain, and which nodes they undo.
func (c *commitChecker) notePlan(version string, plan *flow.Plan) {
	c.plans[version], c.drains[version] = plan, plan.Profile != flow.ProfilePgflow
	promisedUndo(plan.Root, c.undo)
}

// late is the maximal delay of a timer, if at most one member is replaced during the delay.
const late = 20 * time.Second

// checkTakenOnce checks that no signal ends two visits of a node.
func (c *commitChecker) checkTakenOnce(t *taskShadow, e *flow.Event) {
	st := t.endingStep(e)
	if st == nil || st.Signal == nil {
		return
	}
	by := fmt.Sprint(e.Node, " ", st.Signal.Number)
	if t.takenSignals[by] {
		c.w.failRun("task %s: signal %d has ended an earlier visit of %s already", t.state.Task, st.Signal.Number, e.Address())
	}
	t.takenSignals[by] = true
}

// inTime checks that timers fire neither early nor later than late.
func (c *commitChecker) inTime(t *taskShadow, e *flow.Event) {
	st := t.endingStep(e)
	if st == nil || st.Node.Kind != flow.KindTimer {
		return
	}
	after := time.Duration(e.At-st.Due) * time.Millisecond
	if after < 0 || after > late && c.w.faults.calmAt == 0 {
		c.w.failRun("task %s: timer %s ends %s after its time", t.state.Task, e.Address(), after)
	}
}

// endingStep returns the step that an event ends; nil if it ends none that has begun.
func (t *taskShadow) endingStep(e *flow.Event) *flow.Step {
	sc := t.state.Scope(e.Scope)
	if e.Type != flow.StepEnded || sc == nil {
		return nil
	}
	if n := sc.Plan.Nodes[e.Node]; sc.Plan.Mode() == flow.ModeDag && n != nil {
		return sc.Nodes[n.Dag.Index].Step
	}
	return sc.Step
}

// applyEvent applies an event to the shadow of a task.
func (t *taskShadow) applyEvent(e *flow.Event) error {
	if t.ended && e.Type != flow.SignalReceived && e.Type != flow.TaskRetried && !t.isDirect(e) {
		return fmt.Errorf("%s after the task's end", e.Type)
	}
	if e.Request != "" {
		if _, twice := t.requests[e.Request]; twice {
			return fmt.Errorf("request %s had its effect twice", e.Request)
		}
		t.requests[e.Request] = e.Type
	}
	if err := t.checkDrained(e); err != nil {
		return err
	}
	t.reruns.noteEvent(e)
	switch e.Type {
	case flow.TaskEnded:
		t.ended = true
	case flow.StepEnded, flow.StepEntered:
		return t.checkCompensations(e)
	case flow.TaskClosing:
		if e.Status == string(flow.TaskCompleted) {
			t.owed = nil // even if the finally node fails, nothing is undone
		}
	case flow.TaskRetried:
		t.ended = false
		t.retries++
	case flow.AttemptsDispatched:
		return t.noteStarted(e)
	case flow.AttemptDeferred:
		t.waitedOutside = true
	case flow.AttemptClaimed:
		t.tokens[e.Token] = true
		t.begun[e.Address()] = true
	case flow.AttemptStarted:
		if e.Until > 0 && t.working[e.Address()] {
			return fmt.Errorf("that somebody is at attempt %s abroad is stored twice", e.Address())
		}
		t.begun[e.Address()], t.working[e.Address()] = true, e.Until > 0
	case flow.AttemptRequeued:
		if e.Total > t.lostCounts[e.Address()] && !t.begun[e.Address()] {
			return fmt.Errorf("attempt %s is said to be lost, and nobody had begun it", e.Address())
		}
		t.lostCounts[e.Address()], t.begun[e.Address()] = e.Total, false
	case flow.AttemptEnded:
		if over, started := t.attempts[e.Address()]; over || !started {
			return fmt.Errorf("attempt %s ends, which was started: %v, over before: %v", e.Address(), started, over)
		}
		t.attempts[e.Address()] = true
		return t.checkCompensations(e)
	}
	return nil
}

// checkDrained rejects events that start something in a gently canceled task. In pgflow's profile
// queued jobs and retries continue, so it is not checked there.
func (t *taskShadow) checkDrained(e *flow.Event) error {
	if !t.drains || t.state.CancelAt == 0 || t.state.Closing != nil {
		return nil
	}
	switch e.Type {
	case flow.StepEntered, flow.AttemptsDispatched, flow.AttemptClaimed, flow.PermitGranted:
		if !t.isDirect(e) {
			return fmt.Errorf("%s of %s after the task was canceled gently", e.Type, e.Address())
		}
	}
	return nil
}

// isDirect reports whether an event completes a direct unit of a canceled task from outside.
func (t *taskShadow) isDirect(e *flow.Event) bool {
	if t.state.CancelAt == 0 || e.Type != flow.AttemptsDispatched && e.Type != flow.AttemptEnded && e.Type != flow.StepEnded {
		return false
	}
	sc := t.state.Scope(e.Scope)
	return sc != nil && sc.Plan.Nodes[e.Node] != nil && sc.Plan.Nodes[e.Node].Exec.Type == flow.ExecDirect
}

func (t *taskShadow) noteStarted(e *flow.Event) error {
	for i := range e.Total {
		a := e.Address()
		a.Unit += i
		if _, twice := t.attempts[a]; twice {
			return fmt.Errorf("attempt %s was started twice", a)
		}
		t.attempts[a] = false
	}
	return nil
}

// checkSameAnswers checks that repeated orders got equal answers: an executed order gets its first
// answer again.
func (c *commitChecker) checkSameAnswers(orders engine.Orders, first, second []byte) {
	a, b := outcomesIn(first), outcomesIn(second)
	for i, o := range orders {
		if o.Request == "" || i >= len(a) || i >= len(b) || a[i].Err != nil || isUndecided(b[i].Err) {
			continue
		}
		if b[i].Err != nil || a[i].First != b[i].First || len(b[i].Events) > 0 {
			c.w.failRun("%T %s to task %s is answered with %+v, and with %+v the second time", o.Command, o.Request, o.Task, a[i], b[i])
		}
	}
}

func outcomesIn(answer []byte) engine.Outcomes {
	if m, _ := engine.Unmarshal(answer); m != nil {
		if outcomes, ok := m.(*engine.Outcomes); ok {
			return *outcomes
		}
	}
	return nil
}

// isUndecided reports whether an error leaves the outcome of a command open.
func isUndecided(err error) bool {
	switch flow.ErrorKindOf(err) {
	case flow.Busy, flow.Moved, "":
		return err != nil
	}
	return false
}

// checkCarried checks that a job about to be carried out was stored.
func (c *commitChecker) checkCarried(who, task string, at flow.Address) {
	if c.wasStarted(task, at) {
		return
	}
	t := c.tasks[task]
	if t == nil {
		c.w.failRun("%s carries out %s of task %s, which is not stored", who, at, task)
		return
	}
	if _, started := t.attempts[at]; !started {
		c.w.failRun("%s carries out %s of task %s before its start is stored", who, at, task)
	}
}

// checkOnce checks that each job is carried out only once if there are only planned moves.
// Exception: a report committed together with a refused value is repeated.
func (c *commitChecker) checkOnce(who string, job flow.Job) {
	id := job.ID()
	before, twice := c.carriers[id]
	if twice && c.planned && !c.refused[job.Task] {
		c.w.failRun("%s carries out %s, which %s has carried out or is at", who, id, before)
	}
	c.carriers[id] = who
}

// handedOver records that a worker has begun a job, so the job may be lost with the worker.
func (c *commitChecker) handedOver(task string, at flow.Address) {
	if t := c.tasks[task]; t != nil {
		t.begun[at] = true
	}
}

// checkClaimed checks a job claimed by a poller.
func (c *commitChecker) checkClaimed(who string, task string, at flow.Address, token string) {
	if c.wasClaimed(task, token) {
		return
	}
	if t := c.tasks[task]; t == nil || !t.tokens[token] {
		c.w.failRun("%s holds job %s of task %s, whose claim is not stored", who, at, task)
	}
}

// countRetries returns how often a task was retried after its end.
func (c *commitChecker) countRetries(task string) int {
	if t := c.tasks[task]; t != nil {
		return t.retries
	}
	return 0
}

// checkAnswered checks that the effect of an acknowledged command is stored.
func (c *commitChecker) checkAnswered(task string, cmd flow.Command, request string) {
	if c.former[task] != nil {
		return // the effect may be lost by now
	}
	t := c.tasks[task]
	if t == nil {
		c.w.failRun("%T to task %s was acknowledged, which is not stored", cmd, task)
		return
	}
	switch cmd := cmd.(type) {
	case flow.Signal, flow.Pause, flow.Resume, flow.Append, flow.RetryTask:
		if _, ok := t.requests[request]; !ok {
			c.w.failRun("%T %s to task %s was acknowledged and is not stored", cmd, request, task)
		}
	case flow.Cancel:
		if !t.ended && t.state.Status != flow.TaskCanceling && t.state.Closing == nil {
			c.w.failRun("Cancel of task %s was acknowledged and it goes on", task)
		}
	case flow.Report:
		if _, open := t.state.Job(cmd.Address); open {
			c.w.failRun("the report about %s of task %s was acknowledged and is not stored", cmd.Address, task)
		}
	}
}
