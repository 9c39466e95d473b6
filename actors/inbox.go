package actors

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
)

// reportLinger is how long the first report of a step waits for more reports while other jobs of
// the step are active. One decision and one row then handle all of them.
const reportLinger = time.Millisecond

// inbox collects the reports of jobs for one actor of a task or step. The goroutine of a job adds
// the report, and the actor takes all reports together. An inbox survives a crash of its actor.
type inbox struct {
	m         *Member
	taskOwner *taskOwner
	parent    *inbox // inbox of the enclosing step or task; nil for the task's own

	mu sync.Mutex
	// actor that empties the inbox; nil while it is restarting after a crash
	actor        *actor.PID
	reported     []*activeJob // jobs with their reports
	expectedJobs int          // number of jobs whose reports are expected here
	notified     bool         // the actor has been notified
	lingerTimer  func() (stopped bool)
	closed       bool
	children     map[*inbox]int // inboxes of nested steps, by creation order
	childCount   int
}

// taskOwner is the actor that decides about the reports in the inboxes of a task and its steps.
// This is the actor of the task. After a crash or the end of that actor, the tasks actor keeps the
// reports for the next one. If nil, the task has moved to another member.
type taskOwner struct {
	atomic.Pointer[actor.PID]
	// held while a report is sent, so that a former owner gets no report after a new owner is set
	sending sync.Mutex
	// the task needs no more decisions, except about external work that reports name
	retired atomic.Bool
}

func ownerAt(pid *actor.PID) *taskOwner {
	o := &taskOwner{}
	o.Store(pid)
	return o
}

// sendToOwner sends reports to the actor or member that owns the task.
func (in *inbox) sendToOwner(cmd *taskCommand) {
	in.taskOwner.sending.Lock()
	defer in.taskOwner.sending.Unlock()
	if owner := in.taskOwner.Load(); owner != nil {
		in.m.sendMessage(owner, cmd)
		return
	}
	in.m.orderForwarder.SendCommand(cmd.task, cmd.command)
}

// setOwner sets the owner of the reports of a task. A former owner gets no report afterwards.
func (in *inbox) setOwner(owner *actor.PID) {
	in.taskOwner.sending.Lock()
	defer in.taskOwner.sending.Unlock()
	in.taskOwner.Store(owner)
}

// sendExternal sends the reports that name external work to the owner, so that the work is
// canceled. Other reports are dropped.
func (in *inbox) sendExternal(landed []*activeJob) {
	for _, f := range landed {
		if f.hasDeferredWork() {
			in.sendToOwner(reportsOf(f.key.Task, []*activeJob{f}))
		}
	}
}

// retireOwner empties the inboxes of a task whose actor stops because the task needs no more
// decisions. From now on, reports that name external work go to the tasks actor.
func (in *inbox) retireOwner() {
	in.taskOwner.retired.Store(true)
	in.setOwner(in.m.tasks)
	in.drainReports(in.sendExternal, true)
}

// detachOwner passes the reports of this inbox and of nested inboxes to the orderForwarder, now and
// in future. The new owner of the task gets these reports.
func (in *inbox) detachOwner() {
	in.setOwner(nil)
	in.drainReports(in.sendReports, false)
}

// HasMoved reports whether the inbox was detached because its task moved.
func (in *inbox) HasMoved() bool { return in.taskOwner.Load() == nil }

func (in *inbox) sendReports(landed []*activeJob) {
	in.sendToOwner(reportsOf(landed[0].key.Task, landed))
}

// collectReports notifies an actor that its inbox holds reports.
type collectReports struct{}

// addChild creates an inbox for a nested step.
func (in *inbox) addChild() *inbox {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.children == nil {
		in.children = map[*inbox]int{}
	}
	k := &inbox{m: in.m, taskOwner: in.taskOwner, parent: in}
	in.childCount++
	in.children[k] = in.childCount
	return k
}

// setActor sets the actor of an inbox. A nil actor means that the actor is restarting.
func (in *inbox) setActor(to *actor.PID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.actor, in.notified = to, false
	in.notifyIfReady()
}

// expectJobs adds to the number of jobs whose reports will come.
func (in *inbox) expectJobs(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs += n
}

// expectFewer subtracts jobs whose reports will not come here after all.
func (in *inbox) expectFewer(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs -= n
	in.notifyIfReady()
}

