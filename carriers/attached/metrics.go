package attached

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/internal/series"
)

// Collectors returns the metrics of attached workers for Prometheus.
func (s *Sessions) Collectors() []prometheus.Collector {
	gauge := func(name, help string, labels prometheus.Labels, value func(s *Sessions) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "troupe_attached_" + name,
			Help: help, ConstLabels: labels}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(value(s))
		})
	}
	const workers = "Workers attached to this member: connected, or disconnected while they may reconnect."
	return []prometheus.Collector{
		gauge("workers", workers, prometheus.Labels{"state": "connected"}, (*Sessions).countStreams),
		gauge("workers", workers, prometheus.Labels{"state": "disconnected"}, func(s *Sessions) int { return len(s.byID) - s.countStreams() }),
		gauge("slots_free", "Free slots of "+
			"workers attached to this member.", nil, (*Sessions).freeCredits),
		gauge("jobs", "Jobs of workers attached to this member.", nil, func(s *Sessions) int { return len(s.held) }),
		gauge("jobs_waiting", "Jobs that wait at this member for a free slot of an attached worker.", nil, (*Sessions).waitingJobs),
		slotCollector{s},
	}
}

// slotCollector counts the credits of attached workers by service at each scrape. A worker with
// several services counts for each of them.
type slotCollector struct{ *Sessions }

var slotsDesc = prometheus.NewDesc("troupe_worker_slots",
	"Slots of workers attached to this member: used or free. "+
		"A worker counts once for each of its services.", []string{"service", "state"}, nil)

// slotCounts are the credits of workers that offer a service.
type slotCounts struct{ free, taken int }

// Describe implements prometheus.Collector.
func (s slotCollector) Describe(ch chan<- *prometheus.Desc) { ch <- slotsDesc }

// Collect implements prometheus.Collector. It counts the current credits.
func (s slotCollector) Collect(ch chan<- prometheus.Metric) {
	for service, n := range s.countSlots() {
		ch <- prometheus.MustNewConstMetric(slotsDesc, prometheus.GaugeValue, float64(n.free), service, "free")
		ch <- prometheus.MustNewConstMetric(slotsDesc, prometheus.GaugeValue, float64(n.taken), service, "used")
	}
}

func (s slotCollector) countSlots() map[string]slotCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]slotCounts{}
	for _, key := range slices.Sorted(maps.Keys(s.groups)) {
		g, taken := s.groups[key], 0
		for _, ses := range g.byFree {
			taken += len(ses.grants)
		}
		for _, service := range g.services {
			service = series.Of(all, service)
			all[service] = slotCounts{all[service].free + g.free, all[service].taken + taken}
		}
	}
	return all
}

// countStreams returns how many sessions have a stream.
func (s *Sessions) countStreams() (n int) {
	for _, ses := range s.byID {
		if ses.stream != nil {
			n++
		}
	}
	return n
}

func (s *Sessions) freeCredits() (n int) {
	for _, g := range s.groups {
		n += g.free
	}
	return n
}

// waitingJobs counts queued jobs, including some that were withdrawn.
func (s *Sessions) waitingJobs() (n int) {
	for _, l := range s.queues {
		n += len(l.jobs)
	}
	return n
}
