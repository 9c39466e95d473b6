package program

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/redact"
	"github.com/troupe-engine/troupe/job"
)

// maxMetricLine is the largest size of a line ORK_METRIC:{"name": …, "value": …, "labels": {…}} in
// bytes.
const maxMetricLine = 4 << 10

// metricParser collects the metrics reported by a program.
type metricParser struct{ job.Numbers }

// parseMetric adds the metric of a line. A line without a number is only logged.
func (m *metricParser) parseMetric(text []byte) {
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
	m.Add(line.Name, *line.Value, labels)
}

// HideMetrics returns the metrics with secrets masked. It drops a metric if its name or number
// contains a secret.
func HideMetrics(list []job.Number, hide *redact.Redactor) []job.Number {
	if hide == nil {
		return list
	}
	var kept []job.Number
	for _, m := range list {
		text, _ := json.Marshal(m) // strings and numbers always encode
		var told job.Number
		if json.Unmarshal(hide.JSON(text), &told) == nil && !strings.Contains(told.Name, redact.Mask) {
			kept = append(kept, told)
		}
	}
	return kept
}
