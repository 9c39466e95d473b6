package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// claimForwarder sends claims of pollers here to the members that own the tasks: for each owner one batch is on its way while the next
// gathers. It is no part of the orderForwarder, because a claim is not sent again when its owner does not answer: there may be other jobs.
type claimForwarder struct {
	m     *Member
	mu    sync.Mutex
	lines map[string][]*claiming // by owner, those with something on its way: what waits meanwhile
	away  map[string]int64       // owners that did not answer, and until when nobody tries again
}

// claiming is a claim on its way.
type claiming struct {
	order engine.Order
	size  int // bytes of the job that the answer brings
	done  func(engine.Outcome)
}

// What a batch of claims holds at most, so that its answer is no larger than members take; how long it is tried; and for how long
// the owner is left alone when nobody has answered.
const (
	maxClaims     = 500
	maxClaimBytes = maxJobBytes
	claimTimeout  = time.Second
	awayFor       = int64(3_000) // milliseconds
)

// errAway is the answer to a claim on a job whose owner cannot be reached.
var errAway = flow.Errorf(flow.Busy, "the member that has the job's task did not answer just now")

func newClaimForwarder(m *Member) *claimForwarder {
	return &claimForwarder{m: m, lines: map[string][]*claiming{}, away: map[string]int64{}}
}

// claim asks the owner of a task for a job of the given size. Done hears what came of it, once.
func (f *claimForwarder) claim(task string, claim flow.Claim, size int, done func(engine.Outcome)) {
	owner := f.m.cfg.Others.Owner(task)
	c := &claiming{engine.Order{Task: task, Command: claim}, size, done}
	if !f.add(owner, c) {
		done(engine.Outcome{Err: errAway})
	}
}

// add is false for an owner that was not to be reached just now. One claim tries again when that is over.
func (f *claimForwarder) add(owner string, c *claiming) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if until, away := f.away[owner]; away {
		now := f.m.now()
		if now < until {
			return false
		}
		f.away[owner] = now + awayFor
	}
	waiting, busy := f.lines[owner]
	f.lines[owner] = append(waiting, c)
	if !busy {
		f.m.background(func() { f.run(owner) })
	}
	return true
}

// shuns says whether the owner of a task of another member was not to be reached just now, so that nobody asks it.
func (f *claimForwarder) shuns(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.away) == 0 || f.m.owned.owns(task) {
		return false
	}
	return f.m.now() < f.away[f.m.cfg.Others.Owner(task)]
}

// run sends what waits for an owner until there is nothing more.
func (f *claimForwarder) run(owner string) {
	for {
		batch := f.take(owner)
		if len(batch) == 0 {
			return
		}
		answered := f.bring(batch)
		for _, c := range f.note(owner, answered) {
			c.done(engine.Outcome{Err: errAway})
		}
	}
}

func (f *claimForwarder) take(owner string) []*claiming {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.lines[owner]
	n, bytes := 0, 0
	for n < min(len(waiting), maxClaims) && (n == 0 || bytes+waiting[n].size <= maxClaimBytes) {
		bytes += waiting[n].size
		n++
	}
	if n == 0 {
		delete(f.lines, owner)
		return nil
	}
	f.lines[owner] = waiting[n:]
	return waiting[:n:n]
}

// bring has claims decided by their owner, and says whether it has answered any.
func (f *claimForwarder) bring(batch []*claiming) (answered bool) {
	orders := make(engine.Orders, len(batch))
	for i, c := range batch {
		orders[i] = c.order
	}
	ctx, cancel := f.m.bounded(claimTimeout)
	outcomes := f.m.cfg.Others.Do(ctx, orders)
	answered = ctx.Err() == nil
	cancel()
	for i, c := range batch {
		answered = answered || taken(outcomes[i].Err)
		c.done(outcomes[i])
	}
	return answered
}

// note remembers whether an owner answers. What has been waiting for one that does not is for nobody any more.
func (f *claimForwarder) note(owner string, answered bool) (void []*claiming) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answered {
		delete(f.away, owner)
		return nil
	}
	for other, until := range f.away { // members come and go
		if until < f.m.now() {
			delete(f.away, other)
		}
	}
	f.away[owner] = f.m.now() + awayFor
	void, f.lines[owner] = f.lines[owner], []*claiming{}
	return void
}
