package v1

import (
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func toSummary(t *persistence.TaskRow) wire.TaskSummary {
	return wire.TaskSummary{
		ID: t.ID, Flow: orElse(t.FlowSlug, t.FlowID), FlowName: t.FlowName, Version: t.VersionNumber, VersionID: t.VersionID,
		State: t.Status, Paused: t.Paused, Node: t.Cursor, LastAction: t.LastAction, Steps: t.Steps, Error: t.Error, Labels: t.Labels,
		CreatedAt: wire.Millis(t.CreatedAt), UpdatedAt: wire.Millis(t.UpdatedAt), EndedAt: wire.Millis(t.EndedAt),
	}
}

// toTask takes everything that moves from the journal; the row may be a second behind.
func toTask(v *persistence.View) wire.Task {
	state := v.State
	t := wire.Task{TaskSummary: toSummary(&v.TaskRow), Seq: v.Seq, Active: activeSteps(state)}
	t.State, t.Paused, t.Error, t.Steps = string(state.Status), state.Paused(), state.Error, state.Steps
	if t.Paused {
		t.PausedAt = wire.Millis(state.PausedAt)
	}
	t.Node, t.LastAction = state.Root.Cursor, state.Root.LastAction
	t.UpdatedAt, t.EndedAt = wire.Millis(state.UpdatedAt), wire.Millis(state.EndedAt)
	t.Params, t.Shared = state.Params, state.Root.SharedJSON()
	if state.Status == flow.TaskCompleted {
		t.Result = state.Result()
	}
	return t
}

func activeSteps(s *flow.State) []wire.Step {
	steps := []wire.Step{}
	if s.Status.Ended() {
		return steps
	}
	for sc := s.Root; sc != nil && sc.Step != nil; sc = sc.Step.Child {
		st := sc.Step
		steps = append(steps, wire.Step{
			Scope: sc.Path, Node: st.Node.Key, Kind: string(st.Node.Kind), Visit: st.Visit,
			EnteredAt: wire.Millis(st.EnteredAt), Due: wire.Millis(st.Due),
			Units: wire.Units{Total: len(st.Units), InFlight: st.Flying, Retrying: len(st.Retrying), Done: st.Done, Failed: st.Failures},
		})
	}
	return steps
}

func toPlace(a flow.Address) wire.Place {
	return wire.Place{Scope: a.Scope, Node: a.Node, Visit: a.Visit, Unit: a.Unit, Attempt: a.Attempt}
}

// liveAttempt finds an attempt in flight.
func liveAttempt(s *flow.State, a flow.Address) *flow.Live {
	sc := s.Scope(a.Scope)
	if s.Status.Ended() || sc == nil || sc.Step == nil || sc.Step.Node.Key != a.Node || sc.Step.Visit != a.Visit || a.Unit >= len(sc.Step.Units) {
		return nil
	}
	u := &sc.Step.Units[a.Unit]
	if int(u.Attempt) != a.Attempt {
		return nil
	}
	return u.Live
}
