package flow

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// PlanView is a plan as people look at it: what Compile made of a definition, the nodes it added included.
type PlanView struct {
	Name    string      `json:"name,omitempty"`
	Profile Profile     `json:"profile,omitempty"`
	Result  string      `json:"result,omitempty"` // graph mode: the key of shared that is the task's result
	Finally string      `json:"finally,omitempty"`
	Root    GraphView   `json:"root"`
	Closing []*NodeView `json:"closing,omitempty"` // nodes that run when everything else is over
}

// GraphView is a scope of it.
type GraphView struct {
	Mode    string      `json:"mode"`
	OnError string      `json:"on_error,omitempty"`
	Start   string      `json:"start,omitempty"`
	Output  string      `json:"output,omitempty"` // dag mode: the node whose output is the scope's
	Nodes   []*NodeView `json:"nodes"`            // dag mode: in the order of the definition; graph mode: as they are reached
}

// NodeView is a node of it.
type NodeView struct {
	Key        string     `json:"key"`
	Kind       Kind       `json:"kind"`
	Handler    string     `json:"handler,omitempty"` // who carries out its jobs, such as queue:paint
	For        string     `json:"for,omitempty"`     // the node that Compile made it for
	After      []string   `json:"after,omitempty"`   // dag mode: what it waits for
	Always     bool       `json:"always,omitempty"`
	When       string     `json:"when,omitempty"` // which conditions it has
	SkipMode   SkipMode   `json:"skip_mode,omitempty"`
	Exhausted  SkipMode   `json:"on_exhausted,omitempty"`
	Items      string     `json:"items,omitempty"` // where the units come from
	Window     int        `json:"concurrency,omitempty"`
	Edges      []EdgeView `json:"edges,omitempty"` // graph mode
	Compensate string     `json:"compensate,omitempty"`
	TimesView
	Inside *GraphView `json:"inside,omitempty"`

	note string // what it runs for, of one that runs when everything else is over
}

// EdgeView leads to the next node; To "" ends the scope.
type EdgeView struct {
	Action string `json:"action"`
	To     string `json:"to"`
}

// Ghost says whether Compile made the node for another one.
func (n *NodeView) Ghost() bool { return n.For != "" || n.Kind == KindJoin }

// View shows a plan under a name.
func (p *Plan) View(name string) *PlanView {
	v := &PlanView{Name: name, Profile: p.Profile, Result: p.Result, Finally: p.Finally, Root: *p.Root.view()}
	if p.Closing != nil {
		v.Closing = p.Closing.view().Nodes
		for _, n := range v.Closing {
			n.note = "compensation"
			if n.Key == p.Finally {
				n.note = "finally"
			}
		}
	}
	return v
}

func (g *Graph) view() *GraphView {
	if g.Dag != nil {
		return g.viewDag()
	}
	v := &GraphView{Mode: modeGraph, Start: g.Start, Nodes: []*NodeView{}}
	for _, key := range g.reached() {
		n := g.Nodes[key].view()
		for _, action := range slices.Sorted(maps.Keys(g.Nodes[key].Edges)) {
			n.Edges = append(n.Edges, EdgeView{action, g.Nodes[key].Edges[action]})
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

// reached are the nodes in the order in which they can be reached, and then those that cannot.
func (g *Graph) reached() []string {
	var order []string
	seen := map[string]bool{}
	visit := func(key string) {
		if g.Nodes[key] != nil && !seen[key] {
			seen[key] = true
			order = append(order, key)
		}
	}
	visit(g.Start)
	for i := 0; i < len(order); i++ {
		n := g.Nodes[order[i]]
		for _, action := range slices.Sorted(maps.Keys(n.Edges)) {
			visit(n.Edges[action])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Nodes)) {
		visit(key)
	}
	return order
}

func (g *Graph) viewDag() *GraphView {
	v := &GraphView{Mode: modeDag, OnError: "continue", Nodes: []*NodeView{}}
	if g.Dag.FailFast {
		v.OnError = "fail_fast"
	}
	if g.Dag.Output >= 0 {
		v.Output = g.Dag.List[g.Dag.Output].Key
	}
	for _, n := range g.Dag.List {
		v.Nodes = append(v.Nodes, g.viewOf(n))
	}
	return v
}

func (g *Graph) viewOf(n *PlanNode) *NodeView {
	v, d := n.view(), n.Dag
	v.Always, v.When = d.Always && n.Kind != KindJoin && n.Kind != KindOutput, d.conditions()
	for _, i := range d.Deps {
		v.After = append(v.After, g.Dag.List[i].Key)
	}
	if d.For >= 0 {
		v.For = g.Dag.List[d.For].Key
	}
	if d.Mode == SkipOptional || d.Mode == SkipFail {
		v.SkipMode = d.Mode
	}
	if d.Exhausted == SkipOptional || d.Exhausted == SkipPropagate {
		v.Exhausted = d.Exhausted
	}
	if n.Kind == KindFanout {
		v.Items = d.source()
	}
	return v
}

func (d *PlanDag) conditions() (text string) {
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
	add("expr", d.Expr != nil)
	return text
}

// source says what makes the units of a fanout.
func (d *PlanDag) source() (text string) {
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

// view is what a node has in both modes.
func (n *PlanNode) view() *NodeView {
	v := &NodeView{Key: n.Key, Kind: n.Kind, Handler: n.handler(), Compensate: n.Undo, TimesView: n.times()}
	if n.Each != nil {
		v.Window = n.Each.Window
	}
	if n.Sub != nil {
		v.Inside = n.Sub.view()
	}
	return v
}

// handler is who carries out a node's jobs; "" where there are none.
func (n *PlanNode) handler() string {
	switch n.Kind {
	case KindExecutor, KindParallel, KindForeach, KindFanout:
	case KindCond, KindPrep, KindOutput:
		if !n.Single {
			return ""
		}
	default:
		return ""
	}
	switch x := &n.Exec; x.Type {
	case ExecDirect:
		return routeDirect
	case ExecScript:
		return string(x.Type)
	default:
		return string(x.Type) + ":" + cmp.Or(x.Service, x.Func)
	}
}

// JSON is the view as data.
func (v *PlanView) JSON() []byte {
	b, _ := json.MarshalIndent(v, "", "  ") // texts and numbers are always marshaled
	return append(b, '\n')
}
