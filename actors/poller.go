package actors

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/troupe-engine/troupe/engine"
)

// Limits of one answer to a poll: the number of jobs and their bytes, unless a single job is
// larger. Jobs beyond the limits are not claimed.
const (
	maxJobs     = 1000
	maxJobBytes = engine.MaxPollBytes
	jobBytes    = 1 << 10 // bytes of a job besides its values
)

// poller is one poll in progress.
type poller struct {
	engine.Poll
	jobFilter
	reply    func(engine.Jobs)
	granted  []grantedJob
	claiming int
	bytes    int  // bytes of its jobs and pending claims
	full     bool // the next job would exceed the limit
	refused  bool // one of its claims was refused
	noWait   bool // it takes the available jobs and does not wait for more
	// it comes with orders: it gets the jobs that they start, and is answered with them
	withOrders bool
	timedOut   bool        // it is answered when no claim is pending
	stop       func() bool // stops the timer for the wait for more jobs

	element         *list.Element   // in the list of unanswered polls; nil after the answer
	serviceElements []*list.Element // the same in the list of each service
}

// grantedJob is a job that a poller has got, with its order among jobs of the same time.
type grantedJob struct {
	engine.Claimed
	turn string
}

// grantedJobs returns the jobs that a poller has got.
func (p *poller) grantedJobs() engine.Jobs {
	var jobs engine.Jobs
	for i := range p.granted {
		jobs = append(jobs, p.granted[i].Claimed)
	}
	return jobs
}

func newPoller(p engine.Poll, reply func(engine.Jobs)) *poller {
	if len(p.Services) > 1 {
		p.Services = slices.Compact(slices.Sorted(slices.Values(p.Services)))
	}
	p.Max = min(max(p.Max, 1), maxJobs)
	p.Bytes = min(cmp.Or(max(p.Bytes, 0), maxJobBytes), maxJobBytes)
	return &poller{Poll: p, jobFilter: kindOf(p), noWait: p.Wait <= 0, reply: reply}
}

// hasRoom reports whether a poller can take more jobs.
func (p *poller) hasRoom() bool { return !p.timedOut && !p.full && len(p.granted)+p.claiming < p.Max }

// hasRoomFor reports whether there is room for a job of this size. The order of jobs is kept: no
// job passes one that did not fit.
func (p *poller) hasRoomFor(r *queuedJob) bool {
	p.full = len(p.granted)+p.claiming > 0 && p.bytes+r.size+jobBytes > p.Bytes
	return !p.full
}

func (p *poller) reserveJob(r *queuedJob) {
	p.claiming++
	p.bytes += r.size + jobBytes
}

// unreserveJob releases the reservation of a job that could not be claimed.
func (p *poller) unreserveJob(r *queuedJob) {
	p.bytes -= r.size + jobBytes
	p.full, p.refused = false, true
}

// isAnswerable reports whether a poll can be answered: its time has passed, or it has jobs. One
// that does not wait takes all available jobs, also from the store.
func (p *poller) isAnswerable(fetching bool) bool {
	switch {
	case p.claiming > 0:
		return false
	case p.withOrders:
		return p.timedOut
	case p.noWait:
		return !fetching
	}
	return p.timedOut || len(p.granted) > 0
}

// addWaiter keeps a poll until it is answered.
func (q *queue) addWaiter(p *poller) {
	p.element = q.waiting.PushBack(p)
	p.serviceElements = make([]*list.Element, len(p.Services))
	for i, service := range p.Services {
		l := q.waiters[service]
		if l == nil {
			l = list.New()
			q.waiters[service] = l
		}
		p.serviceElements[i] = l.PushBack(p)
	}
}

// removeWaiter removes a poll.
func (q *queue) removeWaiter(p *poller) {
	if p.element == nil {
		return
	}
	q.waiting.Remove(p.element)
	p.element = nil
	if p.stop != nil {
		p.stop()
	}
	for i, place := range p.serviceElements { // a poll with orders has none
		service := p.Services[i]
		l := q.waiters[service]
		if l.Remove(place); l.Len() == 0 {
			delete(q.waiters, service)
		}
	}
	p.serviceElements = nil
}

// findWaiter returns the first poller that waits for such a job and has room for it. A poller with
// jobs can be answered when no claim is pending, so the next job preferably goes to another poller.
func (q *queue) findWaiter(r *queuedJob) (first *poller) {
	l := q.waiters[r.service]
	if l == nil || q.closed {
		return nil
	}
	for el := l.Front(); el != nil; el = el.Next() {
		switch p := el.Value.(*poller); {
		case first != nil && len(p.granted) > 0:
		case p.noWait || !p.hasRoom() || !p.jobFilter.matchesJob(r) || !p.hasRoomFor(r) ||
			q.isOutranked(p, r.service) || q.awaitsFirstRead(p):
		case len(p.granted) == 0:
			return p
		default:
			first = p
		}
	}
	return first
}

// isOutranked reports whether a poller gets no jobs of a service because others offer it.
func (q *queue) isOutranked(p *poller, service string) bool {
	return q.m.cfg.Outranked != nil && q.m.cfg.Outranked(p.Worker, service)
}

// findOrderPoll returns rider, the poll that came with the orders that started the job, if the job
// may go to it; else nil. Jobs that wait already come first: then the rider gets those instead.
func (q *queue) findOrderPoll(rider *poller, r *queuedJob) *poller {
	if rider == nil || rider.element == nil || q.closed || !rider.hasRoom() ||
		!rider.jobFilter.matchesJob(r) || !slices.Contains(rider.Services, r.service) ||
		q.isOutranked(rider, r.service) {
		return nil
	}
	if s := q.readyList(r.service, rider.jobFilter); s.firstJob() != nil || s.spilled {
		q.grantJobs(rider)
		return nil
	}
	if !rider.hasRoomFor(r) {
		return nil
	}
	return rider
}

// waitersFor returns the pollers that take jobs from a list.
func (q *queue) waitersFor(s *readyList) (all []*poller) {
	l := q.waiters[s.service]
	if l == nil {
		return nil
	}
	for el := l.Front(); el != nil; el = el.Next() {
		if p := el.Value.(*poller); p.jobFilter.equal(&s.jobFilter) {
			all = append(all, p)
		}
	}
	return all
}
