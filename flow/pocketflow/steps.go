package pocketflow

import (
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// visit is the runs of one visit of a node, and what came after it.
type visit struct {
	node *flow.PlanNode
	runs []Run
	next string // the node
	last bool   // nothing is told after it
}

// steps tells the runs, a visit of a node after the other.
func (b *teller) steps(runs []Run) error {
	for i := 0; i < len(runs); {
		r := &runs[i]
		if r.Status == "canceled" && r.Attempt == 0 && i == len(runs)-1 {
			return nil // the end of the task tells it
		}
		node := b.plan.Root.Nodes[r.Node]
		if node == nil {
			return untoldf("one is of the node %q, which its version does not have", r.Node)
		}
		if at := b.said.State.Root.Cursor; at != r.Node {
			return untoldf("one is of the node %q, where the task was not: it was at %q", r.Node, at)
		}
		v := visit{node: node, runs: runs[i : i+length(node, runs[i:])]}
		i += len(v.runs)
		v.last = i == len(runs)
		v.next = b.task.Node
		if !v.last {
			v.next = runs[i].Node
		}
		if v.last && b.unfinished() && b.goesOn(&v) {
			return nil
		}
		if err := b.tellVisit(&v); err != nil {
			return err
		}
	}
	return nil
}

func (b *teller) unfinished() bool {
	switch b.task.Status {
	case "pending", "running", "waiting_queue":
		return true
	}
	return false
}

// length is how many runs in a row are of one visit.
func length(n *flow.PlanNode, runs []Run) int {
	switch n.Kind {
	case flow.KindExecutor:
		return whole(runs, func(i int) bool { return runs[i].Attempt == runs[i-1].Attempt+1 && runs[i-1].Status == "error" })
	case flow.KindParallel, flow.KindForeach:
		i := 0
		for i < len(runs) && runs[i].Node == n.Key && runs[i].Sub != "" {
			i++
		}
		if i < len(runs) && runs[i].Node == n.Key && runs[i].Attempt > 0 {
			i++ // that of all together
		}
		return max(i, 1)
	case flow.KindSubflow:
		return whole(runs, func(i int) bool { return n.Sub != nil && follows(n, &runs[i-1], &runs[i]) })
	}
	return 1
}

// whole counts how many runs are of the first one's node and belong together.
func whole(runs []Run, belongs func(i int) bool) int {
	i := 1
	for i < len(runs) && runs[i].Node == runs[0].Node && runs[i].Attempt > 0 && belongs(i) {
		i++
	}
	return i
}

// follows says whether a run of a subflow's child comes after another one in the same visit.
func follows(n *flow.PlanNode, a, b *Run) bool {
	if a.Status != "ok" {
		return n.Strategy == flow.StrategyRetry && a.Branch == b.Branch
	}
	return nextChild(n, a) == b.Branch
}

// nextChild is where a child that has succeeded leads; "" = the end.
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

// goesOn says whether the last visit is not over. What it has done is then done again, but for the tries of an executor.
func (b *teller) goesOn(v *visit) bool {
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
			b.attempts(b.enter(v.node.Key, value(v.runs[0].Input), 1, ms(v.runs[0].StartedAt)), v.runs, true)
			return true
		}
		b.skips(v, "the run of the node %s that was under way: its job is given again", v.node.Key)
	case flow.KindParallel, flow.KindForeach:
		if r.Sub == "" {
			return false
		}
		b.skips(v, "%d runs of the node %s, which was not over: it begins again", len(v.runs), v.node.Key)
	case flow.KindSubflow:
		if v.node.Sub == nil || r.Status == "ok" && nextChild(v.node, r) == "" {
			return false
		}
		b.skips(v, "%d runs of the subflow %s, which was not over: it begins again", len(v.runs), v.node.Key)
	default:
		return false
	}
	return true
}

// skips leaves the runs of a visit out.
func (b *teller) skips(v *visit, format string, args ...any) {
	b.lacks(format, args...)
	b.said.Untold += len(v.runs)
}

