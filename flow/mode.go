package flow

import "encoding/json"

// Mode defines how a scope proceeds from node to node.
type Mode string

// Modes of a scope.
const (
	ModeGraph Mode = "graph" // by edges: one node after another
	ModeDag   Mode = "dag"   // by dependencies: each node when its dependencies have ended
	ModeCode  Mode = "code"  // by a function: its steps come from the journal
)

// Mode returns the mode of the scope.
func (p *PlanScope) Mode() Mode {
	switch {
	case p.Dag != nil:
		return ModeDag
	case p.Code:
		return ModeCode
	}
	return ModeGraph
}

// scopeMode contains all differences between the scopes of a task. A scope has one of four modes:
// graphMode, dagMode, codeMode, or closingMode for the closing scope. codeMode is graphMode with
// the steps of a function. closingMode is graphMode with another order of steps.
type scopeMode interface {
	// Deciding: the next steps. See decidingMode.
	canRedoUndone() bool // reports whether a retried task can repeat undone steps

	// Evolving: the meaning of events.
	beginScope(sc *Scope) // initializes a new scope
	// bindInputs sets the values from outside that the scope sees.
	bindInputs(sc *Scope, params, run json.RawMessage)
	activateStep(sc *Scope, st *Step)             // makes a step active
	applyStepEnded(s *State, sc *Scope, e *Event) // ends a step
	deactivateStep(sc *Scope, st *Step, at int64) // makes a step inactive
	// setKept stores the results for the next visit of a node; nil for none.
	setKept(sc *Scope, n *PlanNode, k *Kept)
	// reopenScope resets failed and undone nodes, so that the scope continues.
	reopenScope(sc *Scope, undone map[string]bool)
	// linkScope rebuilds the data that a snapshot does not hold, also in inner steps.
	linkScope(s *State, sc *Scope) error

	// Reading.
	// returns the params that a step of a node sees
	stepParams(sc *Scope, n *PlanNode) json.RawMessage
	// activeSteps returns a new slice in the order of the definition.
	activeSteps(sc *Scope) []*Step
	// isBusy reports whether attempts are in flight. With retries, units that wait for a retry
	// count, too.
	isBusy(sc *Scope, retries bool) bool
	// activeStep returns the active visit of a node, or nil.
	activeStep(sc *Scope, node string) *Step
	// nodeState returns the state of a node apart from its step, or nil.
	nodeState(sc *Scope, n *PlanNode) *NodeState
	// visitCount returns how often a node was entered, or would have been.
	visitCount(sc *Scope, n *PlanNode) int
	// keptResults returns the results that a node has for its next visit.
	keptResults(sc *Scope, n *PlanNode) *Kept
	scopeOutput(sc *Scope) json.RawMessage        // returns the result of the scope
	outputSize(sc *Scope, levels int) valueSize   // returns the size and depth of the result
	stepInput(st *Step) json.RawMessage           // returns the input of a step
	unitInput(st *Step, unit int) json.RawMessage // returns the input of a unit
	// childInputs returns the input of the scope inside a step.
	childInputs(st *Step) (params, run json.RawMessage)
}

// decidingMode is the part of a mode that decides. It is not part of scopeMode: a decider passed
// through an interface would be allocated on the heap for every decision. So decider.beginNext,
// finishStep and endSingle distinguish the modes themselves.
type decidingMode interface {
	beginNext(d *decider, sc *Scope)                  // starts the next node
	finishStep(d *decider, st *Step, how stepOutcome) // ends a step and continues after it
	endSingle(d *decider, st *Step)                   // ends a step whose only unit has ended
}

var _ = []decidingMode{graphMode{}, dagMode{}, codeMode{}, closingMode{}}

// modeOf returns the mode of a scope that is not a closing scope.
func modeOf(p *PlanScope) scopeMode {
	switch p.Mode() {
	case ModeDag:
		return dagMode{}
	case ModeCode:
		return codeMode{}
	}
	return graphMode{}
}
