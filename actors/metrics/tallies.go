package metrics

import (
	"cmp"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/internal/series"
	"github.com/troupe-engine/troupe/persistence"
)

// outcomeTallies count stored events of tasks by flow, and of attempts by service. Counters are
// found without a lock. Names beyond a bound are counted together as others.
type outcomeTallies struct {
	flows    namedSeries[flowTally]
	services namedSeries[serviceTally]
	nodes    *nodeTallies // nil if nodes are not counted

	started, ended, attempts, retries, expired *prometheus.CounterVec
	took, attemptTook, attemptWait             *prometheus.HistogramVec
}

// flowTally holds the metrics of a flow, serviceTally those of a service. A histogram is created at
// its first observation.
type (
	flowTally struct {
		started prometheus.Counter
		ended   [len(taskEnds)]prometheus.Counter
		took    [len(taskEnds)]func() prometheus.Observer
	}
	serviceTally struct {
		ended            [len(attemptEnds)]prometheus.Counter
		retries, expired prometheus.Counter
		took, wait       func() prometheus.Observer
	}
)

// taskEnds and attemptEnds are label values. The last of attemptEnds is not an end: the attempt
// goes to another carrier.
var (
	taskEnds    = [...]string{string(flow.TaskCompleted), string(flow.TaskFailed), string(flow.TaskCanceled)}
	attemptEnds = [...]string{"ok", "error", "timeout", "lost"}
)

var shortTimes = []float64{.001, .005, .02, .1, .5, 2, 10, 60, 300, 1800, 7200}

const lostIndex = len(attemptEnds) - 1

func newTallies(ofNodes bool) *outcomeTallies {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "troupe_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "troupe_" + name, Help: help, Buckets: buckets}, labels)
	}
	long := []float64{.005, .02, .1, .5, 2, 10, 60, 300, 1800, 7200, 43200, 259200, 2592000}
	x := &outcomeTallies{
		started: counter("tasks_started_total", "Tasks started by this member, except those started in a transaction of a program.", "flow"),
		ended: counter("tasks_ended_total",
			"Tasks that ended at this member; a retried task may end more than once.", "flow", "state"),
		took: histogram("task_duration_seconds", "Time from the creation of a task to its end.", long,
			"flow", "state"),
		attempts: counter("attempts_total",
			"Ended attempts by outcome. lost: the worker is gone, and the attempt goes "+
				"to another one or ends as an error.", "service", "outcome"),
		attemptTook: histogram("attempt_duration_seconds", "Time from the start of an attempt, or its claim, to its end.", shortTimes, "service"),
		attemptWait: histogram("attempt_wait_seconds", "Time that a job waits for its start.", shortTimes, "service"),
		retries:     counter("attempt_retries_total", "Attempts after which their unit is retried.", "service"),
		expired:     counter("claims_expired_total", "Claims of jobs that expired without a heartbeat.", "service"),
	}
	x.flows.make, x.services.make = x.newFlow, x.newService
	if ofNodes {
		x.nodes = newNodeTallies()
	}
	return x
}

func (x *outcomeTallies) collectors() []prometheus.Collector {
	all := []prometheus.Collector{x.started, x.ended, x.took, x.attempts, x.attemptTook, x.attemptWait, x.retries, x.expired}
	if x.nodes != nil {
		all = append(all, x.nodes.collectors()...)
	}
	return all
}

func (x *outcomeTallies) newFlow(name string) *flowTally {
	t := &flowTally{started: x.started.WithLabelValues(name)}
	for i, state := range taskEnds {
		t.ended[i], t.took[i] = x.ended.WithLabelValues(name, state), lazyHistogram(x.took, name, state)
	}
	return t
}

func (x *outcomeTallies) newService(name string) *serviceTally {
	t := &serviceTally{retries: x.retries.WithLabelValues(name), expired: x.expired.WithLabelValues(name),
		took: lazyHistogram(x.attemptTook, name), wait: lazyHistogram(x.attemptWait, name)}
	for i, outcome := range attemptEnds {
		t.ended[i] = x.attempts.WithLabelValues(name, outcome)
	}
	return t
}

// lazyHistogram returns a function that looks up a histogram at its first call.
func lazyHistogram(v *prometheus.HistogramVec, labels ...string) func() prometheus.Observer {
	return sync.OnceValue(func() prometheus.Observer { return v.WithLabelValues(labels...) })
}

func (x *outcomeTallies) flowTallyFor(p *flow.Plan) *flowTally {
	return x.flows.seriesFor(flowMetricName(p))
}

// flowMetricName returns the metric label for the flow of a version. Trial definitions share one
// label, because each is a flow of its own and would use up the names.
func flowMetricName(p *flow.Plan) string {
	if persistence.IsTried(p.FlowID) {
		return series.Other
	}
	return cmp.Or(p.FlowSlug, p.FlowID)
}

