package actors

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Tracing is how a member's tasks are traced.
type Tracing struct {
	Sampling trace.Sampling
	Teller   Teller // nil = nobody is told spans
}

// Teller tells spans of what is stored.
type Teller interface {
	// Stored hears of a row of a task's journal, once it is stored. It does not wait.
	Stored(StoredRow)
}

// StoredRow is a row of the journal of a task whose spans are told.
type StoredRow struct {
	Task    string
	Version string
	Plan    *flow.Plan
	Seq     int64
	Events  []byte
	Ended   bool // the task has
	Whole   bool // of what is before nothing has been told
}

// sendSpanRow has the spans told that a row ends. Those of a task that is not sampled are told when
// it has failed.
func (t *task) sendSpanRow(p *journalDraft) {
	teller, sampled := t.m.cfg.Tracing.Teller, t.state.Traced.Sampled()
	if teller == nil || !sampled && p.ended != flow.TaskFailed {
		return
	}
	teller.Stored(StoredRow{Task: t.id, Version: t.state.Version, Plan: t.state.Plan, Seq: t.seq, Events: p.encodedRow, Ended: p.ended != "", Whole: !sampled})
}

// traceExemplar is what an observation of a task's is shown with; nil = its spans are not told.
func (t *task) traceExemplar() prometheus.Labels {
	if t.m.cfg.Tracing.Teller == nil || !t.state.Traced.Sampled() {
		return nil
	}
	return prometheus.Labels{"trace_id": trace.IDOf(t.id, t.state.Traced).String()}
}

// observeSeconds notes a duration in seconds, with its exemplar if it has one.
func observeSeconds(in prometheus.Observer, seconds float64, exemplar prometheus.Labels) {
	if exemplar == nil {
		in.Observe(seconds)
		return
	}
	in.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, exemplar) // every histogram is one
}
