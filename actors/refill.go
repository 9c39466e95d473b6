package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Log messages about outages.
const (
	jobsNotRead     = "reading queued jobs failed"
	servicesNotRead = "reading services with queued jobs failed"
)

// fetchFor reads jobs for a poller from the store if few are in memory. It reports whether the
// poller may get more jobs. A service without jobs is not read.
func (q *queue) fetchFor(p *poller) (fetching bool) {
	if q.closed {
		return false
	}
	for _, service := range p.Services {
		if _, known := q.ready[service]; !known || q.isOutranked(p, service) {
			continue
		}
		s := q.readyList(service, p.jobFilter)
		if s.spilled && !s.fetching && (s.firstJob() == nil || len(s.refs) < fetchRows) {
			q.fetchPage(s)
		}
		fetching = fetching || s.fetching
	}
	if !q.servicesKnown || p.hasRoom() && q.isRescanDue() {
		q.readServices()
		fetching = true
	}
	return fetching && p.hasRoom()
}

// startFirstReads starts the first reads of a poller's jobs: the services in the store, and the
// first page of each of the poller's lists.
func (q *queue) startFirstReads(p *poller) {
	if q.closed {
		return
	}
	if !q.servicesKnown {
		q.readServices()
	}
	for _, service := range p.Services {
		if _, known := q.ready[service]; !known || q.isOutranked(p, service) {
			continue
		}
		if s := q.readyList(service, p.jobFilter); s.spilled && !s.read && !s.fetching {
			q.fetchPage(s)
		}
	}
}

// awaitsFirstRead reports whether the first read of one of a poller's lists is in progress. The
// poller waits for this read, because older jobs may only be in the store. A failed read also ends
// the wait.
func (q *queue) awaitsFirstRead(p *poller) bool {
	if q.readingServices && !q.servicesAsked {
		return true
	}
	if q.firstReads == 0 {
		return false
	}
	return slices.ContainsFunc(p.Services, func(service string) bool {
		s := q.findList(service, &p.jobFilter)
		return s != nil && s.fetching && !s.read && !q.isOutranked(p, service)
	})
}

func (q *queue) fetchPage(s *readyList) {
	s.fetching = true
	if !s.read {
		q.firstReads++
	}
	if s.fullSearch {
		q.rescanPages++
	}
	m, at, turn := q.m, s.afterAt, s.afterTurn
	filter := persistence.QueueFilter{Service: s.service, FlowID: s.flow, Labels: s.labels}
	m.work.Run(func() {
		ctx, cancel := m.work.StoreCall()
		defer cancel()
		rows, err := m.store.QueueFor(ctx, filter, at, turn, fetchRows)
		m.sendMessage(m.sessions, pageRead{s, rows, err})
	})
}

func (q *queue) addPage(_ actor.Context, m pageRead) {
	s := m.list
	s.fetching = false
	if !s.read {
		s.read = true
		q.firstReads--
	}
	q.m.outages.RecordCall(jobsNotRead, "", m.err)
	for i := range m.rows {
		q.putStored(s, &m.rows[i])
	}
	if m.err == nil && len(m.rows) < fetchRows {
		s.finishSearch()
	}
	for _, p := range q.waitersFor(s) {
		q.grantJobs(p)
		q.answerIfReady(p, m.err == nil && q.fetchFor(p))
	}
}

// putStored adds a job that was read from the store to a list.
func (q *queue) putStored(s *readyList, row *persistence.QueueRow) {
	s.afterAt, s.afterTurn = row.EnqueuedAt, row.Turn
	task, at, err := flow.ParseJobID(row.JobID)
	if err != nil || !q.isClaimable(engine.JobKey{Task: task, At: at}) || q.m.claimForwarder.IsOwnerUnreachable(task) {
		return
	}
	r := q.refs[engine.JobKey{Task: task, At: at}]
	if r == nil {
		r = &queuedJob{key: engine.JobKey{Task: task, At: at}, service: s.service, flow: s.flow, labels: row.Labels,
			at: row.EnqueuedAt, turn: row.Turn, size: row.Size}
	}
	q.addReady(s, r)
}

// servicesRetry is the pause after which the services are read again.
const servicesRetry = time.Second

// readServices reads the services that have jobs in the store. Services that get jobs later become
// known by the offers.
func (q *queue) readServices() {
	if q.readingServices {
		return
	}
	q.readingServices, q.rescannedAt, q.rescanPages = true, q.m.nowMillis(), 0
	m := q.m
	m.work.Run(func() {
		ctx, cancel := m.work.StoreCall()
		defer cancel()
		services, err := m.store.QueueServices(ctx)
		m.outages.RecordCall(servicesNotRead, "", err)
		tell := func() { m.sendMessage(m.sessions, servicesRead{services, err}) }
		if err == nil {
			tell()
			return
		}
		m.work.After(servicesRetry, tell)
	})
}

// servicesRead handles the services that were read, and serves the polls that waited for them.
func (q *queue) servicesRead(_ actor.Context, m servicesRead) {
	q.readingServices, q.servicesAsked, q.servicesKnown = false, true, m.err == nil
	for _, service := range m.services {
		if _, known := q.ready[service]; !known {
			q.ready[service] = nil
		}
		q.spillService(service)
	}
	for el := q.waiting.Front(); el != nil; {
		p := el.Value.(*poller)
		el = el.Next()
		if m.err == nil {
			q.startFirstReads(p)
		}
		q.grantJobs(p)
		q.answerIfReady(p, m.err == nil && q.fetchFor(p))
	}
}