func (b *teller) tellVisit(v *visit) error {
	switch v.node.Kind {
	case flow.KindExecutor:
		return b.executor(v)
	case flow.KindParallel, flow.KindForeach:
		return b.units(v)
	case flow.KindSubflow:
		return b.subflow(v)
	}
	r := &v.runs[0]
	step := b.enter(v.node.Key, value(r.Input), 0, ms(r.StartedAt))
	step.Output, step.Post = value(r.Output), r.Status == "ok" && (v.node.Kind == flow.KindChoice || v.node.Kind == flow.KindTimer || value(r.Output) != nil)
	b.end(v, step, r, r.Action)
	return nil
}

// enter begins a visit of a node of the root. Its answer is the step, for events about it.
func (b *teller) enter(node string, input json.RawMessage, units int, at int64) flow.Event {
	return b.enterIn(b.said.State.Root, node, input, units, at)
}

func (b *teller) enterIn(sc *flow.Scope, node string, input json.RawMessage, units int, at int64) flow.Event {
	step := flow.Event{Scope: sc.Path, Node: node, Visit: sc.Visits[node] + 1}
	e := step
	e.Type, e.Input, e.Total = flow.StepEntered, input, units
	b.emit(e, at)
	return step
}

// end ends a visit of a node of the root as a run says.
func (b *teller) end(v *visit, step flow.Event, r *Run, action string) {
	step.Type, step.Status, step.Next, step.Action = flow.StepEnded, string(flow.StepCompleted), v.next, action
	if r.Status != "ok" {
		step.Status, step.Error = string(flow.StepFailed), r.Error
		if r.Error == "" {
			step.Error = "failed"
		}
		if v.next != "" {
			step.Reason = flow.ReasonFollowed
		}
	}
	if v.last {
		step.Action = b.task.Action
		b.amend(b.amends)
	}
	b.emit(step, ended(r))
}

// ended is when a run ended.
func ended(r *Run) int64 { return ms(max(r.StartedAt, r.FinishedAt)) }

func (b *teller) executor(v *visit) error {
	r := &v.runs[len(v.runs)-1]
	if r.Status != "ok" && r.Status != "error" {
		return untoldf("one of the node %s is %q, and the task has gone on", r.Node, r.Status)
	}
	step := b.enter(v.node.Key, value(v.runs[0].Input), 1, ms(v.runs[0].StartedAt))
	b.attempts(step, v.runs, false)
	step.Post = r.Status == "ok"
	b.end(v, step, r, actionOf(v.node, r))
	return nil
}

// attempts tells the tries of a step's only unit. More says that there will be another one.
func (b *teller) attempts(step flow.Event, runs []Run, more bool) {
	for i := range runs {
		again := int64(0)
		switch {
		case i+1 < len(runs):
			again = max(ms(runs[i+1].StartedAt), 1)
		case more:
			again = max(ended(&runs[i]), 1)
		}
		b.attempt(step, 0, i+1, &runs[i], again)
	}
}

// attempt tells one try; again is when the next one is.
func (b *teller) attempt(step flow.Event, unit, number int, r *Run, again int64) {
	step.Unit, step.Attempt = unit, number
	begun := step
	begun.Type, begun.Total = flow.AttemptsStarted, 1
	b.emit(begun, ms(r.StartedAt))
	step.Type, step.Worker, step.URL = flow.AttemptEnded, r.Worker, r.URL
	if step.Status = string(flow.AttemptOK); r.Status == "ok" {
		step.Output = value(r.Output)
	} else {
		step.Status, step.Error, step.Due = string(flow.AttemptError), r.Error, again
	}
	b.emit(step, ended(r))
}

// actionOf is what an executor's run does not tell.
func actionOf(n *flow.PlanNode, r *Run) string {
	switch {
	case r.Status != "ok":
		return ""
	case n.Post.ActionStatic != "" || n.Post.ActionKey == "":
		return n.Post.ActionStatic
	case expr.KindOf(value(r.Output)) != expr.KindObject:
		return ""
	}
	field, _ := expr.Field(value(r.Output), n.Post.ActionKey)
	text, _ := expr.String(field)
	return text
}

