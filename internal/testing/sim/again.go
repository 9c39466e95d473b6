package sim

import (
	"regexp"

	"github.com/troupe-engine/troupe/flow"
)

// rerunWatcher checks that a retried task does not repeat completed work: a completed unit may
// start again only if something that its node depends on ran again.
type rerunWatcher struct {
	plan    *flow.Plan
	retried bool
	done    map[unitKey]bool // completed before the last retry
	fresh   map[unitKey]bool // completed since the last retry
	ran     map[string]bool
	twice   map[unitKey]bool // units in done that started again since the retry
}

// unitKey identifies a unit, independent of the visit. The root is the node of the root scope to
// which it belongs.
type unitKey struct {
	root, scope, node string
	unit              int
}

func newAgain(plan *flow.Plan) *rerunWatcher {
	return &rerunWatcher{plan: plan, done: map[unitKey]bool{}, fresh: map[unitKey]bool{}, ran: map[string]bool{}, twice: map[unitKey]bool{}}
}

var visitMark = regexp.MustCompile(`#\d+`)

func pieceOf(a flow.Address) unitKey {
	p := unitKey{root: a.Node, scope: visitMark.ReplaceAllString(a.Scope, ""), node: a.Node, unit: a.Unit}
	for at, inside := flow.ParentOf(a.Scope); inside; at, inside = flow.ParentOf(at.Scope) {
		p.root = at.Node
	}
	return p
}

func (r *rerunWatcher) noteEvent(e *flow.Event) {
	if e.Scope != "" && e.Scope[0] == '~' { // scope of compensations and the finally node
		return
	}
	switch {
	case e.Type == flow.TaskRetried:
		for p := range r.fresh {
			r.done[p] = true
		}
		r.retried = true
	case e.Type == flow.StepEntered && e.Scope == "" && r.retried:
		r.ran[e.Node] = true
	case e.Type == flow.StepEnded && e.Scope == "":
		r.ran[e.Node] = r.ran[e.Node] || r.retried
		// the handler's answer was invalid
		if e.Status == string(flow.StepFailed) && r.isSingle(e.Node) {
			delete(r.fresh, pieceOf(e.Address()))
		}
	case e.Type == flow.AttemptEnded && e.Status == string(flow.AttemptOK):
		r.fresh[pieceOf(e.Address())] = true
	case e.Type == flow.AttemptsDispatched:
		for i := range e.Total {
			a := e.Address()
			a.Unit += i
			if p := pieceOf(a); r.done[p] {
				r.twice[p] = true
			}
		}
	}
}

// inVain returns a unit that was repeated for no reason.
func (r *rerunWatcher) inVain() (unitKey, bool) {
	g := r.plan.Root
	for p := range r.twice {
		if n := g.Nodes[p.root]; g.Mode() == flow.ModeDag && !isUndoable(g, p.root) && !r.hasRerun(g, n) {
			return p, true
		}
	}
	return unitKey{}, false
}

// isUndoable reports whether a node may have been undone, alone or together with the branch that
// contains it.
func isUndoable(g *flow.PlanScope, node string) bool {
	for i, char := range node + "/" {
		if char != '/' {
			continue
		}
		if n := g.Nodes[node[:i]]; n != nil && n.Undo != "" {
			return true
		}
	}
	return false
}

func (r *rerunWatcher) isSingle(node string) bool {
	n := r.plan.Root.Nodes[node]
	return n != nil && n.Single
}

// hasRerun reports whether a dependency of a node, direct or indirect, ran again.
func (r *rerunWatcher) hasRerun(g *flow.PlanScope, n *flow.PlanNode) bool {
	for _, i := range n.Dag.Deps {
		if dep := g.Dag.List[i]; r.ran[dep.Key] || r.hasRerun(g, dep) {
			return true
		}
	}
	return false
}
