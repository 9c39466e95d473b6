package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/troupe-engine/troupe/flow/expr"
)

// nextNode decides about the first node of a scope that is ready.
func (d dagDecider) nextNode(sc *Scope) {
	if len(sc.dag.ready) == 0 {
		if sc.dag.left == 0 { // the dag is empty
			d.dagEnded(sc)
		}
		return
	}
	d.queueScope(sc) // for the next ready node
	n := sc.Plan.Dag.List[sc.dag.ready[0]]
	switch {
	case d.s.Steps >= d.limits.Steps:
		d.taskPart().endTask(TaskFailed, fmt.Sprintf("limit: the task has run %d steps, which is the most a task may have", d.s.Steps))
	case d.endByGuard(sc, n):
	case sc.nodeState(n).Doomed:
		d.skipNode(sc, n, SkipPropagate, sc.skipReason(n), "")
	case n.Kind == KindJoin && sc.failedInside(n):
		d.skipNode(sc, n, SkipPropagate, ReasonDependencyFailed, "")
	case d.endIfUnmet(sc, n):
	default:
		d.beginNode(sc, n)
	}
}

// endByGuard ends a node if the gate, cond or prep before it failed or was skipped. It reports
// whether the node ended.
func (d dagDecider) endByGuard(sc *Scope, n *PlanNode) bool {
	for _, i := range n.Dag.Guards {
		switch g := &sc.Nodes[i]; {
		case g.Status() == StepFailed:
			d.failNode(sc, n, g.Rare().Reason, g.Rare().Error)
			return true
		case g.Status() == StepSkipped && g.Rare().Reason == ReasonUnmet:
			reason := ReasonUnmet
			if n.Kind == KindJoin || n.Kind == KindSubflow {
				reason = ReasonDependency
			}
			d.skipNode(sc, n, n.Dag.Mode, reason, "")
			return true
		case g.Status() == StepSkipped:
			d.skipNode(sc, n, SkipPropagate, g.Rare().Reason, "")
			return true
		}
	}
	return false
}

// skipReason returns the reason why a node cannot run.
func (sc *Scope) skipReason(n *PlanNode) string {
	for _, i := range n.Dag.Deps {
		if sc.Nodes[i].Status() == StepFailed || sc.Nodes[i].Rare().Reason == ReasonDependencyFailed {
			return ReasonDependencyFailed
		}
	}
	return ReasonDependency
}

// failedInside reports whether a node of a branch has failed. It ignores why other nodes were
// skipped, because that may depend on the order in which nodes end.
func (sc *Scope) failedInside(join *PlanNode) bool {
	return slices.ContainsFunc(join.Dag.Deps, func(i int) bool {
		inner := &sc.Nodes[i]
		return inner.Status() == StepFailed || sc.Plan.Dag.List[i].Kind == KindJoin && inner.Rare().Reason == ReasonDependencyFailed
	})
}

// textUnmet is the error of a node that must not be skipped. Clients of pgflow look for exactly
// this text.
const textUnmet = "Condition not met"

// endIfUnmet ends a node with an unmet condition. It reports whether the node ended.
func (d dagDecider) endIfUnmet(sc *Scope, n *PlanNode) bool {
	a := expr.NewAllowance()
	holds, err := sc.evalCondition(n, a)
	d.effort += a.Spent()
	switch err = d.orContentError(err); {
	case err != nil:
		d.failNode(sc, n, ReasonCondition, err.Error())
	case holds:
		return false
	case n.Dag.Mode == SkipFail:
		d.failNode(sc, n, ReasonSkipped, textUnmet)
	default:
		d.skipNode(sc, n, n.Dag.Mode, ReasonUnmet, "")
	}
	return true
}

