package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Jobs for pollers of other members' tasks. A member keeps no track of them: the store has them all. It looks there when a
// poller comes that it has nothing for, and now and then while one waits; in between it is told of new ones.
const (
	lookSoon = int64(250)   // milliseconds; a member looks no more often, whoever asks
	lookLong = int64(5_000) // and no less while somebody waits, because word of a job may get lost
)

// Jobs that were claimed, or were not to be had, are not claimed again for a while: their rows stay in the store as long
// as somebody holds them. Of one that is returned there is word.
const (
	triedFor = int64(10_000)
	maxTried = 100_000
)

// Messages to the sessions actor.
type (
	offered   struct{ offers []engine.Offer }
	lookAgain struct{ at int64 }
)

// offered gives jobs of other members' tasks to pollers that wait here. If none does, the next one finds them in the store.
func (q *queue) offered(c actor.Context, m offered) {
	for _, o := range m.offers {
		task, at, err := flow.ParseJobID(o.Job)
		if err != nil {
			continue
		}
		r := &ref{key: jobKey{task, at}, service: o.Service, flow: o.FlowID, labels: o.Labels, at: o.At, turn: o.Turn, size: o.Size}
		delete(q.tried, r.key)
		if p := q.waiter(r); p != nil {
			q.claim(c, p, r)
			continue
		}
		q.lookedAt = 0
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

// stale says that other members may have made jobs that this one has not heard of. When it is not time yet to look,
// that is done later.
func (q *queue) stale() bool {
	if q.m.owned.fixed {
		return false
	}
	now := q.m.now()
	if soon := q.lookedAt + lookSoon; soon > now {
		q.lookLater(soon)
		return false
	}
	q.lookLater(now + lookLong)
	return true
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
	if m.at != q.lookAt || q.waiting.Len() == 0 || q.closed {
		return
	}
	q.learn()
	q.lookLater(q.m.now() + lookLong)
}

// spill has the shelves of a service looked through in the store once more.
func (q *queue) spill(service string) {
	if q.m.owned.fixed {
		return
	}
	for _, s := range q.ready[service] {
		s.spill()
	}
}

// try notes that a job is being claimed.
func (q *queue) try(key jobKey) {
	if q.m.owned.fixed {
		return
	}
	if len(q.tried) >= maxTried {
		clear(q.tried)
	}
	q.tried[key] = q.m.now()
}

// untried says whether a job that is in the store may be to be had.
func (q *queue) untried(key jobKey) bool {
	at, tried := q.tried[key]
	return !tried || q.m.now()-at > triedFor
}

// ask claims a job of a task, wherever that is.
func (q *queue) ask(c actor.Context, key jobKey, claim flow.Claim, answered func(*engine.Claimed, error)) {
	m, now := q.m, q.m.now()
	abroad := func() { m.envoy.ask(key.task, claim, func(o engine.Outcome) { answered(o.Job, o.Err) }) }
	if !m.owned.owns(key.task) {
		abroad()
		return
	}
	c.Send(m.tasks, &command{task: key.task, cmd: claim, reply: func(a answer) {
		switch {
		case flow.ErrorKindOf(a.err) == flow.Moved:
			abroad()
		case a.err != nil:
			answered(nil, a.err)
		default:
			got := claimed(a.job, claim.Token, now)
			answered(&got, nil)
		}
	}})
}

// release returns a claim whose answer may have got lost on its way from another member.
func (q *queue) release(a claimAnswered) {
	if !q.m.owned.owns(a.ref.key.task) {
		q.m.envoy.send(a.ref.key.task, flow.GiveBack{Address: a.ref.key.at, Token: a.claim.Token})
	}
}
