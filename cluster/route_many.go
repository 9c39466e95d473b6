package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// DoAll carries out repeatable orders at the owners of their tasks, all at the same time.
func (r *Router) DoAll(ctx context.Context, orders engine.Orders) (engine.Outcomes, error) {
	p, err := r.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	return r.newBatch(p, orders).askAll(ctx)
}

// askAll sends all orders until they are answered or the patience ends.
func (m *orderBatch) askAll(ctx context.Context) (engine.Outcomes, error) {
	r, p := m.r, m.p
	patient, cancel := r.withPatience(ctx)
	defer cancel()
	for wait := (retryBackoff{}); ; {
		seen := p.views.Current().Generation
		m.askOwners(ctx, patient)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if m.retainOpen(isMovedOrder); len(m.open) == 0 {
			return m.outcomes, nil
		}
		if away := p.storeAway(); away != nil {
			for _, i := range m.open {
				m.outcomes[i] = engine.Outcome{Err: away}
			}
			return m.outcomes, nil
		}
		if !r.waitForView(patient, p, seen, &wait) {
			return m.outcomes, m.giveUp(ctx)
		}
	}
}

// orderBatch is a batch of orders in progress.
type orderBatch struct {
	r        *Router
	p        *localMember
	orders   engine.Orders
	outcomes engine.Outcomes
	open     []int       // indexes of the orders to send
	next     *jointClaim // claim of jobs besides the orders; nil means none
}

func (r *Router) newBatch(p *localMember, orders engine.Orders) *orderBatch {
	m := &orderBatch{r: r, p: p, orders: orders, outcomes: make(engine.Outcomes, len(orders)), open: make([]int, len(orders))}
	for i := range orders {
		m.open[i] = i
	}
	return m
}

// askOwners sends each open order once to its owner. Orders for this member use ctx, and others use
// patient.
func (m *orderBatch) askOwners(ctx, patient context.Context) {
	here, there := m.byOwner()
	work := host.Group{Host: &m.r.cfg.Host}
	for _, at := range there {
		for _, part := range m.splitOrders(at.orders) {
			claim := m.next.splitPoll(len(part))
			work.Run(func() {
				m.storeOutcomes(part, func(o engine.Orders) (engine.Outcomes, error) { return m.forwardOrders(patient, at.to, o, claim) })
			})
		}
	}
	if len(here) > 0 {
		claim := m.next.takeRest()
		m.storeOutcomes(here, func(o engine.Orders) (engine.Outcomes, error) { return m.doLocally(ctx, o, claim) })
	}
	work.Wait()
}

// ownedOrders are orders for another member.
type ownedOrders struct {
	to     persistence.MemberRow
	orders []int
}

// byOwner groups the open orders by owner. Other members are in order of their first order.
func (m *orderBatch) byOwner() (here []int, there []*ownedOrders) {
	by := map[string]*ownedOrders{}
	for _, i := range m.open {
		to, isHere, nobody := m.p.findOwner(m.orders[i].Task)
		switch {
		case isHere:
			here = append(here, i)
		case nobody != nil:
			m.outcomes[i] = engine.Outcome{Err: nobody}
		case by[to.Incarnation] == nil:
			at := &ownedOrders{to, []int{i}}
			by[to.Incarnation], there = at, append(there, at)
		default:
			by[to.Incarnation].orders = append(by[to.Incarnation].orders, i)
		}
	}
	return here, there
}

// These are the limits of one request to another member, unless a single order is larger.
const (
	mostOrders = 500
	orderBytes = 4 << 20
)

// splitOrders splits orders into requests within the limits.
func (m *orderBatch) splitOrders(orders []int) (parts [][]int) {
	begin, bytes := 0, 0
	for n, i := range orders {
		size := commandBytes(m.orders[i].Command)
		if n-begin == mostOrders || n > begin && bytes+size > orderBytes {
			parts = append(parts, orders[begin:n])
			begin, bytes = n, 0
		}
		bytes += size
	}
	return append(parts, orders[begin:])
}

// commandBytes returns the approximate size of a command's values in bytes.
func commandBytes(cmd flow.Command) (n int) {
	switch c := cmd.(type) {
	case flow.Signal:
		return len(c.Value)
	case flow.Report:
		return len(c.Output) + len(c.Error)
	case flow.Append:
		for _, item := range c.Items {
			n += len(item)
		}
	}
	return n
}

// storeOutcomes calls by with orders, and stores the outcomes at their indexes.
func (m *orderBatch) storeOutcomes(orders []int, by func(engine.Orders) (engine.Outcomes, error)) {
	asked := make(engine.Orders, len(orders))
	for n, i := range orders {
		asked[n] = m.orders[i]
	}
	outcomes, err := by(asked)
	for n, i := range orders {
		if err != nil {
			m.outcomes[i] = engine.Outcome{Err: err}
		} else {
			m.outcomes[i] = outcomes[n]
		}
	}
}

// doLocally makes this member carry out orders, and claim jobs if claim is not nil.
func (m *orderBatch) doLocally(ctx context.Context, orders engine.Orders, claim *engine.Poll) (engine.Outcomes, error) {
	if claim == nil {
		return m.p.local.DoAll(ctx, orders)
	}
	done, err := m.p.local.Exchange(ctx, engine.Exchange{Orders: orders, Next: *claim})
	m.next.addJobs(done.Jobs)
	return done.Outcomes, err
}

// forwardOrders makes another member carry out orders, and claim jobs if claim is not nil.
func (m *orderBatch) forwardOrders(ctx context.Context, to persistence.MemberRow,
	orders engine.Orders, claim *engine.Poll) (outcomes engine.Outcomes, err error) {
	if claim == nil {
		var done *engine.Outcomes
		if done, err = askMember[*engine.Outcomes](ctx, m.r, to, &orders); err == nil {
			outcomes = *done
		}
	} else {
		var done *engine.Exchanged
		done, err = askMember[*engine.Exchanged](ctx, m.r, to, &engine.Exchange{Orders: orders, Next: *claim})
		if err == nil {
			outcomes = done.Outcomes
			m.next.addJobs(done.Jobs)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(outcomes) != len(orders) {
		return nil, errors.New("another member has answered fewer orders than there were, or more")
	}
	for i := range outcomes {
		outcomes[i].Err = ofAnother(outcomes[i].Err)
	}
	return outcomes, nil
}

// isMovedOrder reports whether an order is worth another try; see isRetryable.
func isMovedOrder(_ engine.Order, err error) bool { return isRetryable(err) }

// retainOpen keeps the open orders for which open returns true.
func (m *orderBatch) retainOpen(open func(engine.Order, error) bool) {
	m.open = slices.DeleteFunc(m.open, func(i int) bool { return !open(m.orders[i], m.outcomes[i].Err) })
}

// giveUp sets the errors of the open orders. It returns an error only if the caller has stopped
// waiting.
func (m *orderBatch) giveUp(ctx context.Context) error {
	for _, i := range m.open {
		err := giveUp(ctx, m.orders[i].Task, m.outcomes[i].Err)
		m.outcomes[i] = engine.Outcome{Err: err}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}
