package flow

import "encoding/json"

// Mode says how a scope leads from node to node.
type Mode string

// The modes.
const (
	ModeGraph Mode = "graph" // by edges: one node after the other
	ModeDag   Mode = "dag"   // by dependencies: each node when those before it are over
)

// Mode of the scope.
func (p *PlanScope) Mode() Mode {
	if p.Dag != nil {
		return ModeDag
	}
	return ModeGraph
}

// mode is everything in which the scopes of a task differ. A scope has one of three: graphMode, dagMode, or, for the
// scope in which a task closes, closingMode, which is graphMode but for what leads from step to step. What is not
// here is the same in all of them.
type mode interface {
	// Deciding: what comes next. See decidingMode.
	redoes() bool // whether a retried task can do again what it has undone

	// Evolving: what an event means.
	begin(sc *Scope)                              // puts a new scope at its start
	given(sc *Scope, params, run json.RawMessage) // says what the scope sees of the world around it
	hold(sc *Scope, st *Step)                     // makes a step active
	ended(s *State, sc *Scope, e *Event)          // ends a step
	drop(sc *Scope, st *Step, at int64)           // makes a step inactive
	keep(sc *Scope, n *PlanNode, k *Kept)         // leaves something to the next visit of a node; nil = nothing
	reopen(sc *Scope, undone map[string]bool)     // goes on with what failed, as if it had not been there
	link(s *State, sc *Scope) error               // restores what a snapshot does not keep, in the steps inside, too

	// Reading.
	params(sc *Scope, n *PlanNode) json.RawMessage // what a step of a node sees as its params
	active(sc *Scope) []*Step                      // in the definition's order, as a list of the caller's own
	busy(sc *Scope, retries bool) bool             // whether attempts are in flight or, with retries, units wait for a try
	step(sc *Scope, node string) *Step             // the active visit of a node, nil when there is none
	node(sc *Scope, n *PlanNode) *NodeState        // what is known of a node beside its step; nil = nothing
	visits(sc *Scope, n *PlanNode) int             // how often a node has been entered, or would have been
	kept(sc *Scope, n *PlanNode) *Kept             // what a node has left to its next visit
	output(sc *Scope) json.RawMessage              // the scope's result
	made(sc *Scope, levels int) made               // that as far as its limits go
	input(st *Step) json.RawMessage                // what a step works on
	unitInput(st *Step, unit int) json.RawMessage  // what a unit works on
	inside(st *Step) (params, run json.RawMessage) // what the scope inside a step is given
}

// decidingMode is the part of a mode that decides. It is not in mode, because a decider that is given to who knows whom is on
// the heap, and every decision would pay for that: decider.next, finish and endSingle tell the three apart themselves.
type decidingMode interface {
	next(d *decider, sc *Scope)              // begins what can begin
	finish(d *decider, st *Step, how ending) // ends a step, and goes on behind it
	endSingle(d *decider, st *Step)          // ends a step whose one unit is over
}

var _ = []decidingMode{graphMode{}, dagMode{}, closingMode{}}

// modeOf is the mode of a scope that is no closing one.
func modeOf(p *PlanScope) mode {
	if p.Mode() == ModeDag {
		return dagMode{}
	}
	return graphMode{}
}
