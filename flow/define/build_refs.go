package define

import (
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Ref is a reference to a value, such as $params.order.id. Constants of Go are references, too.
type Ref string

// Param is a reference to what a task was started with, in a graph with the params of the node
// below it.
func Param(path ...string) Ref { return refTo("$params", path) }

// Shared is a reference to what the nodes of a graph share, and what signals set.
func Shared(path ...string) Ref { return refTo("$shared", path) }

// Item is a reference to the item of a unit, for keys.
func Item(path ...string) Ref { return refTo("$item", path) }

// Subject is a reference to what a node is about that undoes another one or runs at the end: the
// `input` and `output` of the unit, and its `node`, `visit` and `unit`; or the task's `status`,
// `error` and `result`.
func Subject(path ...string) Ref { return refTo("$input", path) }

func refTo(root string, path []string) Ref {
	return Ref(strings.Join(append([]string{root}, path...), "."))
}

// Output is a reference to the node's output, or to a part of it, for nodes that come after it. In
// a graph the output has to be in shared for that: it is written to the key that To names, or else
// to the node's own.
func (n *NodeBuilder) Output(path ...string) Ref {
	if n.b.isDag() {
		return refTo("$deps."+n.key, path)
	}
	if n.n.Post.OutputKey == "" {
		n.n.Post.OutputKey = n.key
	}
	if strings.ContainsAny(n.n.Post.OutputKey, ".[") {
		n.b.recordError("node %q: no reference reaches the key %q of shared: name another one with To", n.key, n.n.Post.OutputKey)
	}
	return refTo("$shared."+n.n.Post.OutputKey, path)
}

// From makes a reference the node's input.
func (n *NodeBuilder) From(ref Ref) *NodeBuilder { n.n.Prep.InputKey = string(ref); return n }

// FromField sets a field of the input to what a reference means; with others like it they are the
// whole input.
func (n *NodeBuilder) FromField(field string, ref Ref) *NodeBuilder {
	if n.n.Prep.InputMap == nil {
		n.n.Prep.InputMap = map[string]string{}
	}
	n.n.Prep.InputMap[field] = string(ref)
	return n
}

// FromExpr makes what an expression in CEL gives the node's input. Of dags.
func (n *NodeBuilder) FromExpr(cel string) *NodeBuilder { n.n.Prep.Expr = cel; return n }

// FromService has a service make the input of a branch. Of dags.
func (n *NodeBuilder) FromService(name string) *NodeBuilder {
	n.n.Prep.Handler = Handler{Service: name}
	return n
}

// Input sets a field of the input to a constant; with others like it they are the whole input. Of
// dags.
func (n *NodeBuilder) Input(field string, v any) *NodeBuilder {
	return n.bindInput(field, Binding{Const: n.marshalValue("inputs."+field, v)})
}

// InputFrom sets a field of the input to what a reference means, which has to be there. Of dags.
func (n *NodeBuilder) InputFrom(field string, ref Ref) *NodeBuilder {
	return n.bindInput(field, Binding{Ref: string(ref)})
}

func (n *NodeBuilder) bindInput(field string, b Binding) *NodeBuilder {
	if n.n.Inputs == nil {
		n.n.Inputs = map[string]Binding{}
	}
	n.n.Inputs[field] = b
	return n
}

// Static are fields of a merged input that the task's input and the outputs of others are laid
// over; an object. Of dags.
func (n *NodeBuilder) Static(v any) *NodeBuilder {
	n.n.DagNode.Input = n.marshalValue("input", v)
	return n
}

// To writes the node's output to a key of shared. Of graphs.
func (n *NodeBuilder) To(key string) *NodeBuilder { n.n.Post.OutputKey = key; return n }

// FieldTo writes a field of the node's output to a key of shared. Of graphs.
func (n *NodeBuilder) FieldTo(key, field string) *NodeBuilder {
	if n.n.Post.OutputMap == nil {
		n.n.Post.OutputMap = map[string]string{}
	}
	n.n.Post.OutputMap[key] = field
	return n
}

// Action is what the node ends with. Of graphs.
func (n *NodeBuilder) Action(action string) *NodeBuilder { n.n.Post.ActionStatic = action; return n }

// ActionFrom takes the action from a field of the output. Of graphs.
func (n *NodeBuilder) ActionFrom(field string) *NodeBuilder { n.n.Post.ActionKey = field; return n }

// Case has a choice end with an action if an expression in CEL is true. Of graphs.
func (n *NodeBuilder) Case(action, cel string) *NodeBuilder {
	n.n.Kind = kindChoice
	n.n.ChoiceCases = append(n.n.ChoiceCases, ChoiceCase{Action: action, Expr: expr.Quote(cel)})
	return n
}

// Otherwise is the action of a choice when no case is true. Of graphs.
func (n *NodeBuilder) Otherwise(action string) *NodeBuilder { n.n.DefaultAction = action; return n }
