package show

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
)

// View is a plan for display, including the nodes that the compiler added.
type View struct {
	Name    string       `json:"name,omitempty"`
	Profile flow.Profile `json:"profile,omitempty"`
	// graph mode: the key of shared with the task's result
	Result  string        `json:"result,omitempty"`
	Finally string        `json:"finally,omitempty"`
	Inputs  []types.Input `json:"inputs,omitempty"` // declared inputs of a task
	Keys    []string      `json:"keys,omitempty"`   // permits that a task needs before it starts
	Root    Scope         `json:"root"`
	Closing []*Node       `json:"closing,omitempty"` // nodes that run after everything else
}

// Scope is a scope of a view.
type Scope struct {
	Mode    flow.Mode `json:"mode"`
	OnError string    `json:"on_error,omitempty"`
	Start   string    `json:"start,omitempty"`
	// dag mode: the node whose output is the output of the scope
	Output string `json:"output,omitempty"`
	// dag mode: in the order of the definition; graph mode: in the order in which they are reached
	Nodes []*Node `json:"nodes"`
}

// Node is a node of a view.
type Node struct {
	Key       string        `json:"key"`
	Kind      flow.Kind     `json:"kind"`
	Handler   string        `json:"handler,omitempty"`       // carrier of its jobs, such as queue:paint
	For       string        `json:"generated_for,omitempty"` // the node for which this node was added
	After     []string      `json:"after,omitempty"`         // dag mode: its dependencies
	Always    bool          `json:"always,omitempty"`
	When      string        `json:"when,omitempty"` // its conditions
	SkipMode  flow.SkipMode `json:"skip_mode,omitempty"`
	Exhausted flow.SkipMode `json:"on_exhausted,omitempty"`
	Items     string        `json:"items,omitempty"` // source of the units
	Window    int           `json:"concurrency,omitempty"`
	// permits that its attempts need before they start
	Keys       []string `json:"keys,omitempty"`
	Edges      []Edge   `json:"edges,omitempty"`      // graph mode
	OnError    string   `json:"on_error,omitempty"`   // graph mode: follow, if set
	OnMissing  string   `json:"on_missing,omitempty"` // graph mode: coerce, if set
	Compensate string   `json:"compensate,omitempty"`
	Times
	Inside *Scope `json:"inner_scope,omitempty"`

	note string // purpose of a node that runs after everything else
}

// Edge leads to the next node. If To is "", the edge ends the scope.
type Edge struct {
	Action string `json:"action"`
	To     string `json:"to"`
	// condition of an edge of a choice; "" if taken when no other edge is
	When string `json:"when,omitempty"`
}

func (e *Edge) labelText() string { return e.Action + withPrefix(" when ", e.When) }

// Ghost reports whether the compiler added the node for another node.
func (n *Node) Ghost() bool { return n.For != "" || n.Kind == flow.KindJoin }

// Plan returns the view of a plan under a name.
func Plan(p *flow.Plan, name string) *View {
	v := &View{Name: name, Profile: p.Profile, Result: p.Root.Result, Finally: p.Finally, Keys: permitsOf(p.Keys), Root: *scopeOf(p.Root)}
	v.Inputs = p.Root.Inputs.List()
	if p.Closing != nil {
		v.Closing = scopeOf(p.Closing).Nodes
		for _, n := range v.Closing {
			n.note = "compensation"
			if n.Key == p.Finally {
				n.note = "finally"
			}
		}
	}
	return v
}

