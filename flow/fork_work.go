package flow

import (
	"reflect"
	"slices"
)

// sameWork reports whether a node does the same work in two scopes, so that results of one are
// valid in the other. Retries, timeouts, edges and compensations are ignored. The scope inside a
// node is ignored, too, because its steps are compared one by one.
func sameWork(one *PlanScope, a *PlanNode, other *PlanScope, b *PlanNode) bool {
	return reflect.DeepEqual(workOf(one, a), workOf(other, b))
}

// nodeWork describes the work of a node.
type nodeWork struct {
	Node  PlanNode
	Cases []caseWork
	Out   string
	Dag   *dagWork
	Sub   *subWork
}

type caseWork struct{ Action, Text string }

type subWork struct {
	Mode   Mode
	Flat   bool
	Result string
	Output string
	Inputs string
}

func workOf(in *PlanScope, n *PlanNode) (w nodeWork) {
	w.Node = PlanNode{Key: n.Key, Kind: n.Kind, Exec: n.Exec.withoutRetries(), Params: n.Params,
		Prep: n.Prep, Post: n.Post, Strategy: n.Strategy,
		Each: n.Each.withoutRetries(), Default: n.Default, Coerce: n.Coerce, Single: n.Single, Deferred: n.Deferred}
	w.Out = string(n.Out.Schema())
	for _, c := range n.Cases {
		w.Cases = append(w.Cases, caseWork{c.Action, string(c.Text)})
	}
	if n.Sub != nil {
		w.Sub = &subWork{Mode: n.Sub.Mode(), Flat: n.Sub.Flat, Result: n.Sub.Result, Inputs: string(n.Sub.Inputs.Schema())}
		if d := n.Sub.Dag; d != nil && d.Output >= 0 {
			w.Sub.Output = d.List[d.Output].Key
		}
	}
	if n.Dag != nil {
		w.Dag = dagWorkOf(in.Dag, n.Dag)
	}
	return w
}

// withoutRetries returns the parts of x that describe the work, without retries and timeouts.
func (x *Exec) withoutRetries() Exec {
	return Exec{Type: x.Type, Service: x.Service, Func: x.Func, Script: x.Script, Program: x.Program, Params: x.Params}
}

func (e *Each) withoutRetries() *Each {
	if e == nil {
		return nil
	}
	w := &Each{Items: map[int]Exec{}}
	for _, b := range e.Branches {
		w.Branches = append(w.Branches, Branch{b.Name, b.Exec.withoutRetries()})
	}
	for i, x := range e.Items {
		w.Items[i] = x.withoutRetries()
	}
	return w
}

// dagWork describes the work of a node in dag mode. Other nodes are named by their keys, not by
// their indexes.
type dagWork struct {
	Deps, Guards      []string
	Sees              [][3]string
	Run, For, Entry   string
	Takes             string
	Always            bool
	Mode, Exhausted   SkipMode
	If, IfNot, Static string
	Expr, MapExpr     string
	Shape             Shape
	Bindings          [][3]string
	Map, Items, Count string
	Repeats           int
	StartDelayMS      int64
}

func dagWorkOf(d *Dag, p *PlanDag) *dagWork {
	w := &dagWork{Takes: string(p.Takes.Schema()), Deps: d.sortedKeys(p.Deps),
		Guards: d.sortedKeys(p.Guards), Run: d.nodeKey(p.Run), For: d.nodeKey(p.For),
		Entry: d.nodeKey(p.Entry), Always: p.Always,
		Mode: p.Mode, Exhausted: p.Exhausted, If: string(p.If), IfNot: string(p.IfNot), Static: string(p.Static), Shape: p.Shape,
		Map: p.Map.textOrEmpty(), Items: p.Items.textOrEmpty(), Count: p.Count.textOrEmpty(),
		Repeats: p.Repeats, StartDelayMS: p.StartDelayMS}
	for _, s := range p.Sees {
		w.Sees = append(w.Sees, [3]string{s.Name, s.As, d.nodeKey(s.Index)})
	}
	for _, b := range p.Bindings {
		w.Bindings = append(w.Bindings, [3]string{b.Name, string(b.Const), b.Ref.textOrEmpty()})
	}
	if p.Expr != nil {
		w.Expr = p.Expr.Source()
	}
	if p.MapExpr != nil {
		w.MapExpr = p.MapExpr.Source()
	}
	return w
}

func (d *Dag) nodeKey(index int) string {
	if index < 0 {
		return ""
	}
	return d.List[index].Key
}

// sortedKeys returns the keys of nodes in sorted order, because the order of the definition does
// not matter.
func (d *Dag) sortedKeys(indexes []int) (keys []string) {
	for _, i := range indexes {
		keys = append(keys, d.nodeKey(i))
	}
	slices.Sort(keys)
	return keys
}

func (r *PlanRef) textOrEmpty() string {
	if r == nil {
		return ""
	}
	return r.Text
}
