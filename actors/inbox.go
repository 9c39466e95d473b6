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

// linger is how long the first report of a step waits for others while jobs of the step are under way. One decision
// and one row are for all of them then.
const linger = time.Millisecond

// inbox is where the jobs of one actor land: a step's, or a task's own. Whoever carried out a job puts it there, in any
// goroutine; the actor takes all of them together. An inbox outlives a crash of its actor.
type inbox struct {
	m      *Member
	owner  *owner
	around *inbox // that of the step, or task, around this one; nil = it is the task's

	mu     sync.Mutex
	actor  *actor.PID // that empties it; nil while it is away after a crash
	landed []*flight  // with a report each
	flying int        // jobs that will land here
	called bool       // the actor has been told to come
	alarm  func() (stopped bool)
	closed bool
	below  map[*inbox]int // those inside it, by their order
	made   int
}

// owner is who decides what lands in the inboxes of a task and its steps: the task's actor. When that has crashed, the
// actor of all tasks keeps it for the next one. nil = the task has moved to another member.
type owner struct{ atomic.Pointer[actor.PID] }

func ownerAt(pid *actor.PID) *owner {
	o := &owner{}
	o.Store(pid)
	return o
}

// decide gives reports to whoever decides about them.
func (in *inbox) decide(cmd *command) {
	if owner := in.owner.Load(); owner != nil {
		in.m.tell(owner, cmd)
		return
	}
	in.m.orderForwarder.send(cmd.task, cmd.cmd)
}

// moveAway gives what has landed, here and inside, to the orderForwarder, and what lands from now on. Nobody comes for it any more,
// but it is not void.
func (in *inbox) moveAway() {
	in.owner.Store(nil)
	in.drain(in.decideAll, false)
}

// moved says whether that has been done.
func (in *inbox) moved() bool { return in.owner.Load() == nil }

func (in *inbox) decideAll(landed []*flight) { in.decide(reportsOf(landed[0].key.task, landed)) }

// gather tells an actor that there is something in its inbox.
type gather struct{}

// inside makes an inbox for a step inside.
func (in *inbox) inside() *inbox {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.below == nil {
		in.below = map[*inbox]int{}
	}
	k := &inbox{m: in.m, owner: in.owner, around: in}
	in.made++
	in.below[k] = in.made
	return k
}

// belongs gives an inbox to an actor, which may be another one than before; nil = to nobody at the moment.
func (in *inbox) belongs(to *actor.PID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.actor, in.called = to, false
	in.call()
}

// expect counts jobs that will land.
func (in *inbox) expect(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.flying += n
}

// miss counts jobs that will not land here after all.
func (in *inbox) miss(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.flying -= n
	in.call()
}

// land takes a job that has been carried out. Without a report only its place is told. When nobody comes for it any
// more, the task is told at once.
func (in *inbox) land(f *flight) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.flying--
	switch {
	case f.report == nil:
	case in.closed || in.moved():
		in.decide(reportsOf(f.key.task, []*flight{f}))
		return
	default:
		in.landed = append(in.landed, f)
	}
	in.call()
}

// call has the actor come if there is enough, or nothing left to wait for. A plain step has no others to wait for.
func (in *inbox) call() {
	switch {
	case in.called || in.actor == nil || len(in.landed) == 0:
	case in.around == nil || in.flying <= 0 || len(in.landed) >= flow.MaxReports:
		in.tell()
	case in.alarm == nil:
		in.alarm = in.m.cfg.Host.Clock.AfterFunc(linger, in.ring)
	}
}

func (in *inbox) tell() {
	in.called = true
	in.m.tell(in.actor, gather{})
}

func (in *inbox) ring() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.alarm = nil
	if !in.called && in.actor != nil && len(in.landed) > 0 {
		in.tell()
	}
}

// empty hands over what has landed. Nobody else sees the inbox empty before that is done.
func (in *inbox) empty(hand func([]*flight)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.handOver(hand)
}

func (in *inbox) handOver(hand func([]*flight)) {
	in.called = false
	if in.alarm != nil {
		in.alarm()
		in.alarm = nil
	}
	all := in.landed
	in.landed = nil
	for some := range slices.Chunk(all, flow.MaxReports) {
		hand(some)
	}
}

// drain empties an inbox and all inside it, which nobody comes to any more if this is the last time.
func (in *inbox) drain(hand func([]*flight), last bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainInside(hand, last)
	in.handOver(hand)
}

// drainInside empties what is inside. Nothing lands in an inbox after that is emptied for the last time and before it
// is closed.
func (in *inbox) drainInside(hand func([]*flight), last bool) {
	inside := slices.SortedFunc(maps.Keys(in.below), func(k, l *inbox) int { return in.below[k] - in.below[l] })
	for _, k := range inside {
		k.mu.Lock()
		k.drainInside(hand, last)
		k.handOver(hand)
		k.closed = k.closed || last
		k.mu.Unlock()
	}
	if last {
		in.below = nil
	}
}

// orphan hands over what has landed for an actor that has crashed, and all inside it. What lands from now on is told.
func (in *inbox) orphan(hand func([]*flight)) {
	in.owner.Store(in.m.tasks)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drainInside(hand, true)
	in.handOver(hand)
	in.closed = true
}

// close gives up an inbox whose step is over. What is in it nobody waits for.
func (in *inbox) close() {
	in.around.mu.Lock()
	delete(in.around.below, in)
	in.around.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
}

// void says whether nobody comes for what lands here, because the step is over, or one that it is in.
func (in *inbox) void() bool {
	for ; in != nil; in = in.around {
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
func reportsOf(task string, landed []*flight) *command {
	if len(landed) == 1 {
		return &command{task: task, cmd: landed[0].report}
	}
	all := make(flow.Reports, len(landed))
	for i, f := range landed {
		all[i] = f.report.(flow.Report)
	}
	return &command{task: task, cmd: all}
}
