package trace

import (
	"encoding/binary"

	"github.com/troupe-engine/troupe/flow"
)

// Sampling selects the tasks whose spans are always sent. The spans of all other tasks are sent
// only if they fail.
type Sampling struct {
	// Skip is the share of traces that are not sent. Traces are chosen by their id, like in
	// OpenTelemetry's TraceIDRatioBased.
	Skip  float64
	Alone bool // Skip also applies to tasks whose callers made a sampling decision
	Link  bool // tasks have traces of their own, with links to those of the callers
}

// Of returns the relation of a task to the trace t of its caller; t is nil if there is none. The
// result is stored with the task, so all members send all of its spans or none.
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
