package forward

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Claims sends claims of this member's pollers to the members that own the tasks. For each owner,
// one batch is in flight while the next one gathers. Claims are not retried when an owner does not
// answer, because the poller may get other jobs. So they do not share the lines of Orders.
type Claims struct {
	cfg Config

	mu sync.Mutex
	// pending claims, for owners with a batch in flight
	pendingByOwner map[string][]*outgoingClaim
	// time of the next try for owners that did not answer, in Unix milliseconds
	unreachableUntil map[string]int64
}

// outgoingClaim is a claim for another member.
type outgoingClaim struct {
	order engine.Order
	size  int // size in bytes of the job in the answer
	done  func(engine.Outcome)
}

// maxClaims and maxClaimBytes bound a batch, so that members accept its answer. claimTimeout bounds
// the time for a batch. unreachableFor is how long no claims go to an owner that did not answer.
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

// Send asks the owner of a task for a job of the given size. It calls done once with the outcome.
func (f *Claims) Send(task string, claim flow.Claim, size int, done func(engine.Outcome)) {
	owner := f.cfg.Others.Owner(task)
	c := &outgoingClaim{engine.Order{Task: task, Command: claim}, size, done}
	if !f.enqueueClaim(owner, c) {
		done(engine.Outcome{Err: ErrOwnerUnreachable})
	}
}

// enqueueClaim queues a claim. It returns false if the owner was unreachable a short time ago.
// After that pause, one claim tries the owner again.
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

// IsOwnerUnreachable reports whether the owner of a task is another member that was unreachable a
// short time ago. No claims are sent to such an owner.
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

// sendBatch sends a batch of claims to the owner, and reports whether the owner answered any of
// them.
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

// recordReachability records whether an owner answers. If not, it removes and returns the waiting
// claims, which must fail.
func (f *Claims) recordReachability(owner string, answered bool) (void []*outgoingClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answered {
		delete(f.unreachableUntil, owner)
		return nil
	}
	for other, until := range f.unreachableUntil { // drop members that no longer exist
		if until < f.cfg.Now() {
			delete(f.unreachableUntil, other)
		}
	}
	f.unreachableUntil[owner] = f.cfg.Now() + unreachableFor
	void, f.pendingByOwner[owner] = f.pendingByOwner[owner], []*outgoingClaim{}
	return void
}
