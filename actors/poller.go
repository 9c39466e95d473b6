package actors

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/troupe-engine/troupe/engine"
)

// maxJobs and maxBytes bound one answer to a poll, unless a single job is larger. Jobs beyond the
// bounds are not claimed.
const (
	maxJobs     = 1000
	maxJobBytes = engine.MaxPollBytes
	jobBytes    = 1 << 10 // bytes of a job in addition to its values
)

// poller is one poll in progress.
type poller struct {
	engine.Poll
	jobFilter
	reply    func(engine.Jobs)
	granted  []grantedJob
	claiming int
	bytes    int  // bytes of granted jobs and pending claims
	full     bool // the next job would exceed the limit
	refused  bool // one of the claims was refused
	noWait   bool // the poll takes only the available jobs
	// the poll came with orders: it also gets the jobs that they start
	withOrders bool
	timedOut   bool        // the poll is answered as soon as no claim is pending
	stop       func() bool // stops the timer that waits for more jobs

	element         *list.Element   // in the list of unanswered polls; nil after the answer
	serviceElements []*list.Element // elements in the lists of pollers by service
}

// grantedJob is a job that a poller has got. turn orders jobs with equal times.
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

// hasRoomFor reports whether there is room for a job. After the first job that does not fit, it
// refuses all others, so that the order of jobs is kept.
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

// isAnswerable reports whether a poll can be answered: its time has passed, or it has jobs. A poll
// without a wait is answered when all available jobs of the store are read.
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
	for i, place := range p.serviceElements { // a poll with orders has no service elements
		service := p.Services[i]
		l := q.waiters[service]
		if l.Remove(place); l.Len() == 0 {
			delete(q.waiters, service)
		}
	}
	p.serviceElements = nil
}

// findWaiter returns the first poller that waits for such a job and has room. It prefers a poller
// without jobs, because a poller with jobs can be answered soon.
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

// isOutranked reports whether a poller gets no jobs of a service because preferred workers offer
// it.
func (q *queue) isOutranked(p *poller, service string) bool {
	return q.m.cfg.Outranked != nil && q.m.cfg.Outranked(p.Worker, service)
}

// findOrderPoll returns rider, the poll that came with the orders, if the job may go to it; else
// nil. It returns nil if older jobs wait, because rider gets these first.
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
