package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// fetchFor asks the store for jobs that a poller may have, where there are few in memory. It says whether there may
// be more for this one. A service that nobody has jobs of costs nothing.
func (q *queue) fetchFor(p *poller) (fetching bool) {
	if q.closed {
		return false
	}
	for _, service := range p.Services {
		if _, known := q.ready[service]; !known || q.outranked(p, service) {
			continue
		}
		s := q.readyList(service, p.kind)
		if s.spilled && !s.fetching && (s.first() == nil || len(s.refs) < fetchRows) {
			q.fetch(s)
		}
		fetching = fetching || s.fetching
	}
	if !q.learned || p.room() && q.stale() {
		q.learn()
		fetching = true
	}
	return fetching && p.room()
}

// readFirst starts to read what has not been read yet of a poller's jobs: which services the store has jobs of, and the
// first page of each of the poller's lists.
func (q *queue) readFirst(p *poller) {
	if q.closed {
		return
	}
	if !q.learned {
		q.learn()
	}
	for _, service := range p.Services {
		if _, known := q.ready[service]; !known || q.outranked(p, service) {
			continue
		}
		if s := q.readyList(service, p.kind); s.spilled && !s.read && !s.fetching {
			q.fetch(s)
		}
	}
}

// awaitsFirst reports whether one of a poller's lists is being read for the first time. Until then a later job of another
// list would be handed out before an earlier one that only the store has. A store that fails makes no poller wait longer.
func (q *queue) awaitsFirst(p *poller) bool {
	if q.learning && !q.surveyed {
		return true
	}
	if q.firstReads == 0 {
		return false
	}
	return slices.ContainsFunc(p.Services, func(service string) bool {
		s := q.find(service, &p.kind)
		return s != nil && s.fetching && !s.read && !q.outranked(p, service)
	})
}

func (q *queue) fetch(s *readyList) {
	s.fetching = true
	if !s.read {
		q.firstReads++
	}
	if s.looking {
		q.pages++
	}
	m, at, turn := q.m, s.afterAt, s.afterTurn
	filter := persistence.QueueFilter{Service: s.service, FlowID: s.flow, Labels: s.labels}
	m.background(func() {
		ctx, cancel := m.storeCall()
		defer cancel()
		rows, err := m.store.QueueFor(ctx, filter, at, turn, fetchRows)
		m.tell(m.sessions, refilled{s, rows, err})
	})
}

func (q *queue) refilled(_ actor.Context, m refilled) {
	s := m.list
	s.fetching = false
	if !s.read {
		s.read = true
		q.firstReads--
	}
	q.m.tried(jobsNotRead, "", m.err)
	for i := range m.rows {
		q.putStored(s, &m.rows[i])
	}
	if m.err == nil && len(m.rows) < fetchRows {
		s.searched()
	}
	for _, p := range q.waitersAt(s) {
		q.grant(p)
		q.finish(p, m.err == nil && q.fetchFor(p))
	}
}

// putStored puts a job that was read from the store on a list.
func (q *queue) putStored(s *readyList, row *persistence.QueueRow) {
	s.afterAt, s.afterTurn = row.EnqueuedAt, row.Turn
	task, at, err := flow.ParseJobID(row.JobID)
	if err != nil || !q.untried(jobKey{task, at}) || q.m.claimForwarder.shuns(task) {
		return
	}
	r := q.refs[jobKey{task, at}]
	if r == nil {
		r = &ref{key: jobKey{task, at}, service: s.service, flow: s.flow, labels: row.Labels, at: row.EnqueuedAt, turn: row.Turn, size: row.Size}
	}
	q.put(s, r)
}

// learnAgain is how long it is until the store is asked again for the services that it has jobs of.
const learnAgain = time.Second

// learn asks which services the store has jobs of. From then on new ones are heard of as their jobs are offered.
func (q *queue) learn() {
	if q.learning {
		return
	}
	q.learning, q.lookedAt, q.pages = true, q.m.now(), 0
	m := q.m
	m.background(func() {
		ctx, cancel := m.storeCall()
		defer cancel()
		services, err := m.store.QueueServices(ctx)
		m.tried(servicesNotRead, "", err)
		tell := func() { m.tell(m.sessions, servicesRead{services, err}) }
		if err == nil {
			tell()
			return
		}
		m.cfg.Host.Clock.AfterFunc(learnAgain, tell)
	})
}

// servicesRead takes what the store has told, and serves those who have been waiting for it.
func (q *queue) servicesRead(_ actor.Context, m servicesRead) {
	q.learning, q.surveyed, q.learned = false, true, m.err == nil
	for _, service := range m.services {
		if _, known := q.ready[service]; !known {
			q.ready[service] = nil
		}
		q.spill(service)
	}
	for el := q.waiting.Front(); el != nil; {
		p := el.Value.(*poller)
		el = el.Next()
		if m.err == nil {
			q.readFirst(p)
		}
		q.grant(p)
		q.finish(p, m.err == nil && q.fetchFor(p))
	}
}
