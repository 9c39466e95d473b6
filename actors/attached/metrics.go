package attached

import "github.com/prometheus/client_golang/prometheus"

// Collectors are the metrics of attached workers for Prometheus.
func (s *Sessions) Collectors() []prometheus.Collector {
	gauge := func(name, help string, labels prometheus.Labels, value func(s *Sessions) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "troupe_attached_" + name, Help: help, ConstLabels: labels}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(value(s))
		})
	}
	const workers = "Workers that are attached to this member; those that are away have lost their stream and may come back."
	return []prometheus.Collector{
		gauge("workers", workers, prometheus.Labels{"state": "here"}, (*Sessions).streams),
		gauge("workers", workers, prometheus.Labels{"state": "away"}, func(s *Sessions) int { return len(s.byID) - s.streams() }),
		gauge("credits_free", "Jobs that workers attached to this member would take beside those that they have.", nil, (*Sessions).freeCredits),
		gauge("jobs", "Jobs that workers attached to this member have.", nil, func(s *Sessions) int { return len(s.held) }),
		gauge("jobs_waiting", "Jobs that wait at this member for an attached worker with a free place.", nil, (*Sessions).waitingJobs),
	}
}

// streams is how many sessions have a stream.
func (s *Sessions) streams() (n int) {
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

// waitingJobs counts what lines hold; a few of them may have been withdrawn.
func (s *Sessions) waitingJobs() (n int) {
	for _, l := range s.lines {
		n += len(l.jobs)
	}
	return n
}