// evalCondition reports whether the patterns and the expression of a node allow it to run.
func (sc *Scope) evalCondition(n *PlanNode, a *expr.Allowance) (bool, error) {
	p := n.Dag
	if p.Has == nil && p.Not == nil && p.Expr == nil || sc.nodeState(n).keptResults() != nil {
		return true, nil
	}
	if p.Has != nil || p.Not != nil {
		input, err := sc.seenBy(n)
		if err != nil {
			return false, err
		}
		input = sc.expandValue(input)
		for _, pattern := range []*expr.Pattern{p.Has, p.Not} {
			if pattern == nil {
				continue
			}
			if err := a.Pay(pattern.Cost(input)); err != nil {
				return false, fmt.Errorf("the pattern: %w", err)
			}
			if pattern.In(input) != (pattern == p.Has) {
				return false, nil
			}
		}
	}
	if p.Expr == nil {
		return true, nil
	}
	holds, err := p.Expr.On(a).Bool(sc.exprVars(n))
	if err != nil {
		return false, fmt.Errorf("when.expr: %w", err)
	}
	return holds, nil
}

// seenBy returns the value that patterns are compared with. For a mapped input this is the input
// that a handler without a mapping would get.
func (sc *Scope) seenBy(n *PlanNode) (json.RawMessage, error) {
	if n.Dag.Shape == ShapeMapped {
		return append(sc.appendSeen(append([]byte(`{"run":`), sc.runOf(n)...), n.Dag.Sees, false), '}'), nil
	}
	return sc.dagInput(n)
}

// beginNode begins a node, or ends it at once if it has no work.
func (d dagDecider) beginNode(sc *Scope, n *PlanNode) {
	switch {
	case n.Kind == KindGate || n.Kind == KindJoin:
		if err := d.limits.checkJoin(sc, n); err != nil {
			d.failNode(sc, n, ReasonTaskError, err.Error())
			return
		}
		d.completeNode(sc, n, nil)
	case !n.Single && (n.Kind == KindPrep || n.Kind == KindOutput):
		v, err := d.buildMappedInput(sc, n)
		if err == nil {
			err = cmp.Or(d.limits.checkValue("the value", v), d.stepPart().checkInputs(n.Dag.Takes, v))
		}
		if err != nil {
			d.failNode(sc, n, ReasonPreprocessing, err.Error())
			return
		}
		d.completeNode(sc, n, sc.fillDefaults(n.Dag.Takes, v))
	case n.Kind == KindFanout:
		d.enterEach(sc, n)
	case n.Kind == KindSubflow && n.Sub == nil:
		d.completeNode(sc, n, nil)
	default:
		d.enterNode(sc, n, 0)
	}
}

// buildMappedInput returns the mapped input of a node and adds the work for it to the effort.
func (d dagDecider) buildMappedInput(sc *Scope, n *PlanNode) (json.RawMessage, error) {
	a := expr.NewAllowance()
	defer func() { d.effort += a.Spent() }()
	v, err := sc.mappedInput(n, a)
	return v, d.orContentError(err)
}

// enterEach enters a fanout. A fanout without units is complete, unless units were appended to its
// last visit.
func (d dagDecider) enterEach(sc *Scope, n *PlanNode) {
	total, err := sc.unitsOfEach(n, d.limits.Units)
	switch err = d.orContentError(err); {
	case err != nil:
		d.failNode(sc, n, ReasonPreprocessing, err.Error())
	case total+len(sc.nodeState(n).Rare().Extra) == 0:
		d.completeNode(sc, n, nil)
	default:
		d.enterNode(sc, n, total)
	}
}

