package actors

import (
	"context"

	"github.com/troupe-engine/troupe/engine"
)

// Exchange carries out orders and meanwhile claims jobs for a poller. The poller gets the oldest
// waiting jobs, and jobs that the orders start. A job that an order starts is claimed in the same
// row as the results of the order.
func (m *Member) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	if err := m.requestPart().checkPoll(&x.Next); err != nil {
		return engine.Exchanged{}, err
	}
	done := make(chan engine.Jobs, 1)
	p := newPoller(x.Next, func(got engine.Jobs) { done <- got })
	p.withOrders = true
	q := m.queue.Load()
	q.addOrderPoll(p)
	outcomes, err := m.requestPart().doAll(ctx, x.Orders, p)
	if err != nil {
		m.sendMessage(m.sessions, leavePoll{p})
		return engine.Exchanged{}, err
	}
	q.finishOrders(p)
	jobs, err := answerOf(ctx, m, done, nil)
	if err != nil { // the outcomes of the orders are returned despite the error
		m.sendMessage(m.sessions, leavePoll{p})
	}
	return engine.Exchanged{Outcomes: outcomes, Jobs: jobs}, nil
}

// addOrderPoll adds a poll that comes with orders to the waiting polls and grants it the ready
// jobs.
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

// finishOrders marks the orders of a poll as answered, so that the poll can be answered too.
func (q *queue) finishOrders(p *poller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expirePoll(p)
	if p.element != nil {
		m := q.m
		p.stop = m.work.After(answerEarlyAfter, func() { m.sendMessage(m.sessions, answerEarly{p}) })
	}
}
