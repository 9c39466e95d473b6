package flow

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Profile names the product whose behaviour a version keeps where products differ.
type Profile string

// Values of Profile.
const (
	ProfileNone       Profile = ""           // Troupe's own
	ProfileOrk        Profile = "ork"        // for dag mode
	ProfilePgflow     Profile = "pgflow"     // for dag mode
	ProfilePocketflow Profile = "pocketflow" // for graph mode
)

// Dag holds the data of a scope in dag mode in addition to its nodes.
type Dag struct {
	// List holds the nodes by index, in the order of the definition. A generated node comes before
	// the node that it serves.
	List     []*PlanNode
	FailFast bool
	// Output is the index of the node whose output is the result; -1 for the outputs of the leaves.
	Output int
	Leaves []Seen // nodes without dependents in the scope
	// RootMap is the node whose items are the run's input itself, which must be an array; "" if
	// none.
	RootMap string
}

// Seen is a node whose output is part of an input, with its name there.
type Seen struct {
	Name  string // name in references
	As    string // name in an input if it differs; otherwise ""
	Index int
}

// inputName returns the name of the output in an input.
func (s *Seen) inputName() string { return cmp.Or(s.As, s.Name) }

// Shape is the form of a handler's input.
type Shape string

// Values of Shape.
const (
	ShapeRunDeps Shape = "run_deps" // {run, <dep>…}
	ShapeDeps    Shape = "deps"     // {<dep>…}; without dependencies the run's input
	// ShapeMerged merges the static input, the run's input over it, and {<dep>…} over both.
	ShapeMerged Shape = "merged"
	ShapeMapped Shape = "mapped" // built field by field from prep or inputs
)

// SkipMode is the effect on dependent nodes when a node does not run.
type SkipMode string

// Values of SkipMode. SkipFail means that the node fails instead.
const (
	SkipPropagate SkipMode = "propagate" // dependent nodes are skipped, too
	SkipOptional  SkipMode = "optional"  // dependent nodes run without it
	SkipFail      SkipMode = "fail"
)

// PlanDag holds the data of a node that only dag mode has.
type PlanDag struct {
	Index      int
	Takes      *types.Inputs // prep: declared inputs of the flow inside the branch; nil if any
	Deps       []int         // dependencies, which must end first
	Dependents []int         // nodes that depend on this one
	Sees       []Seen        // nodes whose outputs are part of the input
	Run        int           // node whose output is `run`; -1 for the run of the scope
	Guards     []int         // gate, cond and prep that were generated for this node
	For        int           // node for which this one was generated; -1 if none
	Always     bool          // the node runs however its dependencies end, except Entry
	// Entry is the last gate, cond or prep of the branch around the node; -1 if none. If it does
	// not complete, the node does not run.
	Entry     int
	Mode      SkipMode // effect if the node's condition does not hold
	Exhausted SkipMode // effect if a unit fails its last attempt

	If, IfNot json.RawMessage
	Has, Not  *expr.Pattern // compiled from If and IfNot
	Expr      *expr.CEL

	Shape    Shape
	Static   json.RawMessage // static part of a merged input
	Bindings []PlanBinding   // fields of a mapped input, sorted by name
	Map      *PlanRef        // mapped input that is one reference
	MapExpr  *expr.CEL       // mapped input that is an expression
	Fixed    bool            // the mapped input has the same value at any time

	Items   *PlanRef // items of a fanout
	Count   *PlanRef // number of units, or number per item
	Repeats int      // fixed value of Count; 0 if Count is set, or for one unit per item

	StartDelayMS int64
}

// PlanBinding is a field of an input.
type PlanBinding struct {
	Name  string
	Const json.RawMessage
	Ref   *PlanRef
}

// PlanRef is a reference of dag mode: its source and the path inside it.
type PlanRef struct {
	Text string
	From RefFrom
	Dep  int // index of the node for FromDep
	Path string
	Ref  expr.Ref // for FromShared
}

// RefFrom is the source of a reference.
type RefFrom uint8

// Values of RefFrom.
const (
	FromRun RefFrom = iota
	FromDep
	FromShared
	FromInput
)
