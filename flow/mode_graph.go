package flow

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
)

// graphMode moves a cursor along the edges, one node after another.
type graphMode struct{}

func (graphMode) beginNext(d *decider, sc *Scope) {
	switch {
	case sc.Step != nil:
		d.attemptPart().startUnits(sc.Step)
	case sc.Cursor == "": // the scope had ended; the retry is for a failed finally
		d.stepPart().scopeEnded(sc)
	case sc.EnterAt <= d.env.Now:
		d.stepPart().enterCursor(sc)
	}
}

// finishStep moves the scope's cursor, or ends the scope.
func (graphMode) finishStep(d *decider, st *Step, how stepOutcome) {
	sc := st.scope
	e := st.newEvent(StepEnded)
	how.fillEvent(&e)
	e.Next, e.Reason = followEdge(sc, st.Node, how)
	if e.Next == "" && how.failed != "" && how.reason != ReasonCondition {
		d.enterAgain(st, &e)
	}
	d.emitEvent(e)
	switch {
	case sc.Cursor == "":
		d.stepPart().scopeEnded(sc)
	case e.Due > d.env.Now:
		d.effects = append(d.effects, Alarm{At: e.Due, Address: Address{Scope: sc.Path, Node: e.Next}, Kind: AlarmEnter})
	default:
		d.queueScope(sc)
	}
}

// fillEvent sets the fields of an event for the end of a step in graph mode.
func (how *stepOutcome) fillEvent(e *Event) {
	e.Status, e.Action, e.Error, e.Post, e.Output = string(StepCompleted), how.action, how.failed, how.posts, how.output
	if how.failed != "" {
		e.Status = string(StepFailed)
	}
}

// followEdge returns the next node. After a failure this is the node at the `error` edge. Without
// that edge there is no next node, unless on_error is follow. In that case the edges of success are
// used, and the reason mentions that.
func followEdge(_ *Scope, n *PlanNode, how stepOutcome) (next, reason string) {
	if how.failed == "" {
		return n.nextAfter(how.action), ""
	}
	if next, ok := n.Edges["error"]; ok {
		return next, ""
	}
	if !n.Follow {
		return "", ""
	}
	if next = n.nextAfter(how.action); next != "" {
		reason = ReasonIgnored
	}
	return next, reason
}

// nextAfter returns the node to which an action leads.
func (n *PlanNode) nextAfter(action string) string {
	if next, ok := n.Edges[action]; ok {
		return next
	}
	return n.Edges["default"]
}

// enterAgain makes a retried subflow enter its failed node again. The caller excludes a node whose
// condition cannot be evaluated, because it would fail again.
func (d *decider) enterAgain(st *Step, e *Event) {
	sc := st.scope
	if d.s.isDraining() || sc.parent == nil || !sc.canRetry() {
		return
	}
	e.Next, e.Attempt, e.Due = st.Node.Key, sc.Retries+1, d.retryAt(sc)
}

// canRetry reports whether the subflow of a scope has retries left.
func (sc *Scope) canRetry() bool {
	r := &sc.parent.Node.Retry
	return !r.Units && sc.Retries < r.Max
}

// retryAt returns when the next retry of a subflow begins.
func (d *decider) retryAt(sc *Scope) int64 {
	a := sc.parent.Address()
	a.Attempt = sc.Retries + 1
	return d.timeAfter(sc.parent.Node.Retry.backoffMS(d.s.Task, a))
}

func (graphMode) endSingle(d *decider, st *Step) {
	u := &st.Units[0]
	if u.Status == UnitFailed {
		d.stepPart().finishStep(st, stepOutcome{failed: cmp.Or(u.Error.Text, "failed")})
		return
	}
	d.stepPart().finishStep(st, stepOutcome{posts: true, action: st.resultAction(u.Output)})
}

func (graphMode) canRedoUndone() bool { return false }

// stepParams merges the params of the node over the params of its scope. With the pocketflow
// profile, the params of the task take precedence at the root.
func (graphMode) stepParams(sc *Scope, n *PlanNode) json.RawMessage {
	switch {
	case len(n.Params) == 0:
		return sc.Params
	case sc.Plan.Pocketflow && !sc.Plan.Flat:
		return expr.Merge(n.Params, sc.Params)
	}
	return expr.Merge(sc.Params, n.Params)
}

func (graphMode) beginScope(sc *Scope) { sc.Cursor = sc.Plan.Start }

func (graphMode) bindInputs(sc *Scope, params, _ json.RawMessage) { sc.Params = params }

