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

// taskStatistics count what is stored of tasks and their nodes, and add the counts to the store
// every few seconds. A crash loses the counts since the last write. A failed write loses its counts
// too, because a retry might count twice.
type taskStatistics struct {
	m       *Member
	parts   [statisticsParts]statisticsPart
	since   atomic.Int64 // start of the current counts
	saved   atomic.Int64 // all counts up to this time are in the store
	sending atomic.Int32
}

const (
	statisticsEvery = 5 * time.Second
	// statisticsParts is the number of independent parts, so that tasks rarely wait for each other.
	statisticsParts = 8
	// maxCounted is how many nodes and versions have their own counts in one part. Further ones are
	// counted together.
	maxCounted = 500
	// statisticsRows is how many rows one write adds, so that tasks do not wait for it long.
	statisticsRows = 500
)

type (
	statisticsPart struct {
		mu    sync.Mutex
		plans map[*flow.Plan]*planStatistics
		rest  stats.Counts // tasks of further plans
		known int          // number of plans and nodes
	}
	// planStatistics holds the counts of a version. The pointers of plans and nodes are stable
	// while they are in use.
	planStatistics struct {
		version string
		tasks   stats.Counts
		nodes   map[*flow.PlanNode]*nodeStatistics
		others  stats.Counts // further nodes
	}
	nodeStatistics struct {
		scope  string // scope within the plan
		counts stats.Counts
	}
)

func newStatistics(m *Member) *taskStatistics {
	s := &taskStatistics{m: m}
	s.since.Store(m.nowMillis())
	s.saved.Store(m.nowMillis())
	return s
}

// countRow counts a stored row of a task.
func (s *taskStatistics) countRow(t *task, p *journalDraft) {
	if !t.isFirstRow() && p.ended == "" && len(p.tallies) == 0 {
		return
	}
	if t.counted == nil {
		t.counted = &s.parts[persistence.ShardOf(t.id)%statisticsParts]
	}
	part := t.counted
	part.mu.Lock()
	defer part.mu.Unlock()
	of := part.planCounts(t.state)
	tasks := &part.rest
	if of != nil {
		tasks = &of.tasks
		for i := range p.tallies {
			part.nodeCounts(of, &p.tallies[i]).Tally(&p.tallies[i], t.id, t.state.UpdatedAt)
		}
	}
	if t.isFirstRow() {
		tasks.Began++
	}
	if p.ended != "" {
		at := max(t.state.EndedAt, t.state.CreatedAt)
		tasks.End(p.ended, t.id, at, at-t.state.CreatedAt)
	}
}

// planCounts returns the counts of a plan; nil if there are too many plans.
func (p *statisticsPart) planCounts(s *flow.State) *planStatistics {
	if of := p.plans[s.Plan]; of != nil {
		return of
	}
	if p.known >= maxCounted {
		return nil
	}
	p.known++
	if p.plans == nil {
		p.plans = map[*flow.Plan]*planStatistics{}
	}
	of := &planStatistics{version: s.Version, nodes: map[*flow.PlanNode]*nodeStatistics{}}
	p.plans[s.Plan] = of
	return of
}

func (p *statisticsPart) nodeCounts(of *planStatistics, t *flow.Tally) *stats.Counts {
	if n := of.nodes[t.Node]; n != nil {
		return &n.counts
	}
	if p.known >= maxCounted || len(t.Scope) > persistence.StatsScope {
		return &of.others
	}
	p.known++
	n := &nodeStatistics{scope: stats.PlanScope(t.Scope)}
	of.nodes[t.Node] = n
	return &n.counts
}

// sendPeriodically writes the counts to the store until the member ends. The counts of a minute are
// sent before the next one starts.
func (s *taskStatistics) sendPeriodically() {
	now := s.m.nowMillis()
	wait := min(statisticsEvery.Milliseconds(), persistence.StatsMinute-now%persistence.StatsMinute)
	s.m.cfg.Host.Clock.AfterFunc(time.Duration(wait)*time.Millisecond, func() {
		s.m.runBackground(func() {
			ctx, cancel := s.m.storeCall()
			s.sendCounts(ctx)
			cancel()
			if s.m.ctx.Err() == nil {
				s.sendPeriodically()
			}
		})
	})
}

// sendCounts adds the counts to the store before ctx ends.
func (s *taskStatistics) sendCounts(ctx context.Context) {
	s.sending.Add(1)
	defer s.sending.Add(-1)
	now := s.m.nowMillis()
	rows := s.takeRows(s.since.Swap(now))
	for part := range slices.Chunk(rows, statisticsRows) {
		if err := s.m.store.AddStats(ctx, part); err != nil {
			s.m.outages.recordFailure(notCounted, "", err)
			return
		}
	}
	if len(rows) > 0 {
		s.m.outages.recordSuccess(notCounted, "")
	}
	s.saved.Store(now)
}

// lagSeconds returns how long no counts have reached the store.
func (s *taskStatistics) lagSeconds() float64 {
	return float64(max(s.m.nowMillis()-s.saved.Load(), 0)) / 1000
}

// takeRows converts the counts since a time to rows, and resets them.
func (s *taskStatistics) takeRows(since int64) []persistence.StatsRow {
	sums := map[stats.Key]*stats.Counts{}
	add := func(at stats.Key, counts *stats.Counts) {
		if sums[at] == nil {
			sums[at] = &stats.Counts{}
		}
		sums[at].Add(counts)
	}
	for i := range s.parts {
		s.parts[i].takeCounts(add)
	}
	rows := make([]persistence.StatsRow, 0, 2*len(sums))
	for at, counts := range sums {
		for _, width := range []int64{persistence.StatsMinute, persistence.StatsHour} {
			rows = append(rows, persistence.StatsRow{StatsSpot: persistence.StatsSpot{Key: at,
				Width: width, Bucket: since - since%width}, Counts: *counts})
		}
	}
	slices.SortFunc(rows, func(a, b persistence.StatsRow) int { return a.Compare(&b.StatsSpot) })
	return rows
}

func (p *statisticsPart) takeCounts(add func(stats.Key, *stats.Counts)) {
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
		if at.Flow == "" { // the flow of the version is unknown
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
