package actors

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
)

// Exchange carries out orders, and claims jobs for a poller meanwhile: of those that wait the
// oldest, and those that begin by the orders as they begin, so that beginning and claim are one row
// with what the order did.
func (m *Member) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	if err := m.checkPoll(&x.Next); err != nil {
		return engine.Exchanged{}, err
	}
	done := make(chan engine.Jobs, 1)
	p := newPoller(x.Next, func(got engine.Jobs) { done <- got })
	p.withOrders = true
	q := m.queue.Load()
	q.addOrderPoll(p)
	outcomes, err := m.doAll(ctx, x.Orders, p)
	if err != nil {
		m.sendMessage(m.sessions, leavePoll{p})
		return engine.Exchanged{}, err
	}
	q.finishOrders(p)
	jobs, err := answerOf(ctx, m, done, nil)
	if err != nil { // what became of the orders is known
		m.sendMessage(m.sessions, leavePoll{p})
	}
	return engine.Exchanged{Outcomes: outcomes, Jobs: jobs}, nil
}

// addOrderPoll has a poll wait that comes with orders. It gets what is there.
func (q *queue) addOrderPoll(p *poller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		p.timedOut = true
	}
	p.element = q.waiting.PushBack(p)
	q.startFirstReads(p)
	q.grantJobs(p)
}

// finishOrders has a poll answered whose orders are.
func (q *queue) finishOrders(p *poller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expirePoll(p)
	if p.element != nil {
		m := q.m
		p.stop = m.cfg.Host.Clock.AfterFunc(answerEarlyAfter, func() { m.sendMessage(m.sessions, answerEarly{p}) })
	}
}
