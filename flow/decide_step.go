package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// enterCursor begins a visit of the node at the cursor of a scope.
func (d stepDecider) enterCursor(sc *Scope) {
	n := sc.Plan.Nodes[sc.Cursor]
	if d.s.Steps >= d.limits.Steps && !sc.Plan.Code {
		d.taskPart().endTask(TaskFailed, fmt.Sprintf("limit: the task has run %d steps, which is the most "+
			"a task may have; look for an endless loop around node %s", d.s.Steps, n.Key))
		return
	}
	if sc.Idle >= maxIdleSteps && !sc.Plan.Pocketflow {
		d.taskPart().endTask(TaskFailed, fmt.Sprintf("limit: %d steps in a row had no work and no time to "+
			"wait for, which is an endless loop around node %s; put a timer, an approval, a "+
			"wait_event or work into it", maxIdleSteps, n.Key))
		return
	}
	d.enterNext(sc, n)
}

// maxIdleSteps is the maximum number of consecutive steps of a graph without work, a wait or a
// delay. Nothing that their decisions depend on can change in between.
const maxIdleSteps = 10_000

// isIdle reports whether a step ended at once, without work and without a wait.
func (st *Step) isIdle() bool {
	switch st.Node.Kind {
	case KindWaitEvent, KindApproval:
		return false
	case KindTimer:
		return st.Due <= st.EnteredAt
	case KindSubflow:
		return st.Child == nil || st.Child.Plan.Dag == nil && !st.Child.Worked
	}
	return len(st.Units) == 0
}

// enterNext begins a visit of a node in graph mode.
func (d stepDecider) enterNext(sc *Scope, n *PlanNode) {
	params := sc.mode.stepParams(sc, n)
	e := Event{Type: StepEntered, Scope: sc.Path, Node: n.Key, Visit: sc.Visits[n.Key] + 1}
	e.Input, e.InputRef = sc.buildInput(n, params)
	own, err := sc.withControls(n, params, sc.enteredInput(n, &e, params))
	total := 0
	if err == nil {
		e.Due = d.dueOf(n, own)
		total, err = d.unitsOf(sc, n, own, &e)
	}
	if lost := d.orContentError(nil); lost != nil {
		e.Input, e.InputRef, err = nil, "", lost
	}
	if tooLarge := cmp.Or(d.limits.checkValue("the input", e.Input), d.limits.checkRef(sc, e.InputRef)); tooLarge != nil {
		e.Input, e.InputRef, err = nil, "", tooLarge
	}
	e.Total = total
	d.referInput(sc, &e, params)
	e.Kept, e.Since = sc.reusableResults(n, &e), sc.continuedVisit(n, &e)
	d.emitEvent(e)
	st := sc.Step
	if err != nil {
		d.finishStep(st, stepOutcome{failed: err.Error()})
		return
	}
	if e.Due > d.env.Now {
		d.effects = append(d.effects, Alarm{At: e.Due, Address: st.Address(), Kind: AlarmStep})
	}
	d.beginStep(st)
}

// enteredInput returns the input of a step that is about to be entered, if its control params may
// refer to it.
func (sc *Scope) enteredInput(n *PlanNode, e *Event, params json.RawMessage) json.RawMessage {
	if e.InputRef == "" || len(n.Controls()) == 0 {
		return e.Input
	}
	return sc.resolveText(e.InputRef, params)
}

// dueOf returns when the time of a step ends: the end of a timer, or the timeout of a wait or
// subflow. It returns 0 if there is no limit.
func (d stepDecider) dueOf(n *PlanNode, params json.RawMessage) int64 {
	var ms int64
	switch n.Kind {
	case KindTimer:
		return d.timeAfter(paramMS(params, paramDelay))
	case KindWaitEvent:
		if n.Strategy == StrategyRetry {
			// the clock of this wait restarts each time, so the timeout has no visible effect
			return 0
		}
		ms = paramMS(params, paramTimeout)
		if ms <= 0 {
			ms = n.TimeoutMS
		}
	case KindApproval, KindSubflow:
		ms = n.TimeoutMS
	}
	if ms <= 0 {
		return 0
	}
	return d.timeAfter(ms)
}

func paramMS(params json.RawMessage, key string) int64 {
	raw, _ := expr.Field(params, key)
	f, ok := expr.Number(raw)
	if !ok || !(f > 0) {
		return 0
	}
	return int64(min(math.Ceil(f), MaxDelay)) // half a millisecond must not become 0
}

