package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// memberMetrics are the metrics from inside the member.
type memberMetrics struct {
	batch   prometheus.Histogram
	latency prometheus.Histogram
	gauges  []prometheus.Collector
	tallies *outcomeTallies
	numbers jobNumbers
}

func newMetrics(m *Member) *memberMetrics {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	return &memberMetrics{
		tallies: newTallies(m.cfg.NodeMetrics),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "troupe_commit_batch_tasks",
			Help: "Tasks written by one batch.", Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "troupe_commit_seconds",
			Help: "Time the store took to write a batch.", Buckets: prometheus.ExponentialBuckets(0.0002, 2, 14)}),
		gauges: []prometheus.Collector{
			gauge("troupe_actors_tasks", "Task actors in memory.", func() float64 { return float64(m.taskActors.Load()) }),
			gauge("troupe_actors_steps", "Step actors in memory.", func() float64 { return float64(m.stepActors.Load()) }),
			gauge("troupe_jobs_ready", "Jobs waiting in memory for somebody to carry them out.",
				func() float64 { return float64(m.ready.Load() + m.queued.Load()) }),
			gauge("troupe_messages_waiting", "Requests waiting for their task.", func() float64 { return float64(m.messages.Load()) }),
			gauge("troupe_commits_waiting", "Commits waiting for the store.", func() float64 { return float64(m.uncommitted.Load()) }),
			gauge("troupe_lease_left_seconds", "What is left of the member's lease.",
				func() float64 { return m.lease.remainingTime().Seconds() }),
			gauge("troupe_keys_waiting", "Keys about which this member has yet to have decided "+
				"who is given them.", func() float64 { return float64(m.limiter.countPending()) }),
			gauge("troupe_stats_lag_seconds", "For how long nothing that was counted for "+
				"statistics has come to the store.", func() float64 { return m.statistics.lagSeconds() }),
			counter("troupe_steps_total", "Steps that have ended.", &m.steps),
			counter("troupe_tasks_rested_total", "Tasks put to rest or ended and let go.", &m.rested),
			counter("troupe_key_decisions_total",
				"Decisions about who is given a key that this member asked the store for.",
				&m.limiter.rulings),
			counter("troupe_key_decisions_failed_total",
				"Those of them that the store did not make; they are tried again.", &m.limiter.failures),
		},
	}
}

func (x *memberMetrics) observeCommit(tasks int, took time.Duration) {
	x.batch.Observe(float64(tasks))
	x.latency.Observe(took.Seconds())
}

// observeDispatch records how long a job was ready before it started.
func (x *memberMetrics) observeDispatch(service string, ms int64) {
	x.tallies.serviceTallyFor(service).wait().Observe(float64(max(ms, 0)) / 1000)
}

// Collectors returns the member's metrics for Prometheus.
func (m *Member) Collectors() []prometheus.Collector {
	x := m.metrics
	return slices.Concat([]prometheus.Collector{x.batch, x.latency}, x.tallies.collectors(), []prometheus.Collector{&x.numbers}, x.gauges)
}
