package actors

import (
	"cmp"
	"container/list"
	"slices"

	"github.com/troupe-engine/troupe/engine"
)

// What one answer to a poll holds at most: jobs, and bytes of theirs, unless one alone has more. What does not
// fit is not claimed.
const (
	maxJobs     = 1000
	maxJobBytes = 8 << 20
	jobBytes    = 1 << 10 // of a job beside its values
)

// poller is one poll that is being answered.
type poller struct {
	engine.Poll
	kind
	reply    func(engine.Jobs)
	got      []granted
	claiming int
	bytes    int         // of what it has and is claiming
	full     bool        // the next job would be too much
	refused  bool        // a claim was
	hasty    bool        // it takes what is there and does not wait for more
	rides    bool        // it comes with orders: what they begin is for it, and it is answered when they are
	over     bool        // its time is up: answer as soon as no claim is under way
	stop     func() bool // the time it waits for more jobs than it has

	place  *list.Element   // among those without an answer; nil when it has one
	places []*list.Element // the same by service
}

// granted is a job that a poller has got, and its place among those of the same time.
type granted struct {
	engine.Claimed
	turn string
}

// jobs returns what a poller has got.
func (p *poller) jobs() engine.Jobs {
	var jobs engine.Jobs
	for i := range p.got {
		jobs = append(jobs, p.got[i].Claimed)
	}
	return jobs
}

func newPoller(p engine.Poll, reply func(engine.Jobs)) *poller {
	if len(p.Services) > 1 {
		p.Services = slices.Compact(slices.Sorted(slices.Values(p.Services)))
	}
	p.Max = min(max(p.Max, 1), maxJobs)
	p.Bytes = min(cmp.Or(max(p.Bytes, 0), maxJobBytes), maxJobBytes)
	return &poller{Poll: p, kind: kindOf(p), hasty: p.Wait <= 0, reply: reply}
}

// room says whether a poller takes more jobs.
func (p *poller) room() bool { return !p.over && !p.full && len(p.got)+p.claiming < p.Max }

// fits says whether there is room for a job of its size. The order of jobs is kept: none is handed out before one
// that did not fit.
func (p *poller) fits(r *ref) bool {
	p.full = len(p.got)+p.claiming > 0 && p.bytes+r.size+jobBytes > p.Bytes
	return !p.full
}

func (p *poller) take(r *ref) {
	p.claiming++
	p.bytes += r.size + jobBytes
}

// lack notes that a job which was taken is not to be had.
func (p *poller) lack(r *ref) {
	p.bytes -= r.size + jobBytes
	p.full, p.refused = false, true
}

// content says whether a poll can be answered: its time is up, or it has jobs. One that does not wait takes all that is
// there, also from the store.
func (p *poller) content(fetching bool) bool {
	switch {
	case p.claiming > 0:
		return false
	case p.rides:
		return p.over
	case p.hasty:
		return !fetching
	}
	return p.over || len(p.got) > 0
}

// await keeps a poll until it is answered.
func (q *queue) await(p *poller) {
	p.place = q.waiting.PushBack(p)
	p.places = make([]*list.Element, len(p.Services))
	for i, service := range p.Services {
		l := q.waiters[service]
		if l == nil {
			l = list.New()
			q.waiters[service] = l
		}
		p.places[i] = l.PushBack(p)
	}
}

// dismiss forgets a poll.
func (q *queue) dismiss(p *poller) {
	if p.place == nil {
		return
	}
	q.waiting.Remove(p.place)
	p.place = nil
	if p.stop != nil {
		p.stop()
	}
	for i, place := range p.places { // a poll that comes with orders has none
		service := p.Services[i]
		l := q.waiters[service]
		if l.Remove(place); l.Len() == 0 {
			delete(q.waiters, service)
		}
	}
	p.places = nil
}

// waiter is the first poller that waits for a job like this one and has room for it. One that has got jobs can be answered as soon as nothing
// more is claimed for it, so the next job goes to another one, if there is any.
func (q *queue) waiter(r *ref) (first *poller) {
	l := q.waiters[r.service]
	if l == nil || q.closed {
		return nil
	}
	for el := l.Front(); el != nil; el = el.Next() {
		switch p := el.Value.(*poller); {
		case first != nil && len(p.got) > 0:
		case p.hasty || !p.room() || !p.kind.takes(r) || !p.fits(r) || q.outranked(p, r.service) || q.awaitsFirst(p):
		case len(p.got) == 0:
			return p
		default:
			first = p
		}
	}
	return first
}

// outranked reports whether a poller gets no jobs of a service, since others offer it.
func (q *queue) outranked(p *poller, service string) bool {
	return q.m.cfg.Outranked != nil && q.m.cfg.Outranked(p.Worker, service)
}

// taker is the rider, a poll that has come with what a job follows from, if it is to have that job; nil = it is not. What it may have, too,
// and waits already goes first: it gets that instead.
func (q *queue) taker(rider *poller, r *ref) *poller {
	if rider == nil || rider.place == nil || q.closed || !rider.room() || !rider.kind.takes(r) || !slices.Contains(rider.Services, r.service) || q.outranked(rider, r.service) {
		return nil
	}
	if s := q.readyList(r.service, rider.kind); s.first() != nil || s.spilled {
		q.grant(rider)
		return nil
	}
	if !rider.fits(r) {
		return nil
	}
	return rider
}

// waitersAt are those who take jobs off a list.
func (q *queue) waitersAt(s *readyList) (all []*poller) {
	l := q.waiters[s.service]
	if l == nil {
		return nil
	}
	for el := l.Front(); el != nil; el = el.Next() {
		if p := el.Value.(*poller); p.kind.equal(&s.kind) {
			all = append(all, p)
		}
	}
	return all
}
