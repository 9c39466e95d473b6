package sim

import (
	"regexp"

	"github.com/troupe-engine/troupe/flow"
)

// again watches that a retried task does not do again what was done: a unit that completed before is only
// started once more if something that its node depends on ran anew.
type again struct {
	plan    *flow.Plan
	retried bool
	done    map[piece]bool // completed before the last retry
	fresh   map[piece]bool // completed since
	ran     map[string]bool
	twice   map[piece]bool // of done: started since the retry
}

// piece is a unit, whatever the visit. Node names the one at the root that it is a part of.
type piece struct {
	root, scope, node string
	unit              int
}

func newAgain(plan *flow.Plan) *again {
	return &again{plan: plan, done: map[piece]bool{}, fresh: map[piece]bool{}, ran: map[string]bool{}, twice: map[piece]bool{}}
}

var visitMark = regexp.MustCompile(`#\d+`)

func pieceOf(a flow.Address) piece {
	p := piece{root: a.Node, scope: visitMark.ReplaceAllString(a.Scope, ""), node: a.Node, unit: a.Unit}
	for at, inside := flow.ParentOf(a.Scope); inside; at, inside = flow.ParentOf(at.Scope) {
		p.root = at.Node
	}
	return p
}

func (r *again) event(e *flow.Event) {
	if e.Scope != "" && e.Scope[0] == '~' { // where the task closes
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
		if e.Status == string(flow.StepFailed) && r.single(e.Node) { // its handler answered, and not what it should
			delete(r.fresh, pieceOf(e.Address()))
		}
	case e.Type == flow.AttemptEnded && e.Status == string(flow.AttemptOK):
		r.fresh[pieceOf(e.Address())] = true
	case e.Type == flow.AttemptsStarted:
		for i := range e.Total {
			a := e.Address()
			a.Unit += i
			if p := pieceOf(a); r.done[p] {
				r.twice[p] = true
			}
		}
	}
}

// inVain is a unit that was done twice for no reason.
func (r *again) inVain() (piece, bool) {
	g := r.plan.Root
	for p := range r.twice {
		if n := g.Nodes[p.root]; g.Mode() == flow.ModeDag && !isUndoable(g, p.root) && !r.renewed(g, n) {
			return p, true
		}
	}
	return piece{}, false
}

// isUndoable reports whether a node may have been undone, by itself or with the branch that it is laid out in.
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

func (r *again) single(node string) bool {
	n := r.plan.Root.Nodes[node]
	return n != nil && n.Single
}

// renewed says whether something ran again that a node depends on.
func (r *again) renewed(g *flow.PlanScope, n *flow.PlanNode) bool {
	for _, i := range n.Dag.Deps {
		if dep := g.Dag.List[i]; r.ran[dep.Key] || r.renewed(g, dep) {
			return true
		}
	}
	return false
}
