package cluster

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// actorless is a member that answers without actors, for the tasks that it really owns.
type actorless struct {
	s      *stage
	name   string
	server *httptest.Server
	router *Router
	views  *lying

	mu      sync.Mutex
	done    map[string]engine.Outcome // by request id
	effects []engine.Order
	asked   int         // number of requests
	busy    int         // number of requests that it will answer with Busy
	cut     atomic.Bool // it cannot reach the store
	before  func(ctx context.Context)
	after   func()
	errands engine.Errands
	credits []engine.Credits
	stirred []engine.Keys
	offered []engine.Offer
	heard   []engine.News
	wanted  []engine.Poll
	deaf    chan struct{} // closed when it records news again
}

func (m *actorless) owns(task string) error {
	if m.cut.Load() {
		m.with(func() { m.asked++ })
		return engine.Unable(flow.Errorf(flow.Busy, "it has lost touch with the store"))
	}
	if to, _ := m.s.truth.Load().OwnerOf(task); to.Incarnation != m.name {
		return flow.Errorf(flow.Moved, "task %s has moved to another member: ask again", task)
	}
	return nil
}

func (m *actorless) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *actorless) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	id, err := n.TaskID(flowID)
	if err == nil {
		err = m.owns(id)
	}
	if err != nil {
		return engine.Started{}, err
	}
	started := engine.Started{Task: id, Created: m.s.journal.begin(id)}
	m.hooks(ctx)
	return started, nil
}

func (m *actorless) hooks(ctx context.Context) {
	var before func(context.Context)
	var after func()
	m.with(func() { before, after = m.before, m.after })
	if before != nil {
		before(ctx)
	}
	if after != nil {
		after()
	}
}

func (m *actorless) Do(ctx context.Context, o engine.Order) (engine.Outcome, error) {
	if err := m.owns(o.Task); err != nil {
		return engine.Outcome{}, err
	}
	if m.tooMuch() {
		return engine.Outcome{}, flow.Errorf(flow.Busy, "too much to do")
	}
	if _, refused := o.Command.(flow.RetryTask); refused {
		return engine.Outcome{}, flow.Errorf(flow.Conflict, "it has not failed")
	}
	out := m.carryOut(o)
	m.hooks(ctx)
	return out, ctx.Err()
}

func (m *actorless) tooMuch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	return m.busy >= 0
}

// die simulates the end of a member's host.
func (m *actorless) die() {
	m.server.Listener.Close()
	m.server.CloseClientConnections()
}

func (m *actorless) carryOut(o engine.Order) engine.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if out, known := m.done[o.Request]; known {
		return out
	}
	m.effects = append(m.effects, o)
	out := engine.Outcome{First: len(m.effects)}
	if o.Request != "" {
		m.done[o.Request] = out
	}
	return out
}

func (m *actorless) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	outcomes := make(engine.Outcomes, len(orders))
	for i, o := range orders {
		out, err := m.Do(ctx, o)
		out.Err = err
		outcomes[i] = out
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	return outcomes, nil
}

func (m *actorless) Exchange(ctx context.Context, x engine.Exchange) (engine.Exchanged, error) {
	outcomes, err := m.DoAll(ctx, x.Orders)
	m.with(func() { m.wanted = append(m.wanted, x.Next) })
	jobs := make(engine.Jobs, x.Next.Max)
	for i := range jobs {
		jobs[i] = engine.Claimed{Job: engine.Job{Task: x.Orders[0].Task,
			Address: flow.Address{Node: "n", Visit: 1, Attempt: 1}}, Token: m.name}
	}
	return engine.Exchanged{Outcomes: outcomes, Jobs: jobs}, err
}

func (m *actorless) Poll(context.Context, engine.Poll) (engine.Jobs, error) {
	return engine.Jobs{{Token: m.name}}, nil
}

func (m *actorless) Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		if err := m.owns(task); err != nil {
			yield(engine.Row{}, err)
			return
		}
		for {
			rows, ended, grown := m.s.journal.read(task, after)
			for _, row := range rows {
				if after = row.Seq; !yield(engine.Row(row), nil) {
					return
				}
			}
			if ended {
				return
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (m *actorless) Await(ctx context.Context, task string) (flow.TaskStatus, error) {
	for {
		if err := m.owns(task); err != nil {
			return "", err
		}
		_, ended, grown := m.s.journal.read(task, 0)
		if ended {
			return flow.TaskCompleted, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (m *actorless) Appears(ctx context.Context, task string) error {
	for {
		rows, _, grown := m.s.journal.read(task, 0)
		if len(rows) > 0 {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *actorless) Now() time.Time { return time.Now().Add(m.s.ahead) }

func (m *actorless) Ready() error { return nil }

func (m *actorless) Carry(_ context.Context, errands engine.Errands) error {
	m.with(func() { m.errands = append(m.errands, errands...) })
	return nil
}

func (m *actorless) Credited(c *engine.Credits) {
	m.with(func() { m.credits = append(m.credits, *c) })
}

func (m *actorless) Heard(news engine.News) {
	var deaf chan struct{}
	m.with(func() { m.heard, deaf = append(m.heard, news), m.deaf })
	if deaf != nil {
		<-deaf
	}
}

// told returns the news received, in order.
func (m *actorless) told() []engine.News {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.heard)
}

func (m *actorless) Stirred(keys engine.Keys) {
	m.with(func() { m.stirred = append(m.stirred, keys) })
}

func (m *actorless) Offered(jobs []engine.Offer) {
	m.with(func() { m.offered = append(m.offered, jobs...) })
}