// enterNode begins a visit of a node with the given number of units.
func (d dagDecider) enterNode(sc *Scope, n *PlanNode, total int) {
	e := Event{Type: StepEntered, Scope: sc.Path, Node: n.Key, Visit: int(sc.nodeState(n).Visit) + 1, Total: total}
	if n.Single {
		e.Total = 1
	}
	if n.Dag.Items != nil && n.Dag.Items.From == FromShared {
		e.InputRef = n.Dag.Items.Text // a signal may change the value during the visit
	}
	if n.Dag.Shape == ShapeMapped && (n.Single || n.Kind == KindFanout && n.Dag.Items == nil) {
		v, err := d.buildMappedInput(sc, n)
		if err == nil {
			err = d.limits.checkValue("the input", v)
		}
		if err != nil {
			d.failNode(sc, n, ReasonPreprocessing, err.Error())
			return
		}
		if !n.Dag.Fixed {
			e.Input = v
		}
	}
	params := sc.mode.stepParams(sc, n)
	own, wrong := sc.withControls(n, params, nil)
	if wrong = d.orContentError(wrong); wrong != nil {
		d.failNode(sc, n, ReasonPreprocessing, wrong.Error())
		return
	}
	e.Due = d.stepPart().dueOf(n, own)
	if n.Dag.StartDelayMS > 0 && e.Total > 0 {
		e.Until = d.timeAfter(n.Dag.StartDelayMS)
	}
	d.referInput(sc, &e, params)
	e.Kept, e.Since = sc.reusableResults(n, &e), sc.continuedVisit(n, &e)
	extra := sc.nodeState(n).Rare().Extra
	d.emitEvent(e)
	st := sc.nodeState(n).Step
	if len(extra) > 0 {
		d.signalPart().appendUnits(st, extra)
	}
	if e.Due > d.env.Now {
		d.effects = append(d.effects, Alarm{At: e.Due, Address: st.Address(), Kind: AlarmStep})
	}
	d.stepPart().beginStep(st)
}

// nodeEvent returns an event of the given type for a node that may not have begun.
func (sc *Scope) nodeEvent(t EventType, n *PlanNode) Event {
	visit := int(sc.nodeState(n).Visit)
	if sc.nodeState(n).Step == nil {
		visit++
	}
	return Event{Type: t, Scope: sc.Path, Node: n.Key, Visit: visit}
}

// completeNode ends a node as completed. A gate or a mapping ends this way without having begun.
func (d dagDecider) completeNode(sc *Scope, n *PlanNode, output json.RawMessage) {
	e := sc.nodeEvent(StepEnded, n)
	e.Status, e.Output = string(StepCompleted), output
	d.emitEvent(e)
	d.afterNode(sc)
}

// skipNode ends a node that does not run. The mode defines the consequence for the nodes that
// depend on it.
func (d dagDecider) skipNode(sc *Scope, n *PlanNode, mode SkipMode, reason, text string) {
	if mode == SkipFail {
		mode = SkipPropagate
	}
	e := sc.nodeEvent(StepEnded, n)
	e.Status, e.Action, e.Reason, e.Error = string(StepSkipped), string(mode), reason, text
	d.emitEvent(e)
	d.afterNode(sc)
}

// failNode ends a node as failed. With fail_fast, the node that a cond or prep was generated for
// fails, too. So the task's error names a node that the author knows.
func (d dagDecider) failNode(sc *Scope, n *PlanNode, reason, text string) {
	e := sc.nodeEvent(StepEnded, n)
	e.Status, e.Reason, e.Error = string(StepFailed), reason, cmp.Or(text, "failed")
	d.emitEvent(e)
	if n.Dag.For >= 0 && sc.Plan.Dag.FailFast && n.Kind != KindGate {
		target := sc.Plan.Dag.List[n.Dag.For]
		if target.Kind != KindJoin && !sc.nodeState(target).Ended() {
			d.failNode(sc, target, reason, text)
			return
		}
	}
	d.afterNode(sc)
}

// afterNode continues a scope after one of its nodes has ended.
func (d dagDecider) afterNode(sc *Scope) {
	switch {
	case d.s.Status.Ended() || d.s.scopes[sc.Path] != sc:
	case sc.Failed != "" && sc.Plan.Dag.FailFast:
		d.failScope(sc)
	case sc.dag.left == 0:
		d.dagEnded(sc)
	case len(sc.dag.ready) > 0:
		d.queueScope(sc)
	}
}

// failScope ends a scope at once.
func (d dagDecider) failScope(sc *Scope) {
	switch {
	case sc.parent != nil && d.reopenDag(sc):
	case sc.parent != nil:
		d.attemptPart().withdrawScope(sc)
		d.stepPart().endSubflow(sc.parent, sc.Failed)
	case d.s.isCanceling():
		d.taskPart().endCanceledTask()
	default:
		d.taskPart().endTask(TaskFailed, sc.Failed)
	}
}