// addReport adds the report of a finished job. A job without a report only lowers the number of
// expected jobs. If the inbox is closed, the report goes directly to the owner of the task.
func (in *inbox) addReport(f *activeJob) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs--
	switch {
	case f.report == nil:
	case in.taskOwner.retired.Load():
		in.sendExternal([]*activeJob{f})
		return
	case in.closed || in.HasMoved():
		in.sendToOwner(reportsOf(f.key.Task, []*activeJob{f}))
		return
	default:
		in.reported = append(in.reported, f)
	}
	in.notifyIfReady()
}

// notifyIfReady notifies the actor if enough reports have arrived, or no others are expected. The
// inbox of a task always notifies at once.
func (in *inbox) notifyIfReady() {
	switch {
	case in.notified || in.actor == nil || len(in.reported) == 0:
	case in.parent == nil || in.expectedJobs <= 0 || len(in.reported) >= flow.MaxReports:
		in.notifyActor()
	case in.lingerTimer == nil:
		in.lingerTimer = in.m.work.After(reportLinger, in.notifyAfterLinger)
	}
}

func (in *inbox) notifyActor() {
	in.notified = true
	in.m.sendMessage(in.actor, collectReports{})
}

func (in *inbox) notifyAfterLinger() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lingerTimer = nil
	if !in.notified && in.actor != nil && len(in.reported) > 0 {
		in.notifyActor()
	}
}

// takeReports removes the reports and passes them to hand. It holds the lock until hand returns, so
// other goroutines do not see an empty inbox too early.
func (in *inbox) takeReports(hand func([]*activeJob)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.takeReportsLocked(hand)
}

func (in *inbox) takeReportsLocked(hand func([]*activeJob)) {
	in.notified = false
	if in.lingerTimer != nil {
		in.lingerTimer()
		in.lingerTimer = nil
	}
	all := in.reported
	in.reported = nil
	for some := range slices.Chunk(all, flow.MaxReports) {
		hand(some)
	}
}

// drainReports empties an inbox and all nested ones. If last is true, it also closes the nested
// inboxes.
func (in *inbox) drainReports(hand func([]*activeJob), last bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainChildren(hand, last)
	in.takeReportsLocked(hand)
}

// drainChildren empties the nested inboxes. If last is true, it closes each one under the same
// lock, so no report can arrive in between.
func (in *inbox) drainChildren(hand func([]*activeJob), last bool) {
	inside := slices.SortedFunc(maps.Keys(in.children), func(k, l *inbox) int { return in.children[k] - in.children[l] })
	for _, k := range inside {
		k.mu.Lock()
		k.drainChildren(hand, last)
		k.takeReportsLocked(hand)
		k.closed = k.closed || last
		k.mu.Unlock()
	}
	if last {
		in.children = nil
	}
}

// drainCrashed passes the reports for a crashed actor, and those of nested inboxes, to hand. Later
// reports go directly to the tasks actor.
func (in *inbox) drainCrashed(hand func([]*activeJob)) {
	in.setOwner(in.m.tasks)
	in.drainAndClose(hand)
}

// drainAndClose empties and closes an inbox and all nested ones.
func (in *inbox) drainAndClose(hand func([]*activeJob)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainChildren(hand, true)
	in.takeReportsLocked(hand)
	in.closed = true
}

// close closes the inbox of a step that has ended, and all nested ones. Their reports are dropped,
// except reports that name external work.
func (in *inbox) close() {
	in.parent.mu.Lock()
	delete(in.parent.children, in)
	in.parent.mu.Unlock()
	in.drainAndClose(in.sendExternal)
}

// IsAbandoned reports whether the inbox is closed because its step or an enclosing step has ended.
func (in *inbox) IsAbandoned() bool {
	for ; in != nil; in = in.parent {
		in.mu.Lock()
		closed := in.closed
		in.mu.Unlock()
		if closed {
			return true
		}
	}
	return false
}

// reportsOf combines the reports of some jobs into one command.
func reportsOf(task string, landed []*activeJob) *taskCommand {
	if len(landed) == 1 {
		return &taskCommand{task: task, command: landed[0].report}
	}
	all := make(flow.Reports, len(landed))
	for i, f := range landed {
		all[i] = f.report.(flow.Report)
	}
	return &taskCommand{task: task, command: all}
}