// unitsOf returns the number of units that a step begins with.
func (d stepDecider) unitsOf(sc *Scope, n *PlanNode, params json.RawMessage, e *Event) (int, error) {
	total := 0
	switch n.Kind {
	case KindExecutor:
		return 1, nil
	case KindParallel:
		names, _ := n.parallelBranches(params, sc)
		if total = len(names); total == 0 {
			return 0, Errorf(Invalid, "no services")
		}
		for _, name := range names {
			if err := CheckName("the service", name); err != nil {
				return 0, err
			}
		}
	case KindForeach:
		input := e.Input
		if e.InputRef != "" {
			input = sc.resolveText(e.InputRef, params)
		}
		input = sc.openValue(input)
		items, isList := expr.Elements(input)
		if !isList && !sc.Plan.Pocketflow {
			return 0, Errorf(Invalid, "the items of %s, from %s, must be a list, are %s", n.Key,
				n.Prep.inputSource(), describeValue(orNull(input)))
		}
		total = len(items)
	}
	if total > d.limits.Units {
		return 0, Errorf(Limit, "limit: %d units, more than the %d a step may have", total, d.limits.Units)
	}
	return total, nil
}

// beginStep does the first work of a step.
func (d stepDecider) beginStep(st *Step) {
	switch st.Node.Kind {
	case KindChoice:
		a := expr.NewAllowance()
		action, err := st.chooseAction(a)
		d.effort += a.Spent()
		if err = d.orContentError(err); err != nil {
			d.finishStep(st, stepOutcome{failed: err.Error(), reason: ReasonCondition})
			return
		}
		d.finishStep(st, stepOutcome{posts: true, action: action})
	case KindForeach:
		if len(st.Units) == 0 {
			d.finishStep(st, stepOutcome{posts: !st.scope.Plan.Pocketflow, action: st.Node.Post.ActionStatic})
			return
		}
		d.queueStep(st)
	case KindSubflow:
		d.beginSubflow(st)
	case KindTimer:
		if st.Due <= d.env.Now {
			d.handleStepDue(st)
		}
	case KindWaitEvent, KindApproval:
		d.wakeStep(st)
	default:
		d.queueStep(st)
	}
}

// beginSubflow begins the scope inside a step. A subflow without a start node ends at once.
func (d stepDecider) beginSubflow(st *Step) {
	switch {
	case st.Child == nil:
		d.finishStep(st, stepOutcome{action: st.Node.Post.ActionStatic})
	case st.Child.depth > d.limits.Depth:
		d.finishStep(st, stepOutcome{failed: fmt.Sprintf("limit: subflows are nested deeper than %d", d.limits.Depth)})
	default:
		if in := st.Node.Sub.Inputs; in != nil {
			if err := d.checkInputs(in, st.declaredInputs()); err != nil {
				d.finishStep(st, stepOutcome{failed: err.Error()})
				return
			}
		}
		d.queueScope(st.Child)
	}
}

// checkInputs checks the input of a nested flow against its declaration, if it has one.
func (d stepDecider) checkInputs(in *types.Inputs, v json.RawMessage) error {
	problems, err := d.findProblems(in, v)
	if err == nil && len(problems) > 0 {
		return fmt.Errorf("the flow inside takes something else: %w", problems)
	}
	return err
}

// findProblems returns the problems of an input, if there is a declaration of inputs.
func (d stepDecider) findProblems(in *types.Inputs, v json.RawMessage) (types.Problems, error) {
	if in == nil {
		return nil, nil
	}
	d.effort += len(v)
	_, problems := in.Check(d.s.Root.expandValue(v))
	return problems, d.orContentError(nil)
}

// wakeStep ends a waiting step if its value is present.
func (d stepDecider) wakeStep(st *Step) {
	if d.s.activeStep(st.Address()) != st || d.s.Status.Ended() || d.s.isDraining() {
		return
	}
	param := st.awaitedParam()
	value, ok := d.s.awaitedValue(st, param)
	said := st.scope.openValue(value)
	switch err := d.orContentError(nil); {
	case err != nil:
		d.finishStep(st, stepOutcome{failed: err.Error()})
	case !ok:
		d.finishStep(st, stepOutcome{failed: fmt.Sprintf(
			"params.%s is missing: say which reference to wait for, such as $shared.done", param)})
	case !st.acceptsValue(said):
	case st.Node.Kind == KindWaitEvent:
		d.finishStep(st, stepOutcome{posts: true, output: value, action: st.Node.Post.resultAction(fieldOf("signal", said))})
	default:
		action := st.approvalAction(said)
		d.approvals.answered, d.approvals.action = st, action
		d.finishStep(st, stepOutcome{posts: true, output: value, action: action})
	}
}

// isPresent reports whether a value counts as a signal.
func isPresent(v json.RawMessage) bool {
	switch expr.KindOf(v) {
	case expr.KindNull:
		return false
	case expr.KindBool:
		return string(v) == "true"
	case expr.KindString:
		text, _ := expr.String(v)
		return text != ""
	}
	return true
}

// isDecision reports whether a value decides an approval. Unlike for a signal, false and 0 count.
func isDecision(v json.RawMessage) bool {
	return expr.KindOf(v) == expr.KindBool || expr.KindOf(v) == expr.KindNumber || isPresent(v)
}

