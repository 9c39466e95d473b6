package actors

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/troupe-engine/troupe/engine"
)

// What one answer to a poll holds at most: jobs, and bytes of theirs, unless one alone has more.
// What does not fit is not claimed.
const (
	maxJobs     = 1000
	maxJobBytes = 8 << 20
	jobBytes    = 1 << 10 // of a job beside its values
)

// poller is one poll that is being answered.
type poller struct {
	engine.Poll
	jobFilter
	reply      func(engine.Jobs)
	granted    []grantedJob
	claiming   int
	bytes      int         // of what it has and is claiming
	full       bool        // the next job would be too much
	refused    bool        // a claim was
	noWait     bool        // it takes what is there and does not wait for more
	withOrders bool        // it comes with orders: what they begin is for it, and it is answered when they are
	timedOut   bool        // its time is up: answer as soon as no claim is under way
	stop       func() bool // the time it waits for more jobs than it has

	element         *list.Element   // among those without an answer; nil when it has one
	serviceElements []*list.Element // the same by service
}

// grantedJob is a job that a poller has got, and its place among those of the same time.
type grantedJob struct {
	engine.Claimed
	turn string
}

// grantedJobs returns what a poller has got.
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

// hasRoom reports whether a poller takes more jobs.
func (p *poller) hasRoom() bool { return !p.timedOut && !p.full && len(p.granted)+p.claiming < p.Max }

// hasRoomFor reports whether there is room for a job of its size. The order of jobs is kept: none
// is handed out before one that did not fit.
func (p *poller) hasRoomFor(r *queuedJob) bool {
	p.full = len(p.granted)+p.claiming > 0 && p.bytes+r.size+jobBytes > p.Bytes
	return !p.full
}

func (p *poller) reserveJob(r *queuedJob) {
	p.claiming++
	p.bytes += r.size + jobBytes
}

// unreserveJob notes that a job which was taken is not to be had.
func (p *poller) unreserveJob(r *queuedJob) {
	p.bytes -= r.size + jobBytes
	p.full, p.refused = false, true
}

// isAnswerable reports whether a poll can be answered: its time is up, or it has jobs. One that
// does not wait takes all that is there, also from the store.
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

// removeWaiter forgets a poll.
func (q *queue) removeWaiter(p *poller) {
	if p.element == nil {
		return
	}
	q.waiting.Remove(p.element)
	p.element = nil
	if p.stop != nil {
		p.stop()
	}
	for i, place := range p.serviceElements { // a poll that comes with orders has none
		service := p.Services[i]
		l := q.waiters[service]
		if l.Remove(place); l.Len() == 0 {
			delete(q.waiters, service)
		}
	}
	p.serviceElements = nil
}

// findWaiter is the first poller that waits for a job like this one and has room for it. One that
// has got jobs can be answered as soon as nothing more is claimed for it, so the next job goes to
// another one, if there is any.
func (q *queue) findWaiter(r *queuedJob) (first *poller) {
	l := q.waiters[r.service]
	if l == nil || q.closed {
		return nil
	}
	for el := l.Front(); el != nil; el = el.Next() {
		switch p := el.Value.(*poller); {
		case first != nil && len(p.granted) > 0:
		case p.noWait || !p.hasRoom() || !p.jobFilter.matchesJob(r) || !p.hasRoomFor(r) || q.isOutranked(p, r.service) || q.awaitsFirstRead(p):
		case len(p.granted) == 0:
			return p
		default:
			first = p
		}
	}
	return first
}

// isOutranked reports whether a poller gets no jobs of a service, since others offer it.
func (q *queue) isOutranked(p *poller, service string) bool {
	return q.m.cfg.Outranked != nil && q.m.cfg.Outranked(p.Worker, service)
}

// findOrderPoll is the rider, a poll that has come with what a job follows from, if it is to have
// that job; nil = it is not. What it may have, too, and waits already goes first: it gets that
// instead.
func (q *queue) findOrderPoll(rider *poller, r *queuedJob) *poller {
	if rider == nil || rider.element == nil || q.closed || !rider.hasRoom() || !rider.jobFilter.matchesJob(r) || !slices.Contains(rider.Services, r.service) || q.isOutranked(rider, r.service) {
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

// waitersFor are those who take jobs off a list.
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
