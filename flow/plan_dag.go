package flow

import (
	"cmp"
	"encoding/json"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Profile is a bundle of defaults.
type Profile string

// Profiles.
const (
	ProfileNone       Profile = ""           // Troupe's own
	ProfileOrk        Profile = "ork"        // of dag mode
	ProfilePgflow     Profile = "pgflow"     // of dag mode
	ProfilePocketflow Profile = "pocketflow" // of graph mode
)

// Dag is what a scope of dag mode has beside its nodes.
type Dag struct {
	List     []*PlanNode // by index, in the order of the definition; what compiling made for a node comes before it
	FailFast bool
	Output   int    // index of the node whose output is the scope's; -1 = that of the leaves
	Leaves   []Seen // nodes nobody in the scope waits for
	RootMap  string // the node that takes its items from the run's input itself, which has to be an array; "" = none
}

// Seen is a node whose output is part of an input, and under which name.
type Seen struct {
	Name  string // by which references know it
	As    string // what it is called in an input, when that is another name; ""
	Index int
}

// inputName is the name that the output has in an input.
func (s *Seen) inputName() string { return cmp.Or(s.As, s.Name) }

// Shape is what the input of a handler looks like.
type Shape string

// Shapes. Bound is put together field by field.
const (
	ShapeRunDeps Shape = "run_deps" // {run, <dep>…}
	ShapeDeps    Shape = "deps"     // {<dep>…}; without dependencies the run's input itself
	ShapeMerged  Shape = "merged"   // static < run's input < {<dep>…}
	ShapeMapped  Shape = "mapped"   // from prep or inputs
)

// SkipMode says what it means for others that a node does not run.
type SkipMode string

// Modes. Fail is not to skip but to fail.
const (
	SkipPropagate SkipMode = "propagate" // what depends on it is skipped, too
	SkipOptional  SkipMode = "optional"  // what depends on it runs without
	SkipFail      SkipMode = "fail"
)

// PlanDag is what a node of dag mode has beside the rest.
type PlanDag struct {
	Index      int
	Takes      *types.Inputs // prep: what the flow inside the branch takes; nil = anything
	Deps       []int         // nodes that have to end first
	Dependents []int         // those that wait for this one
	Sees       []Seen        // whose outputs are part of the input
	Run        int           // the node whose output is `run`; -1 = the scope's
	Guards     []int         // gate, cond and prep that compiling made for this node
	For        int           // the node this one was made for; -1 = none
	Always     bool          // it runs however its dependencies end,
	Entry      int           // but for this one: the last gate, cond or prep of the branch around it; -1 = none
	Mode       SkipMode      // when its condition is not met
	Exhausted  SkipMode      // when a unit has used its last attempt

	If, IfNot json.RawMessage
	Has, Not  *expr.Pattern // of those
	Expr      *expr.CEL

	Shape    Shape
	Static   json.RawMessage // of a merged input
	Bindings []PlanBinding   // of a mapped one, sorted by name
	Map      *PlanRef        // a mapped input that is one reference
	MapExpr  *expr.CEL       // or an expression
	Fixed    bool            // a mapped input means the same whenever it is put together

	Items   *PlanRef // of a fanout
	Count   *PlanRef // how many units, or how many for each item
	Repeats int      // the same as a number; 0 = Count says it, or there is one for each item

	StartDelayMS int64
}

// PlanBinding is a field of an input.
type PlanBinding struct {
	Name  string
	Const json.RawMessage
	Ref   *PlanRef
}

// PlanRef is a reference of dag mode: what it begins with, and the path from there.
type PlanRef struct {
	Text string
	From RefFrom
	Dep  int // index of the node, for FromDep
	Path string
	Ref  expr.Ref // for FromShared
}

// RefFrom says what a reference begins with.
type RefFrom uint8

// Beginnings of references.
const (
	FromRun RefFrom = iota
	FromDep
	FromShared
	FromInput
)
