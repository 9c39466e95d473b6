package pocketflow

import (
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// nodeVisit holds the runs of one visit of a node, and the node that followed.
type nodeVisit struct {
	node   *flow.PlanNode
	runs   []Run
	next   string // next node
	isLast bool   // no visit follows
}

// emitVisits converts the runs, one visit of a node after another.
func (b *historyBuilder) emitVisits(runs []Run) error {
	for i := 0; i < len(runs); {
		r := &runs[i]
		if r.Status == "canceled" && r.Attempt == 0 && i == len(runs)-1 {
			return nil // covered by the end of the task
		}
		node := b.plan.Root.Nodes[r.Node]
		if node == nil {
			return runsErrorf("one is of the node %q, which its version does not have", r.Node)
		}
		if at := b.history.State.Root.Cursor; at != r.Node {
			return runsErrorf("one is of the node %q, where the task was not: it was at %q", r.Node, at)
		}
		v := nodeVisit{node: node, runs: runs[i : i+visitLength(node, runs[i:])]}
		i += len(v.runs)
		v.isLast = i == len(runs)
		v.next = b.task.Node
		if !v.isLast {
			v.next = runs[i].Node
		}
		if v.isLast && b.isUnfinished() && b.isOngoing(&v) {
			return nil
		}
		if err := b.emitVisit(&v); err != nil {
			return err
		}
	}
	return nil
}

func (b *historyBuilder) isUnfinished() bool {
	switch b.task.Status {
	case "pending", "running", "waiting_queue":
		return true
	}
	return false
}

// visitLength returns the number of consecutive runs that belong to one visit.
func visitLength(n *flow.PlanNode, runs []Run) int {
	switch n.Kind {
	case flow.KindExecutor:
		return countRuns(runs, func(i int) bool { return runs[i].Attempt == runs[i-1].Attempt+1 && runs[i-1].Status == "error" })
	case flow.KindParallel, flow.KindForeach:
		i := 0
		for i < len(runs) && runs[i].Node == n.Key && runs[i].Sub != "" {
			i++
		}
		if i < len(runs) && runs[i].Node == n.Key && runs[i].Attempt > 0 {
			i++ // run for all units together
		}
		return max(i, 1)
	case flow.KindSubflow:
		return countRuns(runs, func(i int) bool { return n.Sub != nil && isNextRun(n, &runs[i-1], &runs[i]) })
	}
	return 1
}

// countRuns counts the runs that belong to the node and visit of the first run.
func countRuns(runs []Run, belongs func(i int) bool) int {
	i := 1
	for i < len(runs) && runs[i].Node == runs[0].Node && runs[i].Attempt > 0 && belongs(i) {
		i++
	}
	return i
}

// isNextRun reports whether run b of a subflow's child follows run a in the same visit.
func isNextRun(n *flow.PlanNode, a, b *Run) bool {
	if a.Status != "ok" {
		return n.Strategy == flow.StrategyRetry && a.Branch == b.Branch
	}
	return nextChild(n, a) == b.Branch
}

// nextChild returns the node after a child that has succeeded, or "" at the end.
func nextChild(n *flow.PlanNode, r *Run) string {
	child := n.Sub.Nodes[r.Branch]
	if child == nil {
		return ""
	}
	if next, ok := child.Edges[r.Action]; ok {
		return next
	}
	return child.Edges["default"]
}

// isOngoing reports whether the last visit is unfinished. The work of an unfinished visit is
// repeated, except the attempts of an executor.
func (b *historyBuilder) isOngoing(v *nodeVisit) bool {
	r := &v.runs[len(v.runs)-1]
	if v.node.Key != b.task.Node {
		return false
	}
	switch v.node.Kind {
	case flow.KindExecutor:
		if r.Status == "ok" || r.Status == "error" && (v.node.Exec.Type == flow.ExecQueue || r.Attempt > v.node.Retry.Max) {
			return false
		}
		if r.Status == "error" {
			b.emitAttempts(b.enterStep(v.node.Key, parseValue(v.runs[0].Input), 1, toMillis(v.runs[0].StartedAt)), v.runs, true)
			return true
		}
		b.skipVisit(v, "the run of the node %s that was under way: its job is given again", v.node.Key)
	case flow.KindParallel, flow.KindForeach:
		if r.Sub == "" {
			return false
		}
		b.skipVisit(v, "%d runs of the node %s, which was not over: it begins again", len(v.runs), v.node.Key)
	case flow.KindSubflow:
		if v.node.Sub == nil || r.Status == "ok" && nextChild(v.node, r) == "" {
			return false
		}
		b.skipVisit(v, "%d runs of the subflow %s, which was not over: it begins again", len(v.runs), v.node.Key)
	default:
		return false
	}
	return true
}

// skipVisit omits the runs of a visit.
func (b *historyBuilder) skipVisit(v *nodeVisit, format string, args ...any) {
	b.noteMissing(format, args...)
	b.history.Untold += len(v.runs)
}

func (b *historyBuilder) emitVisit(v *nodeVisit) error {
	switch v.node.Kind {
	case flow.KindExecutor:
		return b.emitExecutor(v)
	case flow.KindParallel, flow.KindForeach:
		return b.emitUnits(v)
	case flow.KindSubflow:
		return b.emitSubflow(v)
	}
	r := &v.runs[0]
	step := b.enterStep(v.node.Key, parseValue(r.Input), 0, toMillis(r.StartedAt))
	step.Output, step.Post = parseValue(r.Output),
		r.Status == "ok" && (v.node.Kind == flow.KindChoice || v.node.Kind == flow.KindTimer ||
			parseValue(r.Output) != nil)
	b.endStep(v, step, r, r.Action)
	return nil
}

// enterStep starts a visit of a node of the root. It returns the step, as a base for its events.
func (b *historyBuilder) enterStep(node string, input json.RawMessage, units int, at int64) flow.Event {
	return b.enterStepIn(b.history.State.Root, node, input, units, at)
}

func (b *historyBuilder) enterStepIn(sc *flow.Scope, node string, input json.RawMessage, units int, at int64) flow.Event {
	step := flow.Event{Scope: sc.Path, Node: node, Visit: sc.Visits[node] + 1}
	e := step
	e.Type, e.Input, e.Total = flow.StepEntered, input, units
	b.emitEvent(e, at)
	return step
}

// endStep ends a visit of a node of the root with the result of a run.
func (b *historyBuilder) endStep(v *nodeVisit, step flow.Event, r *Run, action string) {
	step.Type, step.Status, step.Next, step.Action = flow.StepEnded, string(flow.StepCompleted), v.next, action
	if r.Status != "ok" {
		step.Status, step.Error = string(flow.StepFailed), r.Error
		if r.Error == "" {
			step.Error = "failed"
		}
		if v.next != "" {
			step.Reason = flow.ReasonIgnored
		}
	}
	if v.isLast {
		step.Action = b.task.Action
		b.emitSharedChanges(b.finalChanges)
	}
	b.emitEvent(step, runEndedAt(r))
}

// runEndedAt returns when a run ended.
func runEndedAt(r *Run) int64 { return toMillis(max(r.StartedAt, r.FinishedAt)) }

func (b *historyBuilder) emitExecutor(v *nodeVisit) error {
	r := &v.runs[len(v.runs)-1]
	if r.Status != "ok" && r.Status != "error" {
		return runsErrorf("one of the node %s is %q, and the task has gone on", r.Node, r.Status)
	}
	step := b.enterStep(v.node.Key, parseValue(v.runs[0].Input), 1, toMillis(v.runs[0].StartedAt))
	b.emitAttempts(step, v.runs, false)
	step.Post = r.Status == "ok"
	b.endStep(v, step, r, actionOf(v.node, r))
	return nil
}

// emitAttempts converts the attempts of a step's only unit. more means that another attempt
// follows.
func (b *historyBuilder) emitAttempts(step flow.Event, runs []Run, more bool) {
	for i := range runs {
		again := int64(0)
		switch {
		case i+1 < len(runs):
			again = max(toMillis(runs[i+1].StartedAt), 1)
		case more:
			again = max(runEndedAt(&runs[i]), 1)
		}
		b.emitAttempt(step, 0, i+1, &runs[i], again)
	}
}

// emitAttempt converts one attempt. again is the time of the next attempt.
func (b *historyBuilder) emitAttempt(step flow.Event, unit, number int, r *Run, again int64) {
	step.Unit, step.Attempt = unit, number
	begun := step
	begun.Type, begun.Total = flow.AttemptsDispatched, 1
	b.emitEvent(begun, toMillis(r.StartedAt))
	step.Type, step.Worker, step.URL = flow.AttemptEnded, r.Worker, r.URL
	if step.Status = string(flow.AttemptOK); r.Status == "ok" {
		step.Output = parseValue(r.Output)
	} else {
		step.Status, step.Error, step.Due = string(flow.AttemptError), r.Error, again
	}
	b.emitEvent(step, runEndedAt(r))
}

// actionOf returns the action of an executor's run. The run itself does not contain the action.
func actionOf(n *flow.PlanNode, r *Run) string {
	switch {
	case r.Status != "ok":
		return ""
	case n.Post.ActionStatic != "" || n.Post.ActionKey == "":
		return n.Post.ActionStatic
	case expr.KindOf(parseValue(r.Output)) != expr.KindObject:
		return ""
	}
	field, _ := expr.Field(parseValue(r.Output), n.Post.ActionKey)
	text, _ := expr.String(field)
	return text
}

// emitUnits converts the branches of a parallel, or the items of a foreach.
func (b *historyBuilder) emitUnits(v *nodeVisit) error {
	parts, sum := v.runs, &v.runs[len(v.runs)-1]
	if sum.Sub == "" {
		parts = parts[:len(parts)-1]
	} else { // a step that failed at once has no run for all units together
		sum = &Run{Node: sum.Node, Status: "error", Error: string(v.node.Kind) + " error",
			StartedAt: sum.StartedAt, FinishedAt: sum.FinishedAt}
	}
	results, _ := expr.Elements(parseValue(sum.Output))
	input := parseValue(v.runs[0].Input)
	if v.node.Kind == flow.KindForeach {
		input = itemInputs(parts, max(len(results), len(parts)))
	}
	total := max(len(results), len(parts))
	if v.node.Kind == flow.KindParallel {
		total = max(total, len(v.node.Each.Branches))
	}
	step := b.enterStep(v.node.Key, input, total, toMillis(v.runs[0].StartedAt))
	if err := b.emitUnitRuns(v, step, parts, total); err != nil {
		return err
	}
	step.Post = len(parts) > 0
	b.endStep(v, step, sum, v.node.Post.ActionStatic)
	return nil
}

// itemInputs returns the inputs of the items of a foreach, in order.
func itemInputs(parts []Run, n int) json.RawMessage {
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = null
	}
	for i := range parts {
		if k, err := strconv.Atoi(parts[i].Branch); err == nil && k >= 0 && k < n {
			if v := parseValue(parts[i].Input); v != nil {
				list[k] = v
			}
		}
	}
	text, _ := json.Marshal(list) // the values are valid
	return text
}

