// Package metrics counts the stored rows of tasks: for Prometheus, and as statistics in the store.
// All types are structures with locks.
package metrics

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics that a member counts.
type Metrics struct {
	batch   prometheus.Histogram
	latency prometheus.Histogram
	gauges  []prometheus.Collector
	tallies *outcomeTallies
	numbers jobNumbers
}

// Sources are functions that return the values for the gauges and counters of a member.
type Sources struct {
	Tasks, Steps, Ready, Messages, Uncommitted func() int64
	LeaseLeft                                  func() time.Duration
	KeysWaiting                                func() int
	StatisticsLag                              func() float64 // seconds
	StepsEnded, Rested, Rulings, FailedRulings *atomic.Int64
	// Nodes enables metrics of attempts by node.
	Nodes bool
}

// New creates the metrics of a member.
func New(m Sources) *Metrics {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	return &Metrics{
		tallies: newTallies(m.Nodes),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "troupe_commit_batch_tasks",
			Help: "Tasks per write batch.", Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "troupe_commit_duration_seconds",
			Help: "Duration of a write batch in the store.", Buckets: prometheus.ExponentialBuckets(0.0002, 2, 14)}),
		gauges: []prometheus.Collector{
			gauge("troupe_tasks_in_memory", "Tasks in memory.", func() float64 { return float64(m.Tasks()) }),
			gauge("troupe_steps_in_memory", "Steps in memory.", func() float64 { return float64(m.Steps()) }),
			gauge("troupe_jobs_ready", "Jobs in memory that wait for a worker or a free slot.",
				func() float64 { return float64(m.Ready()) }),
			gauge("troupe_requests_waiting", "Requests that wait for their task.",
				func() float64 { return float64(m.Messages()) }),
			gauge("troupe_commits_waiting", "Commits that wait for the store.",
				func() float64 { return float64(m.Uncommitted()) }),
			gauge("troupe_lease_remaining_seconds", "Remaining time of the member's lease; normally 1.6 to 2, and 0 after it is lost.",
				func() float64 { return m.LeaseLeft().Seconds() }),
			gauge("troupe_key_decisions_pending", "Concurrency keys for which "+
				"this member has to request a decision.", func() float64 { return float64(m.KeysWaiting()) }),
			gauge("troupe_stats_lag_seconds", "Time since the member last "+
				"stored its statistics; normally about 5.", m.StatisticsLag),
			counter("troupe_steps_ended_total", "Ended steps.", m.StepsEnded),
			counter("troupe_tasks_unloaded_total", "Tasks removed from memory because they wait or have ended.", m.Rested),
			counter("troupe_key_decisions_total",
				"Decisions about concurrency keys that this member requested from the store.",
				m.Rulings),
			counter("troupe_key_decisions_failed_total",
				"Decisions about concurrency keys that failed; they are retried.", m.FailedRulings),
		},
	}
}

// ObserveCommit counts a batch that was written.
func (x *Metrics) ObserveCommit(tasks int, took time.Duration) {
	x.batch.Observe(float64(tasks))
	x.latency.Observe(took.Seconds())
}

// ObserveDispatch records how long a job was ready before it started.
func (x *Metrics) ObserveDispatch(service string, ms int64) {
	x.tallies.serviceTallyFor(service).wait().Observe(float64(max(ms, 0)) / 1000)
}

// Collectors returns the metrics for Prometheus.
func (x *Metrics) Collectors() []prometheus.Collector {
	return slices.Concat([]prometheus.Collector{x.batch, x.latency}, x.tallies.collectors(), []prometheus.Collector{&x.numbers}, x.gauges)
}
