package forward

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Claims sends claims of this member's pollers to the members that own the tasks. For each
// owner, one batch is in flight while the next one gathers. It is separate from the orderForwarder
// because a claim is not retried when its owner does not answer: there may be other jobs.
type Claims struct {
	cfg Config

	mu sync.Mutex
	// pending claims by owner, for owners with a batch in flight
	pendingByOwner map[string][]*outgoingClaim
	// by owner that did not answer: time of the next try
	unreachableUntil map[string]int64
}

// outgoingClaim is a claim for another member.
type outgoingClaim struct {
	order engine.Order
	size  int // bytes of the job that the answer brings
	done  func(engine.Outcome)
}

// Limits of a batch of claims, so that its answer is not larger than members accept; how long it is
// tried; and how long an owner that did not answer is left alone.
const (
	maxClaims      = 500
	maxClaimBytes  = engine.MaxPollBytes
	claimTimeout   = time.Second
	unreachableFor = int64(3_000) // milliseconds
)

// ErrOwnerUnreachable is the answer to a claim whose owner cannot be reached.
var ErrOwnerUnreachable = flow.Errorf(flow.Busy, "the member that owns the job's task did not answer")

// NewClaims creates the forwarder of claims.
func NewClaims(cfg Config) *Claims {
	return &Claims{cfg: cfg, pendingByOwner: map[string][]*outgoingClaim{}, unreachableUntil: map[string]int64{}}
}

// Send asks the owner of a task for a job of the given size. It calls done with the
// outcome, once.
func (f *Claims) Send(task string, claim flow.Claim, size int, done func(engine.Outcome)) {
	owner := f.cfg.Others.Owner(task)
	c := &outgoingClaim{engine.Order{Task: task, Command: claim}, size, done}
	if !f.enqueueClaim(owner, c) {
		done(engine.Outcome{Err: ErrOwnerUnreachable})
	}
}

// enqueueClaim queues a claim. It returns false if the owner was unreachable a short time ago.
// After that pause, a single claim tries again.
func (f *Claims) enqueueClaim(owner string, c *outgoingClaim) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until, away := f.unreachableUntil[owner]; away {
		now := f.cfg.Now()
		if now < until {
			return false
		}
		f.unreachableUntil[owner] = now + unreachableFor
	}
	waiting, busy := f.pendingByOwner[owner]
	f.pendingByOwner[owner] = append(waiting, c)
	if !busy {
		f.cfg.Work.Run(func() { f.sendClaims(owner) })
	}
	return true
}

// IsOwnerUnreachable reports whether a task belongs to another member that was unreachable a short
// time ago, so that no claim is sent there.
func (f *Claims) IsOwnerUnreachable(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unreachableUntil) == 0 || f.cfg.Shards.OwnsTask(task) {
		return false
	}
	return f.cfg.Now() < f.unreachableUntil[f.cfg.Others.Owner(task)]
}

// sendClaims sends the claims for an owner, batch by batch, until none is left.
func (f *Claims) sendClaims(owner string) {
	for {
		batch := f.takeBatch(owner)
		if len(batch) == 0 {
			return
		}
		answered := f.sendBatch(batch)
		for _, c := range f.recordReachability(owner, answered) {
			c.done(engine.Outcome{Err: ErrOwnerUnreachable})
		}
	}
}

func (f *Claims) takeBatch(owner string) []*outgoingClaim {
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

// sendBatch lets the owner decide a batch of claims, and reports whether it answered any.
func (f *Claims) sendBatch(batch []*outgoingClaim) (answered bool) {
	orders := make(engine.Orders, len(batch))
	for i, c := range batch {
		orders[i] = c.order
	}
	ctx, cancel := f.cfg.Work.WithTimeout(claimTimeout)
	outcomes := f.cfg.Others.Do(ctx, orders)
	answered = ctx.Err() == nil
	cancel()
	for i, c := range batch {
		answered = answered || engine.IsDelivered(outcomes[i].Err)
		c.done(outcomes[i])
	}
	return answered
}

// recordReachability stores whether an owner answers. If it does not, the claims that wait for it
// are returned and have to fail.
func (f *Claims) recordReachability(owner string, answered bool) (void []*outgoingClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answered {
		delete(f.unreachableUntil, owner)
		return nil
	}
	for other, until := range f.unreachableUntil { // members come and go
		if until < f.cfg.Now() {
			delete(f.unreachableUntil, other)
		}
	}
	f.unreachableUntil[owner] = f.cfg.Now() + unreachableFor
	void, f.pendingByOwner[owner] = f.pendingByOwner[owner], []*outgoingClaim{}
	return void
}