// units tells the branches of a parallel, or the items of a foreach.
func (b *teller) units(v *visit) error {
	parts, sum := v.runs, &v.runs[len(v.runs)-1]
	if sum.Sub == "" {
		parts = parts[:len(parts)-1]
	} else { // one that failed at once has no run for all together
		sum = &Run{Node: sum.Node, Status: "error", Error: string(v.node.Kind) + " error", StartedAt: sum.StartedAt, FinishedAt: sum.FinishedAt}
	}
	results, _ := expr.Elements(value(sum.Output))
	input := value(v.runs[0].Input)
	if v.node.Kind == flow.KindForeach {
		input = items(parts, max(len(results), len(parts)))
	}
	total := max(len(results), len(parts))
	if v.node.Kind == flow.KindParallel {
		total = max(total, len(v.node.Each.Branches))
	}
	step := b.enter(v.node.Key, input, total, ms(v.runs[0].StartedAt))
	if err := b.eachUnit(v, step, parts, total); err != nil {
		return err
	}
	step.Post = len(parts) > 0
	b.end(v, step, sum, v.node.Post.ActionStatic)
	return nil
}

// items are the inputs of the items of a foreach, in their order.
func items(parts []Run, n int) json.RawMessage {
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = null
	}
	for i := range parts {
		if k, err := strconv.Atoi(parts[i].Branch); err == nil && k >= 0 && k < n {
			if v := value(parts[i].Input); v != nil {
				list[k] = v
			}
		}
	}
	text, _ := json.Marshal(list) // of valid values
	return text
}

// eachUnit tells the runs of units. Branches of one name had one run together, or the result of one of them.
func (b *teller) eachUnit(v *visit, step flow.Event, parts []Run, total int) error {
	st := b.said.State.Root.Step
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
			return untoldf("one of the node %s is of the branch %q, which it does not have", v.node.Key, parts[i].Branch)
		}
		done[at] = true
		b.attempt(step, at, 1, &parts[i], 0)
	}
	for i := range parts {
		for at := unit(parts[i].Branch); at >= 0; at = unit(parts[i].Branch) {
			done[at] = true
			b.attempt(step, at, 1, &parts[i], 0)
		}
	}
	return nil
}

// subflow tells the children of a visit, and then its end, which has no run.
func (b *teller) subflow(v *visit) error {
	first, last := &v.runs[0], v.runs[len(v.runs)-1]
	step := b.enter(v.node.Key, nil, 0, ms(first.StartedAt))
	inside := b.said.State.Root.Step.Child
	if (inside == nil) != (first.Sub == "") {
		return untoldf("those of the subflow %s do not fit its definition", v.node.Key)
	}
	if inside != nil {
		for i := range v.runs {
			if err := b.child(v, inside, i); err != nil {
				return err
			}
		}
	}
	step.Post = inside != nil
	action := v.node.Post.ActionStatic
	if last.Status != "ok" && v.node.Strategy == flow.Continue {
		last.Status, last.Error = "ok", ""
	}
	b.end(v, step, &last, action)
	return nil
}

func (b *teller) child(v *visit, inside *flow.Scope, i int) error {
	r := &v.runs[i]
	n := inside.Plan.Nodes[r.Branch]
	if n == nil || n.Kind != flow.KindExecutor || inside.Cursor != r.Branch || r.Status != "ok" && r.Status != "error" {
		return untoldf("one of the subflow %s is of the child %q (%s), where it was not", v.node.Key, r.Branch, r.Status)
	}
	step := b.enterIn(inside, n.Key, value(r.Input), 1, ms(r.StartedAt))
	b.attempt(step, 0, 1, r, 0)
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
	b.emit(step, ended(r))
	return nil
}
