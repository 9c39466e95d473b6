package actors

import (
	"github.com/troupe-engine/troupe/actors/metrics"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
)

// Tracing configures the traces of a member's tasks.
type Tracing struct {
	Sampling trace.Sampling
	Teller   Teller // exports spans; nil if no spans are recorded
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
	Whole   bool // the row has all spans of the task, because no earlier row was exported
}

// sendSpanRow exports the spans that a row ends. A task without sampling is exported only when it
// has failed.
func (t taskJournal) sendSpanRow(p *journalDraft) {
	teller, sampled := t.m.cfg.Tracing.Teller, t.state.Traced.Sampled()
	if teller == nil || !sampled && p.ended != flow.TaskFailed {
		return
	}
	teller.Stored(StoredRow{Task: t.id, Version: t.state.Version, Plan: t.state.Plan, Seq: t.seq,
		Events: p.encodedRow, Ended: p.ended != "", Whole: !sampled})
}

// storedRow returns the data of a stored row that metrics and statistics count.
func (t taskJournal) storedRow(p *journalDraft) metrics.Row {
	return metrics.Row{Task: t.id, State: t.state, First: t.isFirstRow(), Ended: p.ended, Effects: p.effects,
		Tallies: p.tallies, Traced: t.m.cfg.Tracing.Teller != nil && t.state.Traced.Sampled()}
}

// countRow counts a row that was stored.
func (t taskJournal) countRow(p *journalDraft) {
	row := t.storedRow(p)
	t.m.metrics.CountRow(&row)
	if t.counted == nil {
		t.counted = t.m.statistics.PartFor(t.id)
	}
	t.counted.CountRow(&row)
}
