package actors

import (
	"maps"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// This file handles poller jobs of tasks that other members own. A member keeps no list of them,
// because the store has them all. Other members announce new jobs, and this member reads them when
// one of its pollers needs them. A notice may be lost, so the member also searches the store every
// rescanInterval while a poller waits. The search is rare enough to read at most one page per
// rescanPagePause. Reads after a notice do not count for this pause, because many notices would
// otherwise delay the search.
const (
	rescanInterval  = int64(5_000) // milliseconds
	rescanPagePause = int64(1_000)
)

// A claimed job stays a row of the store, so it is not claimed again until its claim ends. A job
// that could not be claimed for another reason is not claimed again for claimDeferral. If a job is
// returned earlier, its owner announces it.
const (
	claimDeferral = int64(10_000)
	maxDeferred   = 100_000
)

// Messages to the sessions actor.
type (
	jobsOffered struct{ offers []engine.Offer }
	rescanDue   struct{ at int64 }
	rescanJobs  struct{} // another member has left, so its jobs have new owners
)

// acceptOffers gives jobs of other members' tasks to pollers that wait here. If no such poller
// waits, the next matching poller finds the jobs in the store.
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

// isRescanDue reports whether a search for jobs without a notice is due now. If not, it schedules
// the search.
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
	q.rescanAt = 0 // the store's clock may be behind the timer
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// rescanNow searches the store at once after a member has departed. Notices of its jobs may have
// arrived before the departure was known. In this case the claims failed and the jobs stayed in the
// store.
func (q *queue) rescanNow() {
	q.rescannedAt, q.rescanPages = 0, 0
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// spillService marks all ready lists of a service, so that they search the store again.
func (q *queue) spillService(service string) {
	if q.m.owned.OwnsAll() {
		return
	}
	for _, s := range q.ready[service] {
		s.fullSearch = true
		s.spillFrom(0)
	}
}

// deferClaim prevents claims of a job until the given time, because the job is being claimed or is
// held.
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

// returnClaim gives a claimed job back to its owner when the answer of the owner may have been
// lost.
func (q *queue) returnClaim(a claimAnswered) {
	if !q.m.owned.OwnsTask(a.ref.key.Task) {
		q.m.orderForwarder.SendCommand(a.ref.key.Task, flow.GiveBack{Address: a.ref.key.At, Token: a.claim.Token})
	}
}
