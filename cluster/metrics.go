package cluster

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// keeperMetrics are metrics that only the keeper can measure.
type keeperMetrics struct {
	taken, refused, fenced prometheus.Counter
	handing                prometheus.Gauge
	handover               prometheus.Histogram
}

func newKeeperMetrics() *keeperMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "troupe_cluster_" + name, Help: help})
	}
	return &keeperMetrics{
		taken:   counter("shards_acquired_total", "Shards that this member has acquired."),
		refused: counter("handovers_failed_total", "Failed handovers of shards; they are retried."),
		fenced:  counter("members_fenced_total", "Members that this member has fenced because their leases expired."),
		handing: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "troupe_cluster_shards_handing_over",
				Help: "Shards that this member is handing over."}),
		handover: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "troupe_cluster_handover_duration_seconds",
			Help:    "Duration of a handover, until other members may acquire the shards.",
			Buckets: []float64{.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}}),
	}
}

// Collectors returns the keeper's metrics for Prometheus.
func (k *Keeper) Collectors() []prometheus.Collector {
	x := k.metrics
	all := []prometheus.Collector{
		x.taken, x.refused, x.fenced, x.handing, x.handover,
		newGauge("shards_owned", "Shards that this member owns.", nil, func() float64 { return float64(len(k.Current().Shards(k.me))) }),
		newGauge("shards_unowned", "Shards without an owner, as this member sees it.", nil,
			func() float64 { return float64(k.Current().countShards()[""]) }),
		newGauge("view_age_seconds", "Time since this member read the members and shard owners from the store; normally below 2.",
			nil, func() float64 { return k.viewAge().Seconds() }),
	}
	for _, state := range []MemberState{Alive, Draining, Overdue, Gone} {
		all = append(all, newGauge("members", "Members of the cluster, as this member sees it. Members stay listed for ten minutes after they are gone.",
			prometheus.Labels{"state": string(state)}, func() float64 { return float64(k.Current().inState(state)) }))
	}
	return all
}

func newGauge(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "troupe_cluster_" + name, Help: help, ConstLabels: labels}, value)
}

// forwardCounter counts requests to other members.
type forwardCounter struct{ *prometheus.CounterVec }

func newForwards() forwardCounter {
	f := forwardCounter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "troupe_cluster_forwarded_requests_total",
		Help: "Requests forwarded to other members, by kind and outcome; moved and unreachable ones are retried."}, []string{"kind", "outcome"})}
	// creates all series, so that they show 0
	for _, kind := range []string{"command", "start", "wait"} {
		for _, outcome := range []string{"ok", "rejected", "moved", "unreachable", "canceled"} {
			f.WithLabelValues(kind, outcome)
		}
	}
	return f
}

// Collectors returns the router's metrics for Prometheus.
func (r *Router) Collectors() []prometheus.Collector { return []prometheus.Collector{r.forwards} }

// countQuestion counts a request by its result. Commands are counted one by one, even if they were
// sent together.
func (f forwardCounter) countQuestion(q, answer engine.Message, err error) {
	switch q := q.(type) {
	case *engine.Orders:
		outcomes, _ := answer.(*engine.Outcomes)
		f.countOrders(*q, outcomes, err)
	case *engine.Exchange:
		var outcomes *engine.Outcomes
		if done, ok := answer.(*engine.Exchanged); ok {
			outcomes = &done.Outcomes
		}
		f.countOrders(q.Orders, outcomes, err)
	case *engine.NewTask:
		f.countOutcome("start", err)
	case *engine.Wait:
		f.countOutcome("wait", err)
	case *engine.Errands:
		f.countOutcome("jobs", err)
	default:
		f.countOutcome("notify", err)
	}
}

func (f forwardCounter) countOrders(orders engine.Orders, outcomes *engine.Outcomes, err error) {
	for i := range orders {
		if outcomes != nil && i < len(*outcomes) {
			err = (*outcomes)[i].Err
		}
		f.countOutcome("command", err)
	}
}

func (f forwardCounter) countOutcome(kind string, err error) {
	f.WithLabelValues(kind, outcomeLabel(err)).Inc()
}

// outcomeLabel returns the label for the result of a request.
func outcomeLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrAway):
		return "unreachable"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	case flow.ErrorKindOf(err) == flow.Moved:
		return "moved"
	}
	return "rejected"
}
