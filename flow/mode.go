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

// scopeMode is everything in which the scopes of a task differ. A scope has one of three:
// graphMode, dagMode, or, for the scope in which a task closes, closingMode, which is graphMode but
// for what leads from step to step. What is not here is the same in all of them.
type scopeMode interface {
	// Deciding: what comes next. See decidingMode.
	canRedoUndone() bool // whether a retried task can do again what it has undone

	// Evolving: what an event means.
	beginScope(sc *Scope)                              // puts a new scope at its start
	bindInputs(sc *Scope, params, run json.RawMessage) // says what the scope sees of the world around it
	activateStep(sc *Scope, st *Step)                  // makes a step active
	applyStepEnded(s *State, sc *Scope, e *Event)      // ends a step
	deactivateStep(sc *Scope, st *Step, at int64)      // makes a step inactive
	setKept(sc *Scope, n *PlanNode, k *Kept)           // leaves something to the next visit of a node; nil = nothing
	reopenScope(sc *Scope, undone map[string]bool)     // goes on with what failed, as if it had not been there
	linkScope(s *State, sc *Scope) error               // restores what a snapshot does not keep, in the steps inside, too

	// Reading.
	stepParams(sc *Scope, n *PlanNode) json.RawMessage  // what a step of a node sees as its params
	activeSteps(sc *Scope) []*Step                      // in the definition's order, as a list of the caller's own
	isBusy(sc *Scope, retries bool) bool                // whether attempts are in flight or, with retries, units wait for a try
	activeStep(sc *Scope, node string) *Step            // the active visit of a node, nil when there is none
	nodeState(sc *Scope, n *PlanNode) *NodeState        // what is known of a node beside its step; nil = nothing
	visitCount(sc *Scope, n *PlanNode) int              // how often a node has been entered, or would have been
	keptResults(sc *Scope, n *PlanNode) *Kept           // what a node has left to its next visit
	scopeOutput(sc *Scope) json.RawMessage              // the scope's result
	outputSize(sc *Scope, levels int) valueSize         // that as far as its limits go
	stepInput(st *Step) json.RawMessage                 // what a step works on
	unitInput(st *Step, unit int) json.RawMessage       // what a unit works on
	childInputs(st *Step) (params, run json.RawMessage) // what the scope inside a step is given
}

// decidingMode is the part of a mode that decides. It is not in mode, because a decider that is
// given to who knows whom is on the heap, and every decision would pay for that: decider.beginNext,
// finish and endSingle tell the three apart themselves.
type decidingMode interface {
	beginNext(d *decider, sc *Scope)                  // begins what can begin
	finishStep(d *decider, st *Step, how stepOutcome) // ends a step, and goes on behind it
	endSingle(d *decider, st *Step)                   // ends a step whose one unit is over
}

var _ = []decidingMode{graphMode{}, dagMode{}, closingMode{}}

// modeOf is the mode of a scope that is no closing one.
func modeOf(p *PlanScope) scopeMode {
	if p.Mode() == ModeDag {
		return dagMode{}
	}
	return graphMode{}
}