func scopeOf(g *flow.PlanScope) *Scope {
	if g.Mode() == flow.ModeDag {
		return viewOfDag(g)
	}
	v := &Scope{Mode: g.Mode(), Start: g.Start, Nodes: []*Node{}}
	for _, node := range g.Order() {
		n := nodeOf(node)
		for _, action := range slices.Sorted(maps.Keys(node.Edges)) {
			n.Edges = append(n.Edges, Edge{action, node.Edges[action], casesOf(node, action)})
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

// casesOf returns the conditions under which a choice takes an action.
func casesOf(n *flow.PlanNode, action string) string {
	var texts []string
	for _, c := range n.Cases {
		if c.Action == action {
			texts = append(texts, cmp.Or(celText(c.CEL), compactText(c.Text)))
		}
	}
	return strings.Join(texts, " or ")
}

func viewOfDag(g *flow.PlanScope) *Scope {
	v := &Scope{Mode: flow.ModeDag, OnError: "continue", Nodes: []*Node{}}
	if g.Dag.FailFast {
		v.OnError = "fail_fast"
	}
	if g.Dag.Output >= 0 {
		v.Output = g.Dag.List[g.Dag.Output].Key
	}
	for _, n := range g.Dag.List {
		v.Nodes = append(v.Nodes, dagNodeOf(g, n))
	}
	return v
}

func dagNodeOf(g *flow.PlanScope, n *flow.PlanNode) *Node {
	v, d := nodeOf(n), n.Dag
	v.Always, v.When = d.Always && n.Kind != flow.KindJoin && n.Kind != flow.KindOutput, conditionText(d)
	for _, i := range d.Deps {
		v.After = append(v.After, g.Dag.List[i].Key)
	}
	if d.For >= 0 {
		v.For = g.Dag.List[d.For].Key
	}
	if d.Mode == flow.SkipOptional || d.Mode == flow.SkipFail {
		v.SkipMode = d.Mode
	}
	if d.Exhausted == flow.SkipOptional || d.Exhausted == flow.SkipPropagate {
		v.Exhausted = d.Exhausted
	}
	if n.Kind == flow.KindFanout {
		v.Items = sourceOf(d)
	}
	return v
}

func conditionText(d *flow.PlanDag) (text string) {
	add := func(name string, there bool) {
		if there && text != "" {
			text += ", "
		}
		if there {
			text += name
		}
	}
	add("if "+string(d.If), d.If != nil)
	add("if_not "+string(d.IfNot), d.IfNot != nil)
	add("expr "+celText(d.Expr), d.Expr != nil)
	return text
}

// sourceOf describes the source of a fanout's units.
func sourceOf(d *flow.PlanDag) (text string) {
	if d.Items != nil {
		text = d.Items.Text
	}
	count := ""
	switch {
	case d.Count != nil:
		count = d.Count.Text
	case d.Repeats > 0:
		count = strconv.Itoa(d.Repeats)
	}
	switch {
	case text != "" && count != "":
		return text + " × " + count
	case count != "":
		return count
	}
	return text
}

// nodeOf returns the part of a node that both modes have.
func nodeOf(n *flow.PlanNode) *Node {
	v := &Node{Key: n.Key, Kind: n.Kind, Handler: handlerOf(n), Compensate: n.Undo, Keys: permitsOf(n.Keys), Times: timesOf(n)}
	if n.Follow {
		v.OnError = "follow"
	}
	if n.Coerce {
		v.OnMissing = "coerce"
	}
	if n.Each != nil {
		v.Window = n.Each.Window
	}
	if n.Sub != nil {
		v.Inside = scopeOf(n.Sub)
	}
	return v
}

// handlerOf returns the carrier of a node's jobs, or "" if the node has none.
func handlerOf(n *flow.PlanNode) string {
	switch n.Kind {
	case flow.KindExecutor, flow.KindParallel, flow.KindForeach, flow.KindFanout:
	case flow.KindCond, flow.KindPrep, flow.KindOutput:
		if !n.Single {
			return ""
		}
	default:
		return ""
	}
	switch x := &n.Exec; x.Type {
	case flow.ExecDirect:
		return flow.RouteDirect
	case flow.ExecWorker:
		return string(x.Type) + ":" + x.Program.URL
	case flow.ExecContainer:
		return string(x.Type) + ":" + x.Program.Container.Image
	case flow.ExecScript, flow.ExecProcess, flow.ExecPython, flow.ExecLibrary:
		return string(x.Type)
	default:
		return string(x.Type) + ":" + cmp.Or(x.Service, x.Func)
	}
}

// JSON returns the view as data.
func (v *View) JSON() []byte {
	b, _ := json.MarshalIndent(v, "", "  ") // texts and numbers can always be marshaled
	return append(b, '\n')
}