func (graphMode) activateStep(sc *Scope, st *Step) {
	if sc.Visits == nil {
		sc.Visits = map[string]int{}
	}
	sc.Visits[st.Key] = st.Visit
	sc.Cursor, sc.EnterAt, sc.Step, sc.Kept = st.Key, 0, st, nil
}

// applyStepEnded moves the cursor to the next node.
func (graphMode) applyStepEnded(s *State, sc *Scope, e *Event) {
	st := s.evolvePart().postAndForget(sc, e)
	if st == nil {
		return
	}
	sc.LastAction, sc.Cursor, sc.Step, sc.EnterAt = e.Action, e.Next, nil, e.Due
	if sc.Idle++; !st.isIdle() || e.Due > e.At {
		sc.Idle, sc.Worked = 0, true
	}
	if e.Reason == ReasonIgnored {
		s.evolvePart().noteFollowed(e)
	}
	if e.Attempt > 0 {
		sc.Retries = e.Attempt
	}
	if e.Next == "" && e.Status == string(StepFailed) {
		sc.failAt(st, e)
	}
	if e.Attempt > 0 || sc.FailedAt != "" { // the step is retried, or may be
		sc.Kept = s.evolvePart().keepResults(st, e.At)
	}
}

// postAndForget writes the output of an ending step where its post says, and drops everything below
// the step. It returns nil if the step is not active.
func (s evolveState) postAndForget(sc *Scope, e *Event) *Step {
	st := s.activeStep(e.Address())
	if st == nil {
		return nil
	}
	var result json.RawMessage
	completed := e.Status == string(StepCompleted)
	if e.Post || completed && st.Node.Undo != "" {
		result = st.stepResult(e)
	}
	if e.Post {
		sc.postOutput(st, e, result)
	}
	if completed {
		s.undoPart().keepForUndo(sc, st.Node, st.Visit, st, st.stepInput, result)
	}
	sc.recordPast(st, StepStatus(e.Status), e.Reason, e.Error, e.At)
	s.forgetStep(st, e.At)
	s.Steps++
	return st
}

func (graphMode) deactivateStep(sc *Scope, st *Step, at int64) {
	sc.recordPast(st, StepSkipped, ReasonWithdrawn, "", at)
	sc.Step = nil
}

func (graphMode) reopenScope(sc *Scope, _ map[string]bool) {
	sc.Cursor = cmp.Or(sc.FailedAt, sc.Cursor)
}

func (graphMode) linkScope(s *State, sc *Scope) error {
	if sc.Step == nil {
		return nil
	}
	return s.linkPart().linkStep(sc, sc.Step)
}

func (graphMode) activeSteps(sc *Scope) []*Step {
	if sc.Step == nil {
		return nil
	}
	return []*Step{sc.Step}
}

func (graphMode) isBusy(sc *Scope, retries bool) bool {
	return sc.Step != nil && sc.Step.isBusy(retries)
}

func (graphMode) activeStep(sc *Scope, node string) *Step {
	if sc.Step == nil || sc.Step.Key != node {
		return nil
	}
	return sc.Step
}

// nodeState returns nil, because the data of inactive nodes is in Scope.Past.
func (graphMode) nodeState(*Scope, *PlanNode) *NodeState { return nil }

func (graphMode) visitCount(sc *Scope, n *PlanNode) int { return sc.Visits[n.Key] }

// keptResults returns the results for the node at the cursor, the only possible next node.
func (graphMode) keptResults(sc *Scope, _ *PlanNode) *Kept { return sc.Kept }

func (graphMode) setKept(sc *Scope, _ *PlanNode, k *Kept) { sc.Kept = k }

// scopeOutput returns the value of the key that the scope's plan names as result, else all of
// shared.
func (graphMode) scopeOutput(sc *Scope) json.RawMessage {
	if sc.Plan.Result != "" {
		return orNull(sc.Shared[sc.Plan.Result])
	}
	return sc.SharedJSON()
}

func (graphMode) outputSize(sc *Scope, levels int) valueSize {
	if sc.Plan.Result == "" {
		return sc.allShared(levels)
	}
	return valueSize{bytes: len(sc.Output())}
}

func (graphMode) stepInput(st *Step) json.RawMessage { return st.Input }

// unitInput returns the item of a foreach, else the step's input.
func (graphMode) unitInput(st *Step, unit int) json.RawMessage {
	switch {
	case st.Node.Kind != KindForeach:
		return orNull(st.Input)
	case unit < len(st.common.items):
		return st.common.items[unit]
	}
	return null
}

func (graphMode) childInputs(st *Step) (params, run json.RawMessage) {
	if len(st.Input) > 0 {
		return st.Params, st.Input
	}
	return st.Params, st.Params
}
