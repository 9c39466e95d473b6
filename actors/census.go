package actors

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// census counts what is stored of tasks and of their nodes, and adds it to what the store has of it every few seconds. A crash
// loses what came since then; a store that cannot be reached then, too: sent again it might count twice.
type census struct {
	m       *Member
	parts   [censusParts]censusPart
	since   atomic.Int64 // when what is counted now began
	saved   atomic.Int64 // up to when everything that was counted is in the store
	sending atomic.Int32
}

const (
	censusEvery = 5 * time.Second
	// Tasks are counted in so many parts, so that few of them wait for each other.
	censusParts = 8
	// Nodes and versions of which one part has counts of their own; of more it is only counted together.
	censusMost = 500
	// Rows that are sent at once, so that tasks need not wait for long.
	censusRows = 500
)

type (
	censusPart struct {
		mu    sync.Mutex
		plans map[*flow.Plan]*planCensus
		rest  stats.Counts // of tasks of further plans
		known int          // plans and nodes
	}
	// planCensus is of a version. Plans and nodes are the same pointers as long as somebody has them.
	planCensus struct {
		version string
		tasks   stats.Counts
		nodes   map[*flow.PlanNode]*nodeCensus
		others  stats.Counts // of further nodes
	}
	nodeCensus struct {
		scope  string // of the plan
		counts stats.Counts
	}
)

func newCensus(m *Member) *census {
	c := &census{m: m}
	c.since.Store(m.now())
	c.saved.Store(m.now())
	return c
}

// stored counts a row of a task.
func (c *census) stored(t *task, p *draft) {
	if !t.begins() && p.ended == "" && len(p.tallies) == 0 {
		return
	}
	if t.counted == nil {
		t.counted = &c.parts[persistence.ShardOf(t.id)%censusParts]
	}
	part := t.counted
	part.mu.Lock()
	defer part.mu.Unlock()
	of := part.plan(t.state)
	tasks := &part.rest
	if of != nil {
		tasks = &of.tasks
		for i := range p.tallies {
			part.node(of, &p.tallies[i]).Tally(&p.tallies[i], t.id, t.state.UpdatedAt)
		}
	}
	if t.begins() {
		tasks.Began++
	}
	if s := t.state; p.ended != "" {
		at := max(s.EndedAt, s.CreatedAt)
		tasks.End(p.ended, t.id, at, at-s.CreatedAt)
	}
}

// plan is nil when there are too many.
func (p *censusPart) plan(s *flow.State) *planCensus {
	if of := p.plans[s.Plan]; of != nil {
		return of
	}
	if p.known >= censusMost {
		return nil
	}
	p.known++
	if p.plans == nil {
		p.plans = map[*flow.Plan]*planCensus{}
	}
	of := &planCensus{version: s.Version, nodes: map[*flow.PlanNode]*nodeCensus{}}
	p.plans[s.Plan] = of
	return of
}

func (p *censusPart) node(of *planCensus, t *flow.Tally) *stats.Counts {
	if n := of.nodes[t.Node]; n != nil {
		return &n.counts
	}
	if p.known >= censusMost || len(t.Scope) > persistence.StatsScope {
		return &of.others
	}
	p.known++
	n := &nodeCensus{scope: stats.PlanScope(t.Scope)}
	of.nodes[t.Node] = n
	return &n.counts
}

// keep sends what was counted as long as the member lives. A minute's counts are sent before the next one begins.
func (c *census) keep() {
	now := c.m.now()
	wait := min(censusEvery.Milliseconds(), persistence.StatsMinute-now%persistence.StatsMinute)
	c.m.cfg.Host.Clock.AfterFunc(time.Duration(wait)*time.Millisecond, func() {
		c.m.background(func() {
			ctx, cancel := c.m.storeCall()
			c.send(ctx)
			cancel()
			if c.m.ctx.Err() == nil {
				c.keep()
			}
		})
	})
}

// send adds what was counted to the store, in the time of ctx.
func (c *census) send(ctx context.Context) {
	c.sending.Add(1)
	defer c.sending.Add(-1)
	now := c.m.now()
	rows := c.take(c.since.Swap(now))
	for part := range slices.Chunk(rows, censusRows) {
		if err := c.m.store.AddStats(ctx, part); err != nil {
			c.m.outages.fails(notCounted, "", err)
			return
		}
	}
	if len(rows) > 0 {
		c.m.outages.works(notCounted, "")
	}
	c.saved.Store(now)
}

// lag is for how long nothing that was counted has come to the store.
func (c *census) lag() float64 { return float64(max(c.m.now()-c.saved.Load(), 0)) / 1000 }

// take makes rows of what was counted since a time, and counts anew.
func (c *census) take(since int64) []persistence.StatsRow {
	sums := map[stats.Key]*stats.Counts{}
	add := func(at stats.Key, counts *stats.Counts) {
		if sums[at] == nil {
			sums[at] = &stats.Counts{}
		}
		sums[at].Add(counts)
	}
	for i := range c.parts {
		c.parts[i].take(add)
	}
	rows := make([]persistence.StatsRow, 0, 2*len(sums))
	for at, counts := range sums {
		for _, width := range []int64{persistence.StatsMinute, persistence.StatsHour} {
			rows = append(rows, persistence.StatsRow{StatsSpot: persistence.StatsSpot{Key: at, Width: width, Bucket: since - since%width}, Counts: *counts})
		}
	}
	slices.SortFunc(rows, func(a, b persistence.StatsRow) int { return a.Compare(&b.StatsSpot) })
	return rows
}

func (p *censusPart) take(add func(stats.Key, *stats.Counts)) {
	p.mu.Lock()
	plans, rest := p.plans, p.rest
	p.plans, p.rest, p.known = nil, stats.Counts{}, 0
	p.mu.Unlock()
	if !rest.Empty() {
		add(stats.Key{}, &rest)
	}
	for plan, of := range plans {
		at := stats.Key{Flow: plan.FlowID, Version: of.version}
		if !of.tasks.Empty() {
			add(at, &of.tasks)
			add(stats.Key{}, &of.tasks)
		}
		if at.Flow == "" { // nobody knows whose version it is
			continue
		}
		for node, n := range of.nodes {
			at.Scope, at.Node = n.scope, node.Key
			add(at, &n.counts)
		}
		if at.Scope, at.Node = "", stats.Other; !of.others.Empty() {
			add(at, &of.others)
		}
	}
}
