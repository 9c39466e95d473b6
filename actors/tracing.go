package actors

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Tracing configures the traces of a member's tasks.
type Tracing struct {
	Sampling trace.Sampling
	Teller   Teller // nil if no spans are recorded
}

// Teller exports spans of stored rows.
type Teller interface {
	// Stored receives a row of a task's journal after it is stored. It does not block.
	Stored(StoredRow)
}

// StoredRow is a journal row of a traced task.
type StoredRow struct {
	Task    string
	Version string
	Plan    *flow.Plan
	Seq     int64
	Events  []byte
	Ended   bool // the task has ended
	Whole   bool // no earlier row was exported
}

// sendSpanRow exports the spans that a row ends. A task that is not sampled is exported when it has
// failed.
func (t *task) sendSpanRow(p *journalDraft) {
	teller, sampled := t.m.cfg.Tracing.Teller, t.state.Traced.Sampled()
	if teller == nil || !sampled && p.ended != flow.TaskFailed {
		return
	}
	teller.Stored(StoredRow{Task: t.id, Version: t.state.Version, Plan: t.state.Plan, Seq: t.seq,
		Events: p.encodedRow, Ended: p.ended != "", Whole: !sampled})
}

// traceExemplar returns the exemplar for observations of a task; nil if its spans are not exported.
func (t *task) traceExemplar() prometheus.Labels {
	if t.m.cfg.Tracing.Teller == nil || !t.state.Traced.Sampled() {
		return nil
	}
	return prometheus.Labels{"trace_id": trace.IDOf(t.id, t.state.Traced).String()}
}

// observeSeconds records a duration in seconds, with its exemplar if there is one.
func observeSeconds(in prometheus.Observer, seconds float64, exemplar prometheus.Labels) {
	if exemplar == nil {
		in.Observe(seconds)
		return
	}
	// every histogram implements it
	in.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, exemplar)
}
