package trace

import (
	"encoding/binary"

	"github.com/troupe-engine/troupe/flow"
)

// Sampling says which tasks have their spans told however they end. Those of the others are told if
// they fail.
type Sampling struct {
	Skip  float64 // share of traces whose spans are not told, by their ids, as OpenTelemetry's TraceIDRatioBased does
	Alone bool    // it also counts for tasks whose callers have decided about their traces
	Link  bool    // tasks have traces of their own, which point to those of their callers
}

// Of is how a task that is started in a trace, nil = in none, belongs to it. What it decides is
// kept with the task, so all members tell all of it or nothing.
func (s Sampling) Of(task string, t *flow.Traced) *flow.Traced {
	var of flow.Traced
	if t != nil {
		of = *t
		of.Link = t.Link || s.Link
	}
	if above, _ := of.Above(); above == "" || s.Alone {
		of.Unsampled = s.Skip > 0 && s.isSkipped(IDOf(task, &of))
	}
	if of == (flow.Traced{}) {
		return nil
	}
	return &of
}

func (s Sampling) isSkipped(id ID) bool {
	return float64(binary.BigEndian.Uint64(id[8:])>>1) >= (1-s.Skip)*(1<<63)
}
