package workers

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/internal/series"
)

var (
	workersDesc = prometheus.NewDesc("troupe_workers", "Registered workers of the whole cluster.", []string{"state"}, nil)
	servingDesc = prometheus.NewDesc("troupe_service_workers",
		"Online workers that offer a service, in the whole cluster.", []string{"service"}, nil)
)

// Collectors returns the metrics of registered workers for Prometheus.
func (r *Registry) Collectors() []prometheus.Collector {
	return []prometheus.Collector{registryCollector{r}}
}

// registryCollector counts the workers at each scrape.
type registryCollector struct{ r *Registry }

func (registryCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- workersDesc
	ch <- servingDesc
}

func (c registryCollector) Collect(ch chan<- prometheus.Metric) {
	online, offline, serving := c.r.countByState()
	gauge := func(d *prometheus.Desc, n int, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), label)
	}
	gauge(workersDesc, online, "online")
	gauge(workersDesc, offline, "offline")
	for service, n := range serving {
		gauge(servingDesc, n, service)
	}
}

// countByState counts the workers by state, and the online ones by service. Services get their own
// series in order of registration, so the choice is stable.
func (r *Registry) countByState() (online, offline int, serving map[string]int) {
	since := r.opts.Now() - r.opts.OfflineTTL.Milliseconds()
	serving = map[string]int{}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, w := range r.ordered {
		if w.heartbeatAt.Load() < since {
			offline++
			continue
		}
		online++
		for _, service := range slices.Compact(slices.Sorted(slices.Values(w.Services))) {
			serving[series.Of(serving, service)]++
		}
	}
	return online, offline, serving
}
