package actors

import (
	"maps"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// This file handles poller jobs of tasks that other members own. A member keeps no list of them:
// the store has them all. It is notified of new ones, and reads a job that no poller waits for here
// when a poller comes. Because a notice may be lost, it also searches the store while a poller
// waits: every rescanInterval, and seldom enough that it reads no more than a page per
// rescanPagePause. Reads that follow a notice do not count for this pause. Otherwise many notices
// would long delay the search for jobs whose notice was lost.
const (
	rescanInterval  = int64(5_000) // milliseconds
	rescanPagePause = int64(1_000)
)

// A job that was claimed, or is held by another session, is left alone until the claim ends, if
// that time is known: its row stays in the store all the time. A job that could not be claimed for
// another reason is left alone for claimDeferral. If a job is returned earlier, there is a notice.
const (
	claimDeferral = int64(10_000)
	maxDeferred   = 100_000
)

// Messages to the sessions actor.
type (
	jobsOffered struct{ offers []engine.Offer }
	rescanDue   struct{ at int64 }
	rescanJobs  struct{} // a member has left: its jobs belong to others
)

// acceptOffers gives jobs of other members' tasks to pollers that wait here. Without such a poller,
// the next one finds them in the store.
func (q *queue) acceptOffers(m jobsOffered) {
	for _, o := range m.offers {
		task, at, err := flow.ParseJobID(o.Job)
		if err != nil {
			continue
		}
		r := &queuedJob{key: engine.JobKey{Task: task, At: at}, service: o.Service, flow: o.FlowID,
			labels: o.Labels, at: o.At, turn: o.Turn, size: o.Size}
		if q.isUnderClaim(r) {
			continue
		}
		delete(q.deferredUntil, r.key)
		if p := q.findWaiter(r); p != nil {
			q.claimJob(p, r)
			continue
		}
		q.markStoredJob(r)
	}
}

// markStoredJob makes the next matching poller search the store for a job.
func (q *queue) markStoredJob(r *queuedJob) {
	if _, known := q.ready[r.service]; !known {
		q.ready[r.service] = nil
	}
	for _, s := range q.ready[r.service] {
		s.spillFrom(r.at)
	}
}

// addWanted records a job for which no poller waits here.
func (q *queue) addWanted(r *queuedJob) {
	if q.m.cfg.Others != nil {
		q.wanted = append(q.wanted, engine.Offer{Job: flow.JobID(r.key.Task, r.key.At), Service: r.service, FlowID: r.flow,
			Labels: r.labels, At: r.at, Turn: r.turn, Size: r.size})
	}
}

// announceWanted announces the recorded jobs to the other members.
func (q *queue) announceWanted() {
	if len(q.wanted) > 0 {
		q.m.cfg.Others.Wanted(q.wanted)
		q.wanted = nil
	}
}

// isRescanDue reports whether it is time to search for jobs without a notice. If it is not, it
// schedules the search.
func (q *queue) isRescanDue() bool {
	if q.m.owned.OwnsAll() {
		return false
	}
	next := q.rescannedAt + max(rescanInterval, q.rescanPages*rescanPagePause)
	if next > q.m.nowMillis() {
		q.scheduleRescan(next)
	}
	return next <= q.m.nowMillis()
}

// scheduleRescan makes the queue search at the given time, or earlier.
func (q *queue) scheduleRescan(at int64) {
	m, now := q.m, q.m.nowMillis()
	if q.rescanAt > now && q.rescanAt <= at {
		return
	}
	q.rescanAt = at
	m.work.After(flow.Milliseconds(at-now), func() { m.sendMessage(m.sessions, rescanDue{at}) })
}

// rescanIfDue searches the store for jobs while a poller waits.
func (q *queue) rescanIfDue(m rescanDue) {
	if m.at != q.rescanAt {
		return
	}
	q.rescanAt = 0 // by the store's clock, it may not be that late yet
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// rescanNow searches the store at once. Notices of a departed member's jobs may have come before
// this member knew of the departure. Then their claims failed and the jobs stayed in the store.
func (q *queue) rescanNow() {
	q.rescannedAt, q.rescanPages = 0, 0
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// spillService makes all ready lists of a service search the store again.
func (q *queue) spillService(service string) {
	if q.m.owned.OwnsAll() {
		return
	}
	for _, s := range q.ready[service] {
		s.fullSearch = true
		s.spillFrom(0)
	}
}

// deferClaim leaves a job alone that is being claimed, or is held until a time.
func (q *queue) deferClaim(key engine.JobKey, until int64) {
	if q.m.owned.OwnsAll() {
		return
	}
	now := q.m.nowMillis()
	if len(q.deferredUntil) >= maxDeferred {
		maps.DeleteFunc(q.deferredUntil, func(_ engine.JobKey, until int64) bool { return until <= now })
	}
	if len(q.deferredUntil) >= maxDeferred {
		clear(q.deferredUntil)
	}
	q.deferredUntil[key] = until
}

// isClaimable reports whether a job in the store may be available.
func (q *queue) isClaimable(key engine.JobKey) bool { return q.deferredUntil[key] <= q.m.nowMillis() }

// sendClaim claims a job of a task on any member.
func (q *queue) sendClaim(r *queuedJob, claim flow.Claim, answered func(engine.Outcome)) {
	m, now, task := q.m, q.m.nowMillis(), r.key.Task
	remote := func() { m.claimForwarder.Send(task, claim, r.size+jobBytes, answered) }
	if !m.owned.OwnsTask(task) {
		remote()
		return
	}
	m.sendMessage(m.tasks, &taskCommand{task: task, command: claim, reply: func(a commandAnswer) {
		if flow.ErrorKindOf(a.err) == flow.Moved {
			remote()
			return
		}
		answered(outcomeOf(claim, a, now))
	}})
}

// returnClaim returns a claim if the answer of the other member may have been lost.
func (q *queue) returnClaim(a claimAnswered) {
	if !q.m.owned.OwnsTask(a.ref.key.Task) {
		q.m.orderForwarder.SendCommand(a.ref.key.Task, flow.GiveBack{Address: a.ref.key.At, Token: a.claim.Token})
	}
}
