package programs

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/internal/program"
)

// maxNames is of how many names metrics are told apart: names are whatever programs say. The others are told as one.
const maxNames = 1000

const otherNames = "other"

// Told are the numbers that programs of this member have told since it began, by name. The zero value has none; all methods are safe for concurrent use.
type Told struct {
	mu    sync.Mutex
	names map[string]*total
}

type total struct {
	count uint64
	sum   float64
}

// Add counts what a program has told. Nil counts nothing.
func (t *Told) Add(list []program.Metric) {
	if t == nil || len(list) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]*total{}
	}
	for _, m := range list {
		of := t.of(m.Name)
		of.count += uint64(m.Count)
		of.sum += m.Sum
	}
}

// of is the total of a name. The lock is held.
func (t *Told) of(name string) *total {
	if t.names[name] == nil && len(t.names) >= maxNames {
		name = otherNames
	}
	if t.names[name] == nil {
		t.names[name] = &total{}
	}
	return t.names[name]
}

var toldDesc = prometheus.NewDesc("troupe_program_metric", "Numbers that programs of this member have told by ORK_METRIC, by their name: how many, and their sum.", []string{"name"}, nil)

// Describe is a part of prometheus.Collector.
func (t *Told) Describe(ch chan<- *prometheus.Desc) { ch <- toldDesc }

// Collect is a part of prometheus.Collector.
func (t *Told) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, of := range t.names {
		ch <- prometheus.MustNewConstSummary(toldDesc, of.count, of.sum, nil, name)
	}
}