// handleStepDue ends a step when its timer or its time limit has expired.
func (d stepDecider) handleStepDue(st *Step) {
	switch st.Node.Kind {
	case KindTimer:
		d.finishStep(st, stepOutcome{posts: true, action: st.Node.Post.ActionStatic})
	case KindWaitEvent:
		d.waitTimedOut(st)
	case KindSubflow:
		d.attemptPart().withdrawStep(st)
		d.endSubflow(st, st.timeoutText())
	case KindExecutor: // a call of a function
		d.attemptPart().withdrawStep(st)
		d.finishStep(st, stepOutcome{failed: waitIsOver})
	default:
		d.finishStep(st, stepOutcome{failed: st.timeoutText()})
	}
}

func (st *Step) timeoutText() string {
	return fmt.Sprintf("timeout: not done within %d ms", st.Node.TimeoutMS)
}

// waitTimedOut ends a wait_event that got no signal: as failed, unless its strategy is to continue.
func (d stepDecider) waitTimedOut(st *Step) {
	how := stepOutcome{action: st.Node.Post.ActionStatic}
	if st.Node.Strategy != Continue {
		how.failed = "timeout"
	}
	d.finishStep(st, how)
}

// stepOutcome describes how a step ends.
type stepOutcome struct {
	failed string // error text; "" if the step completed
	action string
	reason string          // reason of the failure, recorded in dag mode
	posts  bool            // write the output to the keys of post
	output json.RawMessage // set only if the output cannot be recomputed
}

// finishStep ends a step. The step fails if its result is too large.
func (d stepDecider) finishStep(st *Step, how stepOutcome) {
	if err := d.checkOutcome(st, how); err != nil {
		how = stepOutcome{failed: cmp.Or(how.failed, err.Error()), reason: how.reason}
	}
	switch m := st.scope.mode.(type) {
	case graphMode:
		m.finishStep(d.decider, st, how)
	case dagMode:
		m.finishStep(d.decider, st, how)
	case codeMode:
		m.finishStep(d.decider, st, how)
	case closingMode:
		m.finishStep(d.decider, st, how)
	}
}

// scopeEnded ends the task or the subflow step to which the scope belongs.
func (d stepDecider) scopeEnded(sc *Scope) {
	if sc.parent == nil {
		switch {
		case d.s.isCanceling():
			d.taskPart().endCanceledTask()
		case sc.Failed != "":
			d.taskPart().endTask(TaskFailed, sc.Failed)
		default:
			d.taskPart().endTask(TaskCompleted, "")
		}
		return
	}
	d.endSubflow(sc.parent, sc.Failed)
}

// endSubflow ends a subflow step, with an error if the subflow failed. The result is the final
// content of the subflow's shared.
func (d stepDecider) endSubflow(st *Step, failed string) {
	how := stepOutcome{posts: true, action: st.Node.Post.ActionStatic}
	if st.Node.Post.ActionKey != "" {
		how.action = st.resultAction(st.Child.Output())
	}
	if st.Node.Strategy != Continue {
		how.failed = failed
	}
	d.finishStep(st, how)
}

// endSingle ends a step whose only unit has ended.
func (d stepDecider) endSingle(st *Step) {
	switch m := st.scope.mode.(type) {
	case graphMode:
		m.endSingle(d.decider, st)
	case dagMode:
		m.endSingle(d.decider, st)
	case codeMode:
		m.endSingle(d.decider, st)
	case closingMode:
		m.endSingle(d.decider, st)
	}
}

// endEach ends a step of many units; with fail_fast the others are withdrawn.
func (d stepDecider) endEach(st *Step) {
	d.attemptPart().withdrawStep(st)
	how := stepOutcome{posts: true, action: st.Node.Post.ActionStatic}
	if st.Failures > 0 && st.Node.Strategy != Continue {
		how.reason = st.failureReason()
		how.failed = fmt.Sprintf("%s error: %s", st.Node.Kind, st.errorsJSON())
	}
	d.finishStep(st, how)
}

// failStep ends a step that cannot be carried out.
func (d stepDecider) failStep(c FailStep) {
	st := d.s.activeStep(c.Address)
	if st == nil || d.s.Status.Ended() {
		return
	}
	d.attemptPart().withdrawStep(st)
	d.finishStep(st, stepOutcome{failed: "internal: " + truncateText(c.Error, maxErrorText)})
}

// errorsJSON returns the errors of the failed units as an object {"<name of the unit>":"<error>"}.
func (st *Step) errorsJSON() string {
	b := []byte{'{'}
	for i := range st.Units {
		u := &st.Units[i]
		if u.Status != UnitFailed {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(expr.AppendQuote(b, st.UnitName(i)), ':')
		b = expr.AppendQuote(b, u.Error.Text)
		if len(b) > maxErrorText {
			b = append(b, `,"…":"more errors"`...)
			break
		}
	}
	return string(append(b, '}'))
}
