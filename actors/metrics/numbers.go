package metrics

import (
	"encoding/json"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNames is the number of metric names with their own count. Jobs choose the names, so further
// names are counted together.
const maxNames = 1000

const otherNames = "other"

// jobNumbers are the numbers that jobs have reported, by name, since this member started. The zero
// value is empty; all methods are safe for concurrent use.
type jobNumbers struct {
	mu    sync.Mutex
	names map[string]*numberTotal
}

type numberTotal struct {
	count uint64
	sum   float64
}

// addReported adds a stored list of numbers. It ignores invalid lists, because workers may send
// anything.
func (t *jobNumbers) addReported(list json.RawMessage) {
	if len(list) == 0 {
		return
	}
	var told []struct {
		Name  string  `json:"name"`
		Count int64   `json:"count"`
		Sum   float64 `json:"sum"`
	}
	if json.Unmarshal(list, &told) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]*numberTotal{}
	}
	for _, n := range told {
		if of := t.totalFor(n.Name); n.Count > 0 && !math.IsInf(of.sum+n.Sum, 0) {
			of.count += uint64(n.Count)
			of.sum += n.Sum
		}
	}
}

// totalFor returns the total for a name. The caller holds the lock.
func (t *jobNumbers) totalFor(name string) *numberTotal {
	if t.names[name] == nil && len(t.names) >= maxNames {
		name = otherNames
	}
	if t.names[name] == nil {
		t.names[name] = &numberTotal{}
	}
	return t.names[name]
}

var jobNumberDesc = prometheus.NewDesc("troupe_job_metric",
	"Numbers reported by jobs, by name: count and sum. The first thousand names have their own series.",
	[]string{"name"}, nil)

// Describe implements prometheus.Collector.
func (t *jobNumbers) Describe(ch chan<- *prometheus.Desc) { ch <- jobNumberDesc }

// Collect implements prometheus.Collector.
func (t *jobNumbers) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, of := range t.names {
		ch <- prometheus.MustNewConstSummary(jobNumberDesc, of.count, of.sum, nil, name)
	}
}