// dagEnded ends a scope in which every node has ended, unless the failed nodes are retried.
func (d dagDecider) dagEnded(sc *Scope) {
	if sc.parent == nil || !d.reopenDag(sc) {
		d.stepPart().scopeEnded(sc)
	}
}

// reopenDag makes a retried subflow repeat the failed nodes of its dag, as often as its retries
// allow.
func (d dagDecider) reopenDag(sc *Scope) bool {
	if d.s.isDraining() || sc.Failed == "" || !sc.canRetry() || sc.isRetryUseless() {
		return false
	}
	d.attemptPart().withdrawScope(sc)
	d.pruneAll(sc)
	e := Event{Type: ScopeRetried, Scope: sc.Path, Attempt: sc.Retries + 1, Due: d.retryAt(sc)}
	d.emitEvent(e)
	if e.Due > d.env.Now {
		d.effects = append(d.effects, Alarm{At: e.Due, Address: Address{Scope: sc.Path}, Kind: AlarmEnter})
		return true
	}
	d.queueScope(sc)
	return true
}

// isRetryUseless reports whether a retry cannot succeed, because all failures are conditions that
// could not be evaluated.
func (sc *Scope) isRetryUseless() bool {
	return !slices.ContainsFunc(sc.Plan.Dag.List, func(n *PlanNode) bool {
		is := sc.nodeState(n)
		return is.Status() == StepFailed && (is.Rare().Reason != ReasonCondition ||
			n.Kind == KindCond || slices.ContainsFunc(n.Dag.Guards,
			func(i int) bool { return sc.Nodes[i].Status() == StepFailed }))
	})
}

// finishDag ends a step in dag mode.
func (d dagDecider) finishDag(st *Step, how stepOutcome) {
	sc, n := st.scope, st.Node
	switch {
	case how.failed == "":
		d.completeNode(sc, n, how.output)
	case n.Dag.Exhausted == SkipFail || n.Dag.Exhausted == "":
		d.failNode(sc, n, cmp.Or(how.reason, ReasonTaskError), how.failed)
	default:
		d.skipNode(sc, n, n.Dag.Exhausted, ReasonHandlerFailed, how.failed)
	}
}

// endSingle ends a step of one unit according to the purpose of its node.
func (dagMode) endSingle(d *decider, st *Step) {
	sc, n, u := st.scope, st.Node, &st.Units[0]
	switch {
	case u.Status == UnitFailed && n.Kind == KindCond:
		d.dagPart().failNode(sc, n, ReasonCondition, cmp.Or(u.Error.Text, "failed"))
	case u.Status == UnitFailed && n.Kind == KindPrep:
		d.dagPart().failNode(sc, n, ReasonPreprocessing, cmp.Or(u.Error.Text, "failed"))
	case u.Status == UnitFailed:
		d.dagPart().finishDag(st, stepOutcome{failed: cmp.Or(u.Error.Text, "failed"), reason: st.failureReason()})
	case n.Kind == KindCond:
		d.dagPart().endCond(st, u.Output)
	default:
		if err := d.stepPart().checkInputs(n.Dag.Takes, orNull(u.Output)); err != nil {
			d.dagPart().failNode(sc, n, ReasonPreprocessing, err.Error())
			return
		}
		d.dagPart().completeNode(sc, n, nil)
	}
}

// failureReason returns the reason of a failed step by its last failed unit.
func (st *Step) failureReason() string {
	if st.TimedOut {
		return ReasonTaskTimeout
	}
	return ReasonTaskError
}

// endCond handles the result of a condition handler: true means skip.
func (d dagDecider) endCond(st *Step, answer json.RawMessage) {
	sc, n := st.scope, st.Node
	switch {
	case expr.KindOf(answer) != expr.KindBool:
		d.failNode(sc, n, ReasonCondition, "a condition's handler must return true (skip) or "+
			"false, it returned "+describeValue(sc.openValue(answer)))
	case string(answer) != "true":
		d.completeNode(sc, n, nil)
	case n.Dag.Mode == SkipFail:
		d.failNode(sc, n, ReasonSkipped, textUnmet)
	default:
		d.skipNode(sc, n, SkipPropagate, ReasonUnmet, "")
	}
}
