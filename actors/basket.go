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

// basket is where the jobs of one actor land: a step's, or a task's own. Whoever carried out a job puts it there, in any
// goroutine; the actor takes all of them together. A basket outlives a crash of its actor.
type basket struct {
	m      *Member
	owner  *owner
	around *basket // that of the step, or task, around this one; nil = it is the task's

	mu     sync.Mutex
	actor  *actor.PID // that empties it; nil while it is away after a crash
	landed []*flight  // with a report each
	flying int        // jobs that will land here
	called bool       // the actor has been told to come
	alarm  func() (stopped bool)
	closed bool
	below  map[*basket]int // those inside it, by their order
	made   int
}

// owner is who decides what lands in the baskets of a task and its steps: the task's actor. When that has crashed, the
// actor of all tasks keeps it for the next one. nil = the task has moved to another member.
type owner struct{ atomic.Pointer[actor.PID] }

func ownerAt(pid *actor.PID) *owner {
	o := &owner{}
	o.Store(pid)
	return o
}

// decide gives reports to whoever decides about them.
func (b *basket) decide(cmd *command) {
	if owner := b.owner.Load(); owner != nil {
		b.m.tell(owner, cmd)
		return
	}
	b.m.envoy.send(cmd.task, cmd.cmd)
}

// moveAway gives what has landed, here and inside, to the envoy, and what lands from now on. Nobody comes for it any more,
// but it is not void.
func (b *basket) moveAway() {
	b.owner.Store(nil)
	b.drain(b.decideAll, false)
}

// moved says whether that has been done.
func (b *basket) moved() bool { return b.owner.Load() == nil }

func (b *basket) decideAll(landed []*flight) { b.decide(reportsOf(landed[0].key.task, landed)) }

// gather tells an actor that there is something in its basket.
type gather struct{}

// inside makes a basket for a step inside.
func (b *basket) inside() *basket {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.below == nil {
		b.below = map[*basket]int{}
	}
	k := &basket{m: b.m, owner: b.owner, around: b}
	b.made++
	b.below[k] = b.made
	return k
}

// belongs gives a basket to an actor, which may be another one than before; nil = to nobody at the moment.
func (b *basket) belongs(to *actor.PID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.actor, b.called = to, false
	b.call()
}

// expect counts jobs that will land.
func (b *basket) expect(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying += n
}

// miss counts jobs that will not land here after all.
func (b *basket) miss(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= n
	b.call()
}

// land takes a job that has been carried out. Without a report only its place is told. When nobody comes for it any
// more, the task is told at once.
func (b *basket) land(f *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	switch {
	case f.report == nil:
	case b.closed || b.moved():
		b.decide(reportsOf(f.key.task, []*flight{f}))
		return
	default:
		b.landed = append(b.landed, f)
	}
	b.call()
}

// call has the actor come if there is enough, or nothing left to wait for. A plain step has no others to wait for.
func (b *basket) call() {
	switch {
	case b.called || b.actor == nil || len(b.landed) == 0:
	case b.around == nil || b.flying <= 0 || len(b.landed) >= flow.MaxReports:
		b.tell()
	case b.alarm == nil:
		b.alarm = b.m.cfg.Host.Clock.AfterFunc(linger, b.ring)
	}
}

func (b *basket) tell() {
	b.called = true
	b.m.tell(b.actor, gather{})
}

func (b *basket) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alarm = nil
	if !b.called && b.actor != nil && len(b.landed) > 0 {
		b.tell()
	}
}

// empty hands over what has landed. Nobody else sees the basket empty before that is done.
func (b *basket) empty(hand func([]*flight)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handOver(hand)
}

func (b *basket) handOver(hand func([]*flight)) {
	b.called = false
	if b.alarm != nil {
		b.alarm()
		b.alarm = nil
	}
	all := b.landed
	b.landed = nil
	for some := range slices.Chunk(all, flow.MaxReports) {
		hand(some)
	}
}

// drain empties a basket and all inside it, which nobody comes to any more if this is the last time.
func (b *basket) drain(hand func([]*flight), last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drainInside(hand, last)
	b.handOver(hand)
}

// drainInside empties what is inside. Nothing lands in a basket after that is emptied for the last time and before it
// is closed.
func (b *basket) drainInside(hand func([]*flight), last bool) {
	inside := slices.SortedFunc(maps.Keys(b.below), func(k, l *basket) int { return b.below[k] - b.below[l] })
	for _, k := range inside {
		k.mu.Lock()
		k.drainInside(hand, last)
		k.handOver(hand)
		k.closed = k.closed || last
		k.mu.Unlock()
	}
	if last {
		b.below = nil
	}
}

// orphan hands over what has landed for an actor that has crashed, and all inside it. What lands from now on is told.
func (b *basket) orphan(hand func([]*flight)) {
	b.owner.Store(b.m.tasks)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drainInside(hand, true)
	b.handOver(hand)
	b.closed = true
}

// close gives up a basket whose step is over. What is in it nobody waits for.
func (b *basket) close() {
	b.around.mu.Lock()
	delete(b.around.below, b)
	b.around.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

// void says whether nobody comes for what lands here, because the step is over, or one that it is in.
func (b *basket) void() bool {
	for ; b != nil; b = b.around {
		b.mu.Lock()
		closed := b.closed
		b.mu.Unlock()
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
