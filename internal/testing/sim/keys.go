package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// drawKeys may give a node or flow limits shared with others. They change the timing, not the
// outcome.
func drawKeys(rng *rand.Rand, n object, refs ...string) {
	if rng.IntN(7) == 0 {
		limit := 1 + rng.IntN(3)
		spec := object{"name": fmt.Sprint("at-once-", limit), "limit": limit, "key": pickOne(rng, append(refs, "", "k")...)}
		if rng.IntN(3) == 0 {
			spec["fair"] = "$params.n"
		}
		n["concurrency"], n["priority"] = spec, pickOne[any](rng, 0, 9, -9, "$params.n")
	}
	if rng.IntN(12) == 0 {
		limit := 1 + rng.IntN(4)
		n["rate"] = object{"name": fmt.Sprint("begin-", limit), "limit": limit, "per": "400ms", "key": pickOne(rng, append(refs, "")...)}
	}
}

func (m *storeModel) Rule(_ context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	if m.findMember(incarnation) == nil && !m.unfenced {
		return persistence.Ruling{}, persistence.ErrFenced
	}
	r := m.permits.Rule(m.w.storeNow().UnixMilli(), q)
	if m.generous { // a defect to be detected: one permit more than the limit is granted
		r.Given = append(r.Given, m.permits.Waiting(q.Key)...)
	}
	m.check.checkRate(m.w.storeNow().UnixMilli(), &r)
	m.w.addTrace("%s decides about %s: %d given", incarnation, q.Key, len(r.Given))
	return r, nil
}

func (m *storeModel) OpenKeys(_ context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return m.permits.Open(shards, after, limit), nil
}

func (m *storeModel) PermitsOf(_ context.Context, task string) ([]persistence.PermitRow, error) {
	return m.permits.Of(task), nil
}

func (m *storeModel) ForgetKeys(_ context.Context, limit int) (int, error) {
	return m.permits.Forget(m.w.storeNow().UnixMilli(), limit), nil
}

func (d *storeConn) Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error) {
	return callStore(d, func() (persistence.Ruling, error) { return d.Store.Rule(ctx, incarnation, q) })
}

func (d *storeConn) OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return callStore(d, func() ([]string, error) { return d.Store.OpenKeys(ctx, shards, after, limit) })
}

func (d *storeConn) PermitsOf(ctx context.Context, task string) ([]persistence.PermitRow, error) {
	return callStore(d, func() ([]persistence.PermitRow, error) { return d.Store.PermitsOf(ctx, task) })
}

func (d *storeConn) ForgetKeys(ctx context.Context, limit int) (int, error) {
	return callStore(d, func() (int, error) { return d.Store.ForgetKeys(ctx, limit) })
}

// taskPermit is a permit that a task holds or waits for, according to its journal.
type taskPermit struct {
	holder string
	flow.Permit
	held bool
}

// permitsIn returns the permits of a task.
func permitsIn(s *flow.State) (list []taskPermit) {
	if s.Status.Ended() {
		return nil
	}
	add := func(a flow.Address, p *flow.Permits) {
		for i := 0; p != nil && i < min(p.Got+1, len(p.List)); i++ {
			if held := i < p.Got; !held || p.List[i].PerMS == 0 {
				list = append(list, taskPermit{flow.JobID(s.Task, a), p.List[i], held})
			}
		}
	}
	add(flow.Address{Attempt: s.Asked}, s.Permits)
	var below func([]*flow.Step)
	below = func(steps []*flow.Step) {
		for _, st := range steps {
			for i := range st.Units {
				if u := &st.Units[i]; u.Live != nil {
					a := st.Address()
					a.Unit, a.Attempt = i, int(u.Attempt)
					add(a, u.Live.Permits)
				}
			}
			if st.Child != nil {
				below(st.Child.Active())
			}
		}
	}
	below(s.Active())
	return list
}

// checkKeys checks after a commit that the store has exactly the permits that the task holds or
// waits for, and that no key is held beyond its limit according to the journals.
func (c *commitChecker) checkKeys(t *taskShadow, task string) {
	t.permits = permitsIn(t.state)
	var says, stored []string
	for _, p := range t.permits {
		says = append(says, fmt.Sprint(p.holder, " ", p.Key, " ", p.held))
	}
	for _, r := range c.store.permits.Of(task) {
		stored = append(stored, fmt.Sprint(r.Holder, " ", r.Key, " ", r.State == persistence.PermitHeld))
	}
	slices.Sort(says)
	slices.Sort(stored)
	if !slices.Equal(says, stored) {
		c.w.failRun("task %s: the store has the permits %v, its journal says %v", task, stored, says)
	}
	for _, p := range t.permits {
		if p.held {
			c.checkLimit(&p)
		}
	}
}

// checkLimit counts the holders of a key.
func (c *commitChecker) checkLimit(p *taskPermit) {
	n := 0
	for _, t := range c.tasks {
		for _, other := range t.permits {
			if other.held && other.Key == p.Key && !t.deleted {
				n++
			}
		}
	}
	if n > p.Limit {
		c.w.failRun("%d hold the key %s at once, of which %d may", n, p.Key, p.Limit)
	}
}

// checkRate counts the holders that a rate lets start, each once.
func (c *commitChecker) checkRate(now int64, r *persistence.Ruling) {
	for _, row := range r.Given {
		if row.PerMS == 0 {
			continue
		}
		if c.rateStarts[row.Key] == nil {
			c.rateStarts[row.Key] = map[string]int64{}
		}
		c.rateStarts[row.Key][row.Holder] = row.GivenAt
		n := 0
		for _, at := range c.rateStarts[row.Key] {
			if at > now-row.PerMS {
				n++
			}
		}
		if n > row.Limit {
			c.w.failRun("%d of %s have begun within %d ms, of which %d may", n, row.Key, row.PerMS, row.Limit)
		}
	}
}