func (x *outcomeTallies) serviceTallyFor(name string) *serviceTally {
	return x.services.seriesFor(name)
}

// ServiceOf returns the metric label for attempts: the service, or the exec type if there is no
// service.
func ServiceOf(x *flow.Exec) string { return cmp.Or(x.Service, string(x.Type)) }

// Row is a row of a task that was stored.
type Row struct {
	Task    string
	State   *flow.State // state after the row
	First   bool        // the row is the first one that a member has stored
	Ended   flow.TaskStatus
	Effects []flow.Effect
	Tallies []flow.Tally
	Traced  bool // the spans of the task are exported
}

// exemplarLabels returns the exemplar for observations of the task; nil if its spans are not
// exported.
func (r *Row) exemplarLabels() prometheus.Labels {
	if !r.Traced {
		return nil
	}
	return prometheus.Labels{"trace_id": trace.IDOf(r.Task, r.State.Traced).String()}
}

// CountRow counts the events of a row after the row was stored.
func (x *Metrics) CountRow(r *Row) {
	if r.First {
		x.tallies.flowTallyFor(r.State.Plan).started.Inc()
	}
	var exemplar prometheus.Labels
	for _, e := range r.Effects {
		switch e := e.(type) {
		case flow.Over:
			x.numbers.addReported(e.End.Metrics)
			if e.End.Exec != nil {
				if exemplar == nil {
					exemplar = r.exemplarLabels()
				}
				x.tallies.countAttempt(r.State.Plan, &e, exemplar)
			}
		case flow.Lost:
			x.tallies.countLost(&e)
		}
	}
	if r.Ended != "" {
		x.tallies.countTaskEnd(r.State, r.Ended, r.exemplarLabels())
	}
}

func (x *outcomeTallies) countAttempt(p *flow.Plan, over *flow.Over, exemplar prometheus.Labels) {
	end := &over.End
	if x.nodes != nil {
		x.nodes.countAttempt(p, over, exemplar)
	}
	s := x.serviceTallyFor(ServiceOf(end.Exec))
	observeSeconds(s.took(), float64(end.TookMS)/1000, exemplar)
	if end.Again {
		s.retries.Inc()
	}
	s.ended[labelIndex(attemptEnds[:], string(end.Status))].Inc()
}

func (x *outcomeTallies) countLost(e *flow.Lost) {
	s := x.serviceTallyFor(ServiceOf(e.Exec))
	s.ended[lostIndex].Inc()
	if e.Expired {
		s.expired.Inc()
	}
}

func (x *outcomeTallies) countTaskEnd(s *flow.State, status flow.TaskStatus, exemplar prometheus.Labels) {
	t, i := x.flowTallyFor(s.Plan), labelIndex(taskEnds[:], string(status))
	t.ended[i].Inc()
	observeSeconds(t.took[i](), float64(max(cmp.Or(s.EndedAt, s.UpdatedAt)-s.CreatedAt, 0))/1000, exemplar)
}

// labelIndex returns the index of a word, or 1 (the index of failures) if the word is not listed.
func labelIndex(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return 1
}

// namedSeries finds values by name. The first maxNames names get their own value.
type namedSeries[T any] struct {
	make     func(name string) *T
	maxNames int        // 0 means series.Most
	mu       sync.Mutex // held while a name is added
	known    atomic.Pointer[map[string]*T]
	other    atomic.Pointer[T]
}

func (n *namedSeries[T]) seriesFor(name string) *T {
	if known := n.known.Load(); known != nil {
		if x := (*known)[name]; x != nil {
			return x
		}
	}
	if x := n.other.Load(); x != nil {
		return x
	}
	return n.addSeries(name)
}

func (n *namedSeries[T]) addSeries(name string) *T {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all map[string]*T
	if known := n.known.Load(); known != nil {
		all = *known
	}
	if x := all[name]; x != nil {
		return x
	}
	if len(all) >= cmp.Or(n.maxNames, series.Most) {
		if n.other.Load() == nil {
			n.other.Store(n.make(series.Other))
		}
		return n.other.Load()
	}
	if all = maps.Clone(all); all == nil {
		all = map[string]*T{}
	}
	x := n.make(strings.ToValidUTF8(name, "?"))
	all[name] = x
	n.known.Store(&all)
	return x
}

// observeSeconds records a duration in seconds, with its exemplar if there is one.
func observeSeconds(in prometheus.Observer, seconds float64, exemplar prometheus.Labels) {
	if exemplar == nil {
		in.Observe(seconds)
		return
	}
	// every histogram implements this interface
	in.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, exemplar)
}
