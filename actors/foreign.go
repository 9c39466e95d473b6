package actors

import (
	"maps"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs for pollers of other members' tasks. A member keeps no track of them: the store has them
// all. It is told of new ones, and looks there for one that nobody waits for here as soon as
// somebody comes. Because word may get lost, it also looks for all there are while a poller waits:
// every rescanInterval, and so seldom that it reads no more than a page each rescanPagePause. What
// it reads because it was told of a job counts for nothing there: else much word would put off for
// long what one finds of whom there was none.
const (
	rescanInterval  = int64(5_000) // milliseconds
	rescanPagePause = int64(1_000)
)

// A job that was claimed, or is held by somebody else, is left alone until the claim ends, as far
// as that is known: its row stays in the store all the time. One that was not to be had for another
// reason is left alone for claimDeferral. Of one that is returned before there is word.
const (
	claimDeferral = int64(10_000)
	maxDeferred   = 100_000
)

// Messages to the sessions actor.
type (
	jobsOffered struct{ offers []engine.Offer }
	rescanDue   struct{ at int64 }
	rescanJobs  struct{} // a member has gone: what it had is others'
)

// acceptOffers gives jobs of other members' tasks to pollers that wait here. If none does, the next
// one finds them in the store.
func (q *queue) acceptOffers(m jobsOffered) {
	for _, o := range m.offers {
		task, at, err := flow.ParseJobID(o.Job)
		if err != nil {
			continue
		}
		r := &queuedJob{key: jobKey{task, at}, service: o.Service, flow: o.FlowID, labels: o.Labels, at: o.At, turn: o.Turn, size: o.Size}
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

// markStoredJob has the next poller who may have a job find it in the store.
func (q *queue) markStoredJob(r *queuedJob) {
	if _, known := q.ready[r.service]; !known {
		q.ready[r.service] = nil
	}
	for _, s := range q.ready[r.service] {
		s.spillFrom(r.at)
	}
}

// addWanted notes a job for which nobody here waits.
func (q *queue) addWanted(r *queuedJob) {
	if q.m.cfg.Others != nil {
		q.wanted = append(q.wanted, engine.Offer{Job: flow.JobID(r.key.task, r.key.at), Service: r.service, FlowID: r.flow,
			Labels: r.labels, At: r.at, Turn: r.turn, Size: r.size})
	}
}

// announceWanted tells the others of the jobs that were noted.
func (q *queue) announceWanted() {
	if len(q.wanted) > 0 {
		q.m.cfg.Others.Wanted(q.wanted)
		q.wanted = nil
	}
}

// isRescanDue says that it is time to look for jobs that this member has not heard of. When it is
// not yet, that is done later.
func (q *queue) isRescanDue() bool {
	if q.m.owned.ownsAll {
		return false
	}
	next := q.rescannedAt + max(rescanInterval, q.rescanPages*rescanPagePause)
	if next > q.m.nowMillis() {
		q.scheduleRescan(next)
	}
	return next <= q.m.nowMillis()
}

// scheduleRescan has the queue look at a time, or before.
func (q *queue) scheduleRescan(at int64) {
	m, now := q.m, q.m.nowMillis()
	if q.rescanAt > now && q.rescanAt <= at {
		return
	}
	q.rescanAt = at
	m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-now), func() { m.sendMessage(m.sessions, rescanDue{at}) })
}

// rescanIfDue looks for jobs in the store as long as somebody waits for some.
func (q *queue) rescanIfDue(m rescanDue) {
	if m.at != q.rescanAt {
		return
	}
	q.rescanAt = 0 // by the store's time it may not be that late yet
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// rescanNow looks in the store at once. Of jobs that a member had which has gone there may have
// been word before it was known here that it has: they were claimed of nobody, and left in the
// store.
func (q *queue) rescanNow() {
	q.rescannedAt, q.rescanPages = 0, 0
	if q.waiting.Len() > 0 && !q.closed && q.isRescanDue() {
		q.readServices()
	}
}

// spillService has the ready lists of a service looked through in the store once more.
func (q *queue) spillService(service string) {
	if q.m.owned.ownsAll {
		return
	}
	for _, s := range q.ready[service] {
		s.fullSearch = true
		s.spillFrom(0)
	}
}

// deferClaim leaves a job alone that is being claimed, or held until a time.
func (q *queue) deferClaim(key jobKey, until int64) {
	if q.m.owned.ownsAll {
		return
	}
	now := q.m.nowMillis()
	if len(q.deferredUntil) >= maxDeferred {
		maps.DeleteFunc(q.deferredUntil, func(_ jobKey, until int64) bool { return until <= now })
	}
	if len(q.deferredUntil) >= maxDeferred {
		clear(q.deferredUntil)
	}
	q.deferredUntil[key] = until
}

// isClaimable reports whether a job that is in the store may be to be had.
func (q *queue) isClaimable(key jobKey) bool { return q.deferredUntil[key] <= q.m.nowMillis() }

// sendClaim claims a job of a task, wherever that is.
func (q *queue) sendClaim(r *queuedJob, claim flow.Claim, answered func(engine.Outcome)) {
	m, now, task := q.m, q.m.nowMillis(), r.key.task
	remote := func() { m.claimForwarder.forwardClaim(task, claim, r.size+jobBytes, answered) }
	if !m.owned.ownsTask(task) {
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

// returnClaim returns a claim whose answer may have got lost on its way from another member.
func (q *queue) returnClaim(a claimAnswered) {
	if !q.m.owned.ownsTask(a.ref.key.task) {
		q.m.orderForwarder.sendCommand(a.ref.key.task, flow.GiveBack{Address: a.ref.key.at, Token: a.claim.Token})
	}
}
