package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/troupe-engine/troupe/persistence"
)

// serverMetrics holds the collectors of /metrics. It has its own registry, so that two members in
// one process (tests, library mode) do not conflict.
type serverMetrics struct {
	registry *prometheus.Registry
	all      []prometheus.Collector
	requests *prometheus.HistogramVec
}

func newMetrics(cfg Config) (*serverMetrics, error) {
	m := &serverMetrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "troupe_http_request_duration_seconds", Help: "Duration of a request, by route.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"method", "route", "status"}),
	}
	m.all = []prometheus.Collector{
		m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&storeMetrics{store: cfg.Store, now: cfg.Engine.Now},
	}
	if cfg.TLS.Serves() {
		m.all = append(m.all, cfg.TLS.ExpiryCollector())
	}
	m.all = append(m.all, cfg.Collectors...)
	for _, c := range m.all {
		if err := m.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Collectors returns all collectors of /metrics.
func (s *Server) Collectors() []prometheus.Collector { return s.metrics.all }

func (m *serverMetrics) metricsHandler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// countRequest counts an answer. All unknown methods share one label, because clients may send any
// method.
func (m *serverMetrics) countRequest(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("troupe_"+name, help, labels, nil)
}

var (
	tasksDesc    = newDesc("tasks", "Tasks in the whole store.", "state")
	queueDesc    = newDesc("queue_jobs", "Jobs of pull workers that have not ended, in the whole store.", "service")
	queueAgeDesc = newDesc("queue_oldest_job_age_seconds", "Age of the oldest queued job, in the whole store.", "service")
)

// storeMetrics exports counts of the store. It reuses a result for a while, because counting is
// expensive.
type storeMetrics struct {
	store Store
	now   func() time.Time

	mu     sync.Mutex
	readAt time.Time
	tasks  map[string]persistence.Group
	queue  map[string]persistence.QueueStat
}

const countsServe = 5 * time.Second

func (*storeMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- tasksDesc
	ch <- queueDesc
	ch <- queueAgeDesc
}

func (m *storeMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refreshCounts(); err != nil {
		ch <- prometheus.NewInvalidMetric(tasksDesc, err)
		return
	}
	for status, group := range m.tasks {
		ch <- prometheus.MustNewConstMetric(tasksDesc, prometheus.GaugeValue, float64(group.Count), status)
	}
	for service, q := range m.queue {
		age := max(0, m.now().Sub(time.UnixMilli(q.Oldest)).Seconds())
		ch <- prometheus.MustNewConstMetric(queueDesc, prometheus.GaugeValue, float64(q.Waiting), service)
		ch <- prometheus.MustNewConstMetric(queueAgeDesc, prometheus.GaugeValue, age, service)
	}
}

func (m *storeMetrics) refreshCounts() error {
	if time.Since(m.readAt) < countsServe {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), countsServe)
	defer cancel()
	tasks, err := m.store.CountTasksBy(ctx, persistence.TaskFilter{}, persistence.By{})
	if err != nil {
		return err
	}
	queue, err := m.store.QueueDepth(ctx)
	if err != nil {
		return err
	}
	m.tasks, m.queue, m.readAt = tasks, queue, time.Now()
	return nil
}
