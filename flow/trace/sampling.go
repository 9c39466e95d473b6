package trace

import (
	"encoding/binary"

	"github.com/troupe-engine/troupe/flow"
)

// Sampling selects the tasks whose spans are always sent. The spans of all other tasks are sent
// only if they fail.
type Sampling struct {
	// share of unsent traces, chosen by trace id like OpenTelemetry's TraceIDRatioBased
	Skip  float64
	Alone bool // Skip also applies to tasks with a sampling decision of their callers
	Link  bool // tasks have their own traces, with links to those of their callers
}

// Of returns the trace membership of a task that is started in trace t, or in none for nil. The
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
