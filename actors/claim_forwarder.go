package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// claimForwarder sends claims of pollers here to the members that own the tasks: for each owner one
// batch is on its way while the next gathers. It is no part of the orderForwarder, because a claim
// is not sent again when its owner does not answer: there may be other jobs.
type claimForwarder struct {
	m                *Member
	mu               sync.Mutex
	pendingByOwner   map[string][]*outgoingClaim // by owner, those with something on its way: what waits meanwhile
	unreachableUntil map[string]int64            // owners that did not answer, and until when nobody tries again
}

// outgoingClaim is a claim on its way.
type outgoingClaim struct {
	order engine.Order
	size  int // bytes of the job that the answer brings
	done  func(engine.Outcome)
}

// What a batch of claims holds at most, so that its answer is no larger than members take; how long
// it is tried; and for how long the owner is left alone when nobody has answered.
const (
	maxClaims      = 500
	maxClaimBytes  = maxJobBytes
	claimTimeout   = time.Second
	unreachableFor = int64(3_000) // milliseconds
)

// errOwnerUnreachable is the answer to a claim on a job whose owner cannot be reached.
var errOwnerUnreachable = flow.Errorf(flow.Busy, "the member that has the job's task did not answer just now")

func newClaimForwarder(m *Member) *claimForwarder {
	return &claimForwarder{m: m, pendingByOwner: map[string][]*outgoingClaim{}, unreachableUntil: map[string]int64{}}
}

// forwardClaim asks the owner of a task for a job of the given size. Done hears what came of it,
// once.
func (f *claimForwarder) forwardClaim(task string, claim flow.Claim, size int, done func(engine.Outcome)) {
	owner := f.m.cfg.Others.Owner(task)
	c := &outgoingClaim{engine.Order{Task: task, Command: claim}, size, done}
	if !f.enqueueClaim(owner, c) {
		done(engine.Outcome{Err: errOwnerUnreachable})
	}
}

// enqueueClaim is false for an owner that was not to be reached just now. One claim tries again
// when that is over.
func (f *claimForwarder) enqueueClaim(owner string, c *outgoingClaim) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until, away := f.unreachableUntil[owner]; away {
		now := f.m.nowMillis()
		if now < until {
			return false
		}
		f.unreachableUntil[owner] = now + unreachableFor
	}
	waiting, busy := f.pendingByOwner[owner]
	f.pendingByOwner[owner] = append(waiting, c)
	if !busy {
		f.m.runBackground(func() { f.sendClaims(owner) })
	}
	return true
}

// isOwnerUnreachable reports whether the owner of a task of another member was not to be reached
// just now, so that nobody asks it.
func (f *claimForwarder) isOwnerUnreachable(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unreachableUntil) == 0 || f.m.owned.ownsTask(task) {
		return false
	}
	return f.m.nowMillis() < f.unreachableUntil[f.m.cfg.Others.Owner(task)]
}

// sendClaims sends what waits for an owner until there is nothing more.
func (f *claimForwarder) sendClaims(owner string) {
	for {
		batch := f.takeBatch(owner)
		if len(batch) == 0 {
			return
		}
		answered := f.sendBatch(batch)
		for _, c := range f.recordReachability(owner, answered) {
			c.done(engine.Outcome{Err: errOwnerUnreachable})
		}
	}
}

func (f *claimForwarder) takeBatch(owner string) []*outgoingClaim {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.pendingByOwner[owner]
	n, bytes := 0, 0
	for n < min(len(waiting), maxClaims) && (n == 0 || bytes+waiting[n].size <= maxClaimBytes) {
		bytes += waiting[n].size
		n++
	}
	if n == 0 {
		delete(f.pendingByOwner, owner)
		return nil
	}
	f.pendingByOwner[owner] = waiting[n:]
	return waiting[:n:n]
}

// sendBatch has claims decided by their owner, and says whether it has answered any.
func (f *claimForwarder) sendBatch(batch []*outgoingClaim) (answered bool) {
	orders := make(engine.Orders, len(batch))
	for i, c := range batch {
		orders[i] = c.order
	}
	ctx, cancel := f.m.timeoutContext(claimTimeout)
	outcomes := f.m.cfg.Others.Do(ctx, orders)
	answered = ctx.Err() == nil
	cancel()
	for i, c := range batch {
		answered = answered || isDelivered(outcomes[i].Err)
		c.done(outcomes[i])
	}
	return answered
}

// recordReachability remembers whether an owner answers. What has been waiting for one that does
// not is for nobody any more.
func (f *claimForwarder) recordReachability(owner string, answered bool) (void []*outgoingClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answered {
		delete(f.unreachableUntil, owner)
		return nil
	}
	for other, until := range f.unreachableUntil { // members come and go
		if until < f.m.nowMillis() {
			delete(f.unreachableUntil, other)
		}
	}
	f.unreachableUntil[owner] = f.m.nowMillis() + unreachableFor
	void, f.pendingByOwner[owner] = f.pendingByOwner[owner], []*outgoingClaim{}
	return void
}