// emitUnitRuns converts the runs of units. Branches of the same name share one run, or the result
// of one run.
func (b *historyBuilder) emitUnitRuns(v *nodeVisit, step flow.Event, parts []Run, total int) error {
	st := b.history.State.Root.Step
	done := make([]bool, total)
	unit := func(name string) int {
		for i := range done {
			if !done[i] && st.UnitName(i) == name {
				return i
			}
		}
		return -1
	}
	for i := range parts {
		at := unit(parts[i].Branch)
		if at < 0 {
			return runsErrorf("one of the node %s is of the branch %q, which it does not have", v.node.Key, parts[i].Branch)
		}
		done[at] = true
		b.emitAttempt(step, at, 1, &parts[i], 0)
	}
	for i := range parts {
		for at := unit(parts[i].Branch); at >= 0; at = unit(parts[i].Branch) {
			done[at] = true
			b.emitAttempt(step, at, 1, &parts[i], 0)
		}
	}
	return nil
}

// emitSubflow converts the children of a visit, and then the end of the visit, which has no run.
func (b *historyBuilder) emitSubflow(v *nodeVisit) error {
	first, last := &v.runs[0], v.runs[len(v.runs)-1]
	step := b.enterStep(v.node.Key, nil, 0, toMillis(first.StartedAt))
	inside := b.history.State.Root.Step.Child
	if (inside == nil) != (first.Sub == "") {
		return runsErrorf("those of the subflow %s do not fit its definition", v.node.Key)
	}
	if inside != nil {
		for i := range v.runs {
			if err := b.emitChild(v, inside, i); err != nil {
				return err
			}
		}
	}
	step.Post = inside != nil
	action := v.node.Post.ActionStatic
	if last.Status != "ok" && v.node.Strategy == flow.Continue {
		last.Status, last.Error = "ok", ""
	}
	b.endStep(v, step, &last, action)
	return nil
}

func (b *historyBuilder) emitChild(v *nodeVisit, inside *flow.Scope, i int) error {
	r := &v.runs[i]
	n := inside.Plan.Nodes[r.Branch]
	if n == nil || n.Kind != flow.KindExecutor || inside.Cursor != r.Branch || r.Status != "ok" && r.Status != "error" {
		return runsErrorf("one of the subflow %s is of the child %q (%s), where it was not", v.node.Key, r.Branch, r.Status)
	}
	step := b.enterStepIn(inside, n.Key, parseValue(r.Input), 1, toMillis(r.StartedAt))
	b.emitAttempt(step, 0, 1, r, 0)
	step.Type, step.Status, step.Action, step.Post = flow.StepEnded, string(flow.StepCompleted), r.Action, r.Status == "ok"
	if r.Status != "ok" {
		step.Status, step.Error = string(flow.StepFailed), r.Error
	}
	if i+1 < len(v.runs) {
		step.Next = v.runs[i+1].Branch
		if r.Status != "ok" {
			step.Attempt = inside.Retries + 1
		}
	}
	b.emitEvent(step, runEndedAt(r))
	return nil
}
