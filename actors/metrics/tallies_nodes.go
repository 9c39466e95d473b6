package metrics

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/series"
	"github.com/troupe-engine/troupe/persistence"
)

// nodeTallies count attempts by node, if configured. The first maxNodeSeries nodes have their own
// series; all others share one.
type nodeTallies struct {
	nodes    namedSeries[nodeTally]
	attempts *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

type nodeTally struct {
	ended [len(attemptEnds)]prometheus.Counter
	took  func() prometheus.Observer
}

// maxNodeSeries is how many nodes of all flows have their own series.
const maxNodeSeries = 500

func newNodeTallies() *nodeTallies {
	x := &nodeTallies{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "troupe_node_attempts_total",
			Help: "Ended attempts by node; needs --metrics-detail=node."}, []string{"flow", "node", "outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "troupe_node_attempt_duration_seconds",
			Help: "Time from the start of an attempt, or its claim, to its end, by node; needs --metrics-detail=node.", Buckets: shortTimes}, []string{"flow", "node"}),
	}
	x.nodes.make, x.nodes.maxNames = x.newNode, maxNodeSeries
	return x
}

func (x *nodeTallies) collectors() []prometheus.Collector {
	return []prometheus.Collector{x.attempts, x.took}
}

// newNode creates the metrics for a name. The name is a flow and a node separated by a line break,
// or the name of all others.
func (x *nodeTallies) newNode(name string) *nodeTally {
	flow, node, _ := strings.Cut(name, "\n")
	node = cmp.Or(node, series.Other)
	t := &nodeTally{took: lazyHistogram(x.took, flow, node)}
	for i, outcome := range attemptEnds {
		t.ended[i] = x.attempts.WithLabelValues(flow, node, outcome)
	}
	return t
}

func (x *nodeTallies) nodeTallyFor(p *flow.Plan, a flow.Address) *nodeTally {
	if persistence.IsTried(p.FlowID) {
		return x.nodes.seriesFor(series.Other)
	}
	return x.nodes.seriesFor(flowMetricName(p) + "\n" + a.Step())
}

func (x *nodeTallies) countAttempt(p *flow.Plan, over *flow.Over, exemplar prometheus.Labels) {
	t := x.nodeTallyFor(p, over.Address)
	observeSeconds(t.took(), float64(over.End.TookMS)/1000, exemplar)
	t.ended[labelIndex(attemptEnds[:], string(over.End.Status))].Inc()
}
