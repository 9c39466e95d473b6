// Package render converts stored tasks to answers. Values of users are complete or previews.
package render

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/trace"
	"github.com/troupe-engine/troupe/persistence"
)

// ToSummary converts a task row to a summary.
func ToSummary(t *persistence.TaskRow) wire.TaskSummary {
	s := wire.TaskSummary{
		ID: t.ID, Flow: cmp.Or(t.FlowSlug, t.FlowID), FlowName: t.FlowName, Version: t.VersionNumber, VersionID: t.VersionID,
		State: t.Status, Paused: t.Paused, Node: t.Cursor, LastAction: t.LastAction, Steps: t.Steps,
		IgnoredErrors: t.Followed, Error: t.Error, Labels: t.Labels,
		CreatedAt: wire.Millis(t.CreatedAt), UpdatedAt: wire.Millis(t.UpdatedAt), EndedAt: wire.Millis(t.EndedAt),
	}
	s.WaitingFor, s.Wait = toWaits(t.Waits, &t.Wait)
	return s
}

func toWaits(kinds flow.WaitKinds, first *flow.Awaited) ([]string, *wire.TaskWait) {
	if kinds == 0 {
		return nil, nil
	}
	return kinds.Words(), &wire.TaskWait{Kind: first.Kind, Scope: first.Scope, Node: first.Node, Visit: first.Visit, Key: first.Key,
		WaitingSince: wire.Millis(first.Since), Deadline: wire.Millis(first.Due)}
}

// ToTask converts a task. Changing fields come from the journal, because the row may be a second
// old.
func ToTask(v *persistence.View) wire.Task {
	state := v.State
	t := wire.Task{TaskSummary: ToSummary(&v.TaskRow), Seq: v.Seq, Active: activeSteps(v.ID, state),
		Mode: string(state.Plan.Root.Mode()), Counts: toCounts(state.StepCounts())}
	t.State, t.Paused, t.Error, t.Steps = string(state.Status), state.Paused(), state.Error, state.Steps
	t.WaitingFor, t.Wait = toWaits(state.Waits())
	t.IgnoredErrors, t.IgnoredErrorDetails = state.Followed, toFollowed(state.FollowedErrors)
	if t.Paused {
		t.PausedAt = wire.Millis(state.PausedAt)
	}
	t.Node, t.LastAction = state.Root.Cursor, state.Root.LastAction
	t.UpdatedAt, t.EndedAt = wire.Millis(state.UpdatedAt), wire.Millis(state.EndedAt)
	t.Forked, t.TraceID = state.Origin, trace.IDOf(v.ID, state.Traced).String()
	t.Params, t.Shared = state.Params, orEmpty(state.Root.Shared)
	if state.Status == flow.TaskCompleted {
		t.Result = state.Result()
	}
	return t
}

func toFollowed(errs []flow.FollowedError) (list []wire.IgnoredError) {
	for _, f := range errs {
		list = append(list, wire.IgnoredError{Node: f.Node, Count: f.Times, Visit: f.Visit, Error: f.Error, At: wire.Millis(f.At)})
	}
	return list
}

func orEmpty(shared map[string]json.RawMessage) map[string]json.RawMessage {
	if shared == nil {
		return map[string]json.RawMessage{}
	}
	return shared
}

// namedSteps is the maximum number of active steps in a task's answer.
const namedSteps = 100

func activeSteps(task string, s *flow.State) []wire.Step {
	steps := []wire.Step{}
	for _, v := range s.AllActive(namedSteps) {
		steps = append(steps, ToStep(task, &v))
	}
	return steps
}

// ToStep converts a step of a task.
func ToStep(task string, v *flow.StepView) wire.Step {
	step := wire.Step{
		Scope: v.Scope, Node: v.Node.Key, Kind: string(v.Node.Kind), Visit: v.Visit,
		State: string(v.Status), Reason: v.Reason, SkipMode: string(v.Mode),
		Action: v.Action, GeneratedFor: v.For, WaitingFor: v.WaitsFor, WaitingForCount: v.Waits,
		Output: v.Output, Error: v.Error, Details: v.Details,
		Held: v.Held, EnteredAt: wire.Millis(v.StartedAt), EndedAt: wire.Millis(v.EndedAt), DueAt: wire.Millis(v.Due),
		Units: wire.UnitCounts{Total: v.Units.Total, InFlight: v.Units.Flying,
			Retrying: v.Units.Retrying, Done: v.Units.Done, Failed: v.Units.Failed},
	}
	if v.Node.Kind == flow.KindFanout {
		step.Units.Appended = v.Units.Total - v.Units.Initial
	}
	if v.Node.Exec.Type != "" {
		step.Route = v.Node.Exec.Route()
	}
	if v.Wait != nil {
		wait := ToWait(task, v.Wait)
		step.Wait = &wait
	}
	if v.Node.Sub != nil && v.StartedAt > 0 {
		step.InnerScope = flow.ChildScope(v.Address)
	}
	return step
}

func toCounts(counts map[flow.StepStatus]int) *wire.StepCounts {
	if counts == nil {
		return nil
	}
	return &wire.StepCounts{Created: counts[flow.StepCreated], Started: counts[flow.StepStarted], Completed: counts[flow.StepCompleted],
		Failed: counts[flow.StepFailed], Skipped: counts[flow.StepSkipped]}
}

// ToUnit converts a unit of a step.
func ToUnit(u *flow.UnitView) wire.Unit {
	return wire.Unit{Unit: u.Index, Name: u.Name, State: u.Status.String(), Attempt: u.Attempt,
		Appended: u.Appended, Input: u.Input, Output: u.Output,
		Error: u.Error, Details: u.Details, Worker: u.Worker, StatusText: u.Note,
		RetryAt: wire.Millis(u.RetryAt), DueAt: wire.Millis(u.Due)}
}

// ToWait converts a reason for which a task waits.
func ToWait(task string, w *flow.Wait) wire.WaitReason {
	wait := wire.WaitReason{Place: ToPlace(w.Address), Kind: w.For, Text: w.Text, Key: w.Key,
		WaitingSince: wire.Millis(w.Since), Deadline: wire.Millis(w.Until),
		Service: w.Service, Labels: w.Labels}
	if w.For == "job" || w.For == "claim" {
		wait.Job = flow.JobID(task, w.Address)
	}
	return wait
}

// ToPlace converts an address in a task.
func ToPlace(a flow.Address) wire.Place {
	return wire.Place{Scope: a.Scope, Node: a.Node, Visit: a.Visit, Unit: a.Unit, Attempt: a.Attempt}
}
