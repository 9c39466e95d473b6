package metrics

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

// Statistics count the stored rows of tasks and their nodes, and add the counts to the store every
// few seconds. A crash or a failed write loses counts. Failed writes are not repeated, because a
// retry might count twice.
type Statistics struct {
	cfg     StatisticsConfig
	parts   [statisticsParts]StatisticsPart
	since   atomic.Int64 // start time of the current counts, in Unix milliseconds
	saved   atomic.Int64 // time up to which all counts are in the store, in Unix milliseconds
	sending atomic.Int32
}

const (
	statisticsEvery = 5 * time.Second
	// statisticsParts is the number of parts with separate locks, so that tasks rarely wait for
	// each other.
	statisticsParts = 8
	// maxCounted is how many nodes and versions have their own counts in one part. Further ones are
	// counted together.
	maxCounted = 500
	// statisticsRows is how many rows one write adds. Small writes keep the waits of tasks short.
	statisticsRows = 500
)

// notCounted is the log message about an outage.
const notCounted = "writing statistics failed: some seconds are lost"

type (
	// StatisticsPart counts some of the tasks.
	StatisticsPart struct {
		mu    sync.Mutex
		plans map[*flow.Plan]*planStatistics
		rest  stats.Counts // counts of tasks beyond maxCounted
		known int          // number of plans and nodes
	}
	// planStatistics holds the counts of a version. The pointers of plans and nodes are stable
	// while they are in use.
	planStatistics struct {
		version string
		tasks   stats.Counts
		nodes   map[*flow.PlanNode]*nodeStatistics
		others  stats.Counts // counts of nodes beyond maxCounted
	}
	nodeStatistics struct {
		scope  string // scope of the node within the plan
		counts stats.Counts
	}
)

// StatisticsConfig configures the statistics of a member.
type StatisticsConfig struct {
	Store   StatisticsStore
	Now     func() int64 // the store's time in Unix milliseconds
	Work    *background.Work
	Outages Outages
}

// StatisticsStore is the part of the store that statistics need.
type StatisticsStore interface {
	AddStats(ctx context.Context, rows []persistence.StatsRow) error
}

// Outages receives the results of store calls.
type Outages interface {
	RecordFailure(what, thing string, err error) (times int)
	RecordSuccess(what, thing string)
}

// NewStatistics creates empty statistics.
func NewStatistics(cfg StatisticsConfig) *Statistics {
	s := &Statistics{cfg: cfg}
	s.since.Store(cfg.Now())
	s.saved.Store(cfg.Now())
	return s
}

// PartFor returns the part that counts the rows of a task.
func (s *Statistics) PartFor(task string) *StatisticsPart {
	return &s.parts[persistence.ShardOf(task)%statisticsParts]
}

// CountRow counts a stored row of a task.
func (p *StatisticsPart) CountRow(r *Row) {
	if !r.First && r.Ended == "" && len(r.Tallies) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.planCounts(r.State)
	tasks := &p.rest
	if of != nil {
		tasks = &of.tasks
		for i := range r.Tallies {
			p.nodeCounts(of, &r.Tallies[i]).Tally(&r.Tallies[i], r.Task, r.State.UpdatedAt)
		}
	}
	if r.First {
		tasks.Began++
	}
	if r.Ended != "" {
		at := max(r.State.EndedAt, r.State.CreatedAt)
		tasks.End(r.Ended, r.Task, at, at-r.State.CreatedAt)
	}
}

// planCounts returns the counts of a plan; nil if the part already has too many.
func (p *StatisticsPart) planCounts(s *flow.State) *planStatistics {
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

func (p *StatisticsPart) nodeCounts(of *planStatistics, t *flow.Tally) *stats.Counts {
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

// SendPeriodically writes the counts to the store until the member ends. The counts of a minute are
// sent before the next one starts.
func (s *Statistics) SendPeriodically() {
	now := s.cfg.Now()
	wait := min(statisticsEvery.Milliseconds(), persistence.StatsMinute-now%persistence.StatsMinute)
	s.cfg.Work.After(time.Duration(wait)*time.Millisecond, func() {
		s.cfg.Work.Run(func() {
			ctx, cancel := s.cfg.Work.StoreCall()
			s.SendCounts(ctx)
			cancel()
			if !s.cfg.Work.HasEnded() {
				s.SendPeriodically()
			}
		})
	})
}

// SendCounts adds the counts to the store until ctx ends. Counts that fail are lost.
func (s *Statistics) SendCounts(ctx context.Context) {
	s.sending.Add(1)
	defer s.sending.Add(-1)
	now := s.cfg.Now()
	rows := s.takeRows(s.since.Swap(now))
	for part := range slices.Chunk(rows, statisticsRows) {
		if err := s.cfg.Store.AddStats(ctx, part); err != nil {
			s.cfg.Outages.RecordFailure(notCounted, "", err)
			return
		}
	}
	if len(rows) > 0 {
		s.cfg.Outages.RecordSuccess(notCounted, "")
	}
	s.saved.Store(now)
}

// IsSending reports whether counts are on their way to the store.
func (s *Statistics) IsSending() bool { return s.sending.Load() > 0 }

// LagSeconds returns the seconds since the last counts reached the store.
func (s *Statistics) LagSeconds() float64 {
	return float64(max(s.cfg.Now()-s.saved.Load(), 0)) / 1000
}

// takeRows converts the counts since a time to rows, and resets the counts.
func (s *Statistics) takeRows(since int64) []persistence.StatsRow {
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

func (p *StatisticsPart) takeCounts(add func(stats.Key, *stats.Counts)) {
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
