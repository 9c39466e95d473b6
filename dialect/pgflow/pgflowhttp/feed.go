package pgflowhttp

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// pgEvent is an event for subscribers: its kind as event_type, run_id, status, and the fields of
// its kind.
type pgEvent map[string]any

// eventName returns the name of the event for subscribers: the kind, and for events of a step also
// the step.
func (e pgEvent) eventName() string {
	kind := e["event_type"].(string)
	if what, ok := strings.CutPrefix(kind, "step:"); ok {
		return "step:" + e["step_slug"].(string) + ":" + what
	}
	return kind
}

// pgFeed applies a run's events and converts them to this dialect.
type pgFeed struct{ s *flow.State }

// applyEvent applies an event of the journal, and converts it if it has a meaning in this dialect.
func (f *pgFeed) applyEvent(e *flow.Event) (pgEvent, bool) {
	flow.Evolve(f.s, e)
	if e.Scope != "" {
		return nil, false // a subflow inside a branch
	}
	switch e.Type {
	case flow.StepEntered, flow.StepEnded, flow.UnitsAppended:
		if f.s.Root.Plan.Mode() != flow.ModeDag || f.s.Root.Plan.Nodes[e.Node] == nil {
			return nil, false
		}
		return f.stepEvent(e), true
	}
	return f.runEvent(e)
}

func (f *pgFeed) runEvent(e *flow.Event) (pgEvent, bool) {
	r := toRun(f.s)
	ev := pgEvent{"run_id": r.RunID, "status": r.Status, "flow_slug": r.FlowSlug}
	name := ""
	switch {
	case e.Type == flow.TaskCreated || e.Type == flow.TaskRetried:
		name, ev["input"], ev["remaining_steps"], ev["started_at"] = pgStarted, r.Input, r.RemainingSteps, r.StartedAt
	case e.Type == flow.TaskPaused:
		name, ev["paused_at"] = pgPaused, r.PausedAt
	case e.Type == flow.TaskResumed:
		name, ev["resumed_at"] = "resumed", r.ResumedAt
	case e.Type == flow.CancelRequested || e.Type == flow.TaskEnded && r.CancelledAt != nil && f.s.CancelAt == 0:
		name, ev["cancelled_at"] = pgCancelled, r.CancelledAt
	case e.Type == flow.TaskEnded && r.Status == pgCompleted:
		name, ev["output"], ev["completed_at"] = pgCompleted, r.Output, r.CompletedAt
	case e.Type == flow.TaskEnded && r.Status == pgFailed:
		name, ev["error_message"], ev["failed_at"] = pgFailed, r.ErrorMessage, r.FailedAt
	default:
		return nil, false
	}
	ev["event_type"] = "run:" + name
	return ev, true
}

func (f *pgFeed) stepEvent(e *flow.Event) pgEvent {
	st := toStep(f.s, f.s.Root.Plan.Nodes[e.Node].Dag.Index)
	ev := pgEvent{"run_id": f.s.Task, "step_slug": st.StepSlug, "status": st.Status, "event_type": "step:" + st.Status}
	switch {
	case e.Type == flow.UnitsAppended:
		indexes := make([]int, e.Total)
		for i := range indexes {
			indexes[i] = e.Unit + i
		}
		ev["event_type"], ev["task_indexes"], ev["remaining_tasks"] = "task:appended", indexes, st.RemainingTasks
	case st.Status == pgStarted:
		ev["started_at"], ev["remaining_tasks"], ev["remaining_deps"] = st.StartedAt, st.RemainingTasks, st.RemainingDeps
	case st.Status == pgCompleted:
		ev["output"], ev["completed_at"] = st.Output, st.CompletedAt
	case st.Status == pgFailed:
		ev["error_message"], ev["failed_at"], ev["failure_reason"] = st.ErrorMessage, st.FailedAt, st.FailureReason
	default:
		ev["flow_slug"], ev["skip_reason"], ev["skipped_at"],
			ev["error_message"] = f.s.Plan.FlowSlug, st.SkipReason, st.SkippedAt, st.ErrorMessage
	}
	return ev
}

// sendRow sends the events of a row that follow a position.
func (f *pgFeed) sendRow(row engine.Row, after stream.Position, to stream.Listener) error {
	events, err := flow.DecodeEvents(row.Events)
	if err != nil {
		return err
	}
	batch := stream.Batch{To: to}
	for i := range events {
		at := stream.Position{Seq: row.Seq, Index: i}
		ev, ok := f.applyEvent(&events[i])
		if !ok || after.Covers(row.Seq, i) {
			continue
		}
		data, err := json.Marshal(ev)
		if err == nil {
			err = batch.Add(stream.Message{ID: at.String(), Event: ev.eventName(), Data: data})
		}
		if err != nil {
			return err
		}
	}
	return batch.Send()
}
