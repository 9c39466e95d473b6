package actors

import (
	"maps"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs for pollers of other members' tasks. A member keeps no track of them: the store has them all. It is told of new ones,
// and looks there for one that nobody waits for here as soon as somebody comes. Because word may get lost, it also looks for
// all there are while a poller waits: every lookLong, and so seldom that it reads no more than a page each pagePause. What it reads
// because it was told of a job counts for nothing there: else much word would put off for long what one finds of whom there was none.
const (
	lookLong  = int64(5_000) // milliseconds
	pagePause = int64(1_000)
)

// A job that was claimed, or is held by somebody else, is left alone until the claim ends, as far as that is known: its row stays
// in the store all the time. One that was not to be had for another reason is left alone for triedFor. Of one that is
// returned before there is word.
const (
	triedFor = int64(10_000)
	maxTried = 100_000
)

// Messages to the sessions actor.
type (
	offered   struct{ offers []engine.Offer }
	lookAgain struct{ at int64 }
	succeeded struct{} // a member has gone: what it had is others'
)

// offered gives jobs of other members' tasks to pollers that wait here. If none does, the next one finds them in the store.
func (q *queue) offered(m offered) {
	for _, o := range m.offers {
		task, at, err := flow.ParseJobID(o.Job)
		if err != nil {
			continue
		}
		r := &ref{key: jobKey{task, at}, service: o.Service, flow: o.FlowID, labels: o.Labels, at: o.At, turn: o.Turn, size: o.Size}
		if q.underClaim(r) {
			continue
		}
		delete(q.tried, r.key)
		if p := q.waiter(r); p != nil {
			q.claim(p, r)
			continue
		}
		q.leaveInStore(r)
	}
}

// leaveInStore has the next poller who may have a job find it in the store.
func (q *queue) leaveInStore(r *ref) {
	if _, known := q.ready[r.service]; !known {
		q.ready[r.service] = nil
	}
	for _, s := range q.ready[r.service] {
		s.spill(r.at)
	}
}

// want notes a job for which nobody here waits.
func (q *queue) want(r *ref) {
	if q.m.cfg.Others != nil {
		q.wanted = append(q.wanted, engine.Offer{Job: flow.JobID(r.key.task, r.key.at), Service: r.service, FlowID: r.flow,
			Labels: r.labels, At: r.at, Turn: r.turn, Size: r.size})
	}
}

// tellOthers tells the others of the jobs that were noted.
func (q *queue) tellOthers() {
	if len(q.wanted) > 0 {
		q.m.cfg.Others.Wanted(q.wanted)
		q.wanted = nil
	}
}

// stale says that it is time to look for jobs that this member has not heard of. When it is not yet, that is done later.
func (q *queue) stale() bool {
	if q.m.owned.fixed {
		return false
	}
	next := q.lookedAt + max(lookLong, q.pages*pagePause)
	if next > q.m.now() {
		q.lookLater(next)
	}
	return next <= q.m.now()
}

// lookLater has the queue look at a time, or before.
func (q *queue) lookLater(at int64) {
	m, now := q.m, q.m.now()
	if q.lookAt > now && q.lookAt <= at {
		return
	}
	q.lookAt = at
	m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-now), func() { m.tell(m.sessions, lookAgain{at}) })
}

// lookAgain looks for jobs in the store as long as somebody waits for some.
func (q *queue) lookAgain(m lookAgain) {
	if m.at != q.lookAt {
		return
	}
	q.lookAt = 0 // by the store's time it may not be that late yet
	if q.waiting.Len() > 0 && !q.closed && q.stale() {
		q.learn()
	}
}

// succeeded looks in the store at once. Of jobs that a member had which has gone there may have been word before it was known here that it
// has: they were claimed of nobody, and left in the store.
func (q *queue) succeeded() {
	q.lookedAt, q.pages = 0, 0
	if q.waiting.Len() > 0 && !q.closed && q.stale() {
		q.learn()
	}
}

// spill has the ready lists of a service looked through in the store once more.
func (q *queue) spill(service string) {
	if q.m.owned.fixed {
		return
	}
	for _, s := range q.ready[service] {
		s.looking = true
		s.spill(0)
	}
}

// shun leaves a job alone that is being claimed, or held until a time.
func (q *queue) shun(key jobKey, until int64) {
	if q.m.owned.fixed {
		return
	}
	now := q.m.now()
	if len(q.tried) >= maxTried {
		maps.DeleteFunc(q.tried, func(_ jobKey, until int64) bool { return until <= now })
	}
	if len(q.tried) >= maxTried {
		clear(q.tried)
	}
	q.tried[key] = until
}

// untried says whether a job that is in the store may be to be had.
func (q *queue) untried(key jobKey) bool { return q.tried[key] <= q.m.now() }

// ask claims a job of a task, wherever that is.
func (q *queue) ask(r *ref, claim flow.Claim, answered func(engine.Outcome)) {
	m, now, task := q.m, q.m.now(), r.key.task
	remote := func() { m.claimForwarder.claim(task, claim, r.size+jobBytes, answered) }
	if !m.owned.owns(task) {
		remote()
		return
	}
	m.tell(m.tasks, &command{task: task, cmd: claim, reply: func(a answer) {
		if flow.ErrorKindOf(a.err) == flow.Moved {
			remote()
			return
		}
		answered(outcomeOf(claim, a, now))
	}})
}

// release returns a claim whose answer may have got lost on its way from another member.
func (q *queue) release(a claimAnswered) {
	if !q.m.owned.owns(a.ref.key.task) {
		q.m.orderForwarder.send(a.ref.key.task, flow.GiveBack{Address: a.ref.key.at, Token: a.claim.Token})
	}
}
