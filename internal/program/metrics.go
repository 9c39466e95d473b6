package program

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/redact"
)

// Metric is what a program has told by lines ORK_METRIC:{"name": …, "value": …, "labels": {…}} of one name with the same labels.
type Metric struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Count  int64             `json:"count"` // of lines
	Sum    float64           `json:"sum"`   // of their values
	Last   float64           `json:"last"`  // the newest value
}

// Bounds of what a program may tell so; what is more is in its log alone.
const (
	maxMetrics     = 100      // of different names or labels
	maxMetricLine  = 4 << 10  // bytes
	maxMetricBytes = 32 << 10 // of all names and labels
)

// metrics are those that a program has told.
type metrics struct {
	list  []Metric
	known map[string]int // places in list, by name and labels
	bytes int            // of those
}

// told counts a line. One that tells no number is only logged.
func (m *metrics) told(text []byte) {
	var line struct {
		Name   string                     `json:"name"`
		Value  *float64                   `json:"value"`
		Labels map[string]json.RawMessage `json:"labels"`
	}
	if json.Unmarshal(text, &line) != nil || line.Name == "" || line.Value == nil {
		return
	}
	labels := make(map[string]string, len(line.Labels))
	for name, v := range line.Labels {
		if labels[name] = string(expr.Compact(v)); expr.KindOf(v) == expr.KindString {
			labels[name], _ = expr.String(v)
		}
	}
	if at, ok := m.place(line.Name, labels); ok {
		m.list[at].add(*line.Value)
	}
}

// place is where the metric of a name and labels is; there is none if that would be too much.
func (m *metrics) place(name string, labels map[string]string) (at int, ok bool) {
	key, _ := json.Marshal([]any{name, labels}) // texts always have a JSON
	if at, ok = m.known[string(key)]; ok {
		return at, true
	}
	if len(m.list) == maxMetrics || m.bytes+len(key) > maxMetricBytes {
		return 0, false
	}
	if m.known == nil {
		m.known = map[string]int{}
	}
	m.known[string(key)] = len(m.list)
	m.bytes += len(key)
	m.list = append(m.list, Metric{Name: name, Labels: labels})
	return len(m.list) - 1, true
}

// add counts a value, unless the sum would be no number any longer.
func (m *Metric) add(v float64) {
	if sum := m.Sum + v; !math.IsInf(sum, 0) {
		m.Count, m.Sum, m.Last = m.Count+1, sum, v
	}
}

// HideMetrics are metrics without the values of secrets in them. One whose number is such a value is left out.
func HideMetrics(list []Metric, hide *redact.Redactor) []Metric {
	if hide == nil {
		return list
	}
	var kept []Metric
	for _, m := range list {
		text, _ := json.Marshal(m) // texts and numbers always have a JSON
		var told Metric
		if json.Unmarshal(hide.JSON(text), &told) == nil && !strings.Contains(told.Name, redact.Mask) {
			kept = append(kept, told)
		}
	}
	return kept
}

// MetricsJSON is a list of metrics as it is stored; nil = there are none.
func MetricsJSON(list []Metric) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	text, _ := json.Marshal(list) // texts and numbers always have a JSON
	return text
}
