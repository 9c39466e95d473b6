package actors

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// abroad brings claims of pollers here to the members that own the tasks: of each owner one lot is on its way while the next
// gathers. It is no part of the envoy, because a claim does not wait until somebody has taken it: there may be other jobs.
type abroad struct {
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

// What a lot of claims holds at most, so that its answer is no larger than members take; how long it is tried; and for how long
// the owner is left alone when nobody has answered.
const (
	maxClaims     = 500
	maxClaimBytes = maxJobBytes
	claimStays    = time.Second
	awayFor       = int64(3_000) // milliseconds
)

// errAway is the answer to a claim on a job whose owner cannot be reached.
var errAway = flow.Errorf(flow.Busy, "the member that has the job's task did not answer just now")

func newAbroad(m *Member) *abroad {
	return &abroad{m: m, lines: map[string][]*claiming{}, away: map[string]int64{}}
}

// claim asks the owner of a task for a job of the given size. Done hears what came of it, once.
func (a *abroad) claim(task string, claim flow.Claim, size int, done func(engine.Outcome)) {
	owner := a.m.cfg.Others.Owner(task)
	c := &claiming{engine.Order{Task: task, Command: claim}, size, done}
	if !a.add(owner, c) {
		done(engine.Outcome{Err: errAway})
	}
}

// add is false for an owner that was not to be reached just now. One claim tries again when that is over.
func (a *abroad) add(owner string, c *claiming) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if until, away := a.away[owner]; away {
		now := a.m.now()
		if now < until {
			return false
		}
		a.away[owner] = now + awayFor
	}
	waiting, busy := a.lines[owner]
	a.lines[owner] = append(waiting, c)
	if !busy {
		a.m.background(func() { a.run(owner) })
	}
	return true
}

// shuns says whether the owner of a task of another member was not to be reached just now, so that nobody asks it.
func (a *abroad) shuns(task string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.away) == 0 || a.m.owned.owns(task) {
		return false
	}
	return a.m.now() < a.away[a.m.cfg.Others.Owner(task)]
}

// run brings what waits for an owner until there is nothing more.
func (a *abroad) run(owner string) {
	for {
		lot := a.take(owner)
		if len(lot) == 0 {
			return
		}
		answered := a.bring(lot)
		for _, c := range a.note(owner, answered) {
			c.done(engine.Outcome{Err: errAway})
		}
	}
}

func (a *abroad) take(owner string) []*claiming {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.lines[owner]
	n, bytes := 0, 0
	for n < min(len(waiting), maxClaims) && (n == 0 || bytes+waiting[n].size <= maxClaimBytes) {
		bytes += waiting[n].size
		n++
	}
	if n == 0 {
		delete(a.lines, owner)
		return nil
	}
	a.lines[owner] = waiting[n:]
	return waiting[:n:n]
}

// bring has claims decided by their owner, and says whether it has answered any.
func (a *abroad) bring(lot []*claiming) (answered bool) {
	orders := make(engine.Orders, len(lot))
	for i, c := range lot {
		orders[i] = c.order
	}
	ctx, cancel := a.m.bounded(claimStays)
	outcomes := a.m.cfg.Others.Do(ctx, orders)
	answered = ctx.Err() == nil
	cancel()
	for i, c := range lot {
		answered = answered || taken(outcomes[i].Err)
		c.done(outcomes[i])
	}
	return answered
}

// note remembers whether an owner answers. What has been waiting for one that does not is for nobody any more.
func (a *abroad) note(owner string, answered bool) (void []*claiming) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered {
		delete(a.away, owner)
		return nil
	}
	for other, until := range a.away { // members come and go
		if until < a.m.now() {
			delete(a.away, other)
		}
	}
	a.away[owner] = a.m.now() + awayFor
	void, a.lines[owner] = a.lines[owner], []*claiming{}
	return void
}
