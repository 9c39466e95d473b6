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

// reportLinger is how long the first report of a step waits for others while jobs of the step are
// under way. One decision and one row are for all of them then.
const reportLinger = time.Millisecond

// inbox is where the jobs of one actor land: a step's, or a task's own. Whoever carried out a job
// puts it there, in any goroutine; the actor takes all of them together. An inbox outlives a crash
// of its actor.
type inbox struct {
	m         *Member
	taskOwner *taskOwner
	parent    *inbox // that of the step, or task, around this one; nil = it is the task's

	mu           sync.Mutex
	actor        *actor.PID   // that empties it; nil while it is away after a crash
	reported     []*activeJob // with a report each
	expectedJobs int          // jobs that will land here
	notified     bool         // the actor has been told to come
	lingerTimer  func() (stopped bool)
	closed       bool
	children     map[*inbox]int // those inside it, by their order
	childCount   int
}

// taskOwner is who decides what lands in the inboxes of a task and its steps: the task's actor.
// When that has crashed, the actor of all tasks keeps it for the next one. nil = the task has moved
// to another member.
type taskOwner struct{ atomic.Pointer[actor.PID] }

func ownerAt(pid *actor.PID) *taskOwner {
	o := &taskOwner{}
	o.Store(pid)
	return o
}

// sendToOwner gives reports to whoever decides about them.
func (in *inbox) sendToOwner(cmd *taskCommand) {
	if owner := in.taskOwner.Load(); owner != nil {
		in.m.sendMessage(owner, cmd)
		return
	}
	in.m.orderForwarder.sendCommand(cmd.task, cmd.command)
}

// detachOwner gives what has landed, here and inside, to the orderForwarder, and what lands from
// now on. Nobody comes for it any more, but it is not void.
func (in *inbox) detachOwner() {
	in.taskOwner.Store(nil)
	in.drainReports(in.sendReports, false)
}

// hasMoved reports whether that has been done.
func (in *inbox) hasMoved() bool { return in.taskOwner.Load() == nil }

func (in *inbox) sendReports(landed []*activeJob) {
	in.sendToOwner(reportsOf(landed[0].key.task, landed))
}

// collectReports tells an actor that there is something in its inbox.
type collectReports struct{}

// addChild makes an inbox for a step inside.
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

// setActor gives an inbox to an actor, which may be another one than before; nil = to nobody at the
// moment.
func (in *inbox) setActor(to *actor.PID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.actor, in.notified = to, false
	in.notifyIfReady()
}

// expectJobs counts jobs that will land.
func (in *inbox) expectJobs(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs += n
}

// expectFewer counts jobs that will not land here after all.
func (in *inbox) expectFewer(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs -= n
	in.notifyIfReady()
}

// addReport takes a job that has been carried out. Without a report only its place is told. When
// nobody comes for it any more, the task is told at once.
func (in *inbox) addReport(f *activeJob) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.expectedJobs--
	switch {
	case f.report == nil:
	case in.closed || in.hasMoved():
		in.sendToOwner(reportsOf(f.key.task, []*activeJob{f}))
		return
	default:
		in.reported = append(in.reported, f)
	}
	in.notifyIfReady()
}

// notifyIfReady has the actor come if there is enough, or nothing left to wait for. A plain step
// has no others to wait for.
func (in *inbox) notifyIfReady() {
	switch {
	case in.notified || in.actor == nil || len(in.reported) == 0:
	case in.parent == nil || in.expectedJobs <= 0 || len(in.reported) >= flow.MaxReports:
		in.notifyActor()
	case in.lingerTimer == nil:
		in.lingerTimer = in.m.cfg.Host.Clock.AfterFunc(reportLinger, in.notifyAfterLinger)
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

// takeReports hands over what has landed. Nobody else sees the inbox empty before that is done.
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

// drainReports empties an inbox and all inside it, which nobody comes to any more if this is the
// last time.
func (in *inbox) drainReports(hand func([]*activeJob), last bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainChildren(hand, last)
	in.takeReportsLocked(hand)
}

// drainChildren empties what is inside. Nothing lands in an inbox after that is emptied for the
// last time and before it is closed.
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

// drainCrashed hands over what has landed for an actor that has crashed, and all inside it. What
// lands from now on is told.
func (in *inbox) drainCrashed(hand func([]*activeJob)) {
	in.taskOwner.Store(in.m.tasks)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainChildren(hand, true)
	in.takeReportsLocked(hand)
	in.closed = true
}

// close gives up an inbox whose step is over. What is in it nobody waits for.
func (in *inbox) close() {
	in.parent.mu.Lock()
	delete(in.parent.children, in)
	in.parent.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
}

// isAbandoned reports whether nobody comes for what lands here, because the step is over, or one
// that it is in.
func (in *inbox) isAbandoned() bool {
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

// reportsOf makes one command of the reports of some jobs.
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
