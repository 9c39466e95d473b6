package define

import (
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Ref is a reference to a value, such as $params.order.id. Constants of Go can be used as
// references.
type Ref string

// Param returns a reference to the params of the task. In a graph, the reference also sees the
// params of the node.
func Param(path ...string) Ref { return refTo("$params", path) }

// Shared returns a reference to the shared state of a graph, which nodes and signals write to.
func Shared(path ...string) Ref { return refTo("$shared", path) }

// Item returns a reference to the item of a unit, for keys.
func Item(path ...string) Ref { return refTo("$item", path) }

// Subject returns a reference for a compensating node or a finally. A compensating node gets the
// `input` and `output` of the unit, and its `node`, `visit` and `unit`. A finally gets the task's
// `status`, `error` and `result`.
func Subject(path ...string) Ref { return refTo("$input", path) }

func refTo(root string, path []string) Ref {
	return Ref(strings.Join(append([]string{root}, path...), "."))
}

// Output returns a reference to the node's output, or to a part of the output, for later nodes. In
// a graph, Output also makes the node write its output to shared: to the key that To names,
// otherwise to the node's key.
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

// FromField sets a field of the input to the value of a reference. All such fields together are the
// whole input.
func (n *NodeBuilder) FromField(field string, ref Ref) *NodeBuilder {
	if n.n.Prep.InputMap == nil {
		n.n.Prep.InputMap = map[string]string{}
	}
	n.n.Prep.InputMap[field] = string(ref)
	return n
}

// FromExpr makes the value of a CEL expression the node's input. For dags only.
func (n *NodeBuilder) FromExpr(cel string) *NodeBuilder { n.n.Prep.Expr = cel; return n }

// FromService lets a service build the input of a branch. For dags only.
func (n *NodeBuilder) FromService(name string) *NodeBuilder {
	n.n.Prep.Handler = definition.Handler{Service: name}
	return n
}

// Input sets a field of the input to a constant. All such fields together are the whole input. For
// dags only.
func (n *NodeBuilder) Input(field string, v any) *NodeBuilder {
	return n.bindInput(field, definition.Binding{Const: n.marshalValue("inputs."+field, v)})
}

// InputFrom sets a field of the input to the value of a reference. The value must exist. For dags
// only.
func (n *NodeBuilder) InputFrom(field string, ref Ref) *NodeBuilder {
	return n.bindInput(field, definition.Binding{Ref: string(ref)})
}

func (n *NodeBuilder) bindInput(field string, b definition.Binding) *NodeBuilder {
	if n.n.Inputs == nil {
		n.n.Inputs = map[string]definition.Binding{}
	}
	n.n.Inputs[field] = b
	return n
}

// Static sets an object that is the base of a merged input. The task's input and the outputs of
// dependencies overwrite its fields. For dags only.
func (n *NodeBuilder) Static(v any) *NodeBuilder {
	n.n.DagNode.Input = n.marshalValue("input", v)
	return n
}

// To writes the node's output to a key of shared. For graphs only.
func (n *NodeBuilder) To(key string) *NodeBuilder { n.n.Post.OutputKey = key; return n }

// FieldTo writes a field of the node's output to a key of shared. For graphs only.
func (n *NodeBuilder) FieldTo(key, field string) *NodeBuilder {
	if n.n.Post.OutputMap == nil {
		n.n.Post.OutputMap = map[string]string{}
	}
	n.n.Post.OutputMap[key] = field
	return n
}

// Action sets the action that the node ends with. For graphs only.
func (n *NodeBuilder) Action(action string) *NodeBuilder { n.n.Post.ActionStatic = action; return n }

// ActionFrom takes the action from a field of the output. For graphs only.
func (n *NodeBuilder) ActionFrom(field string) *NodeBuilder { n.n.Post.ActionKey = field; return n }

// Case makes a choice end with an action if a CEL expression is true. For graphs only.
func (n *NodeBuilder) Case(action, cel string) *NodeBuilder {
	n.n.Kind = kindChoice
	n.n.ChoiceCases = append(n.n.ChoiceCases, definition.ChoiceCase{Action: action, Expr: expr.Quote(cel)})
	return n
}

// Otherwise sets the action of a choice when no case is true. For graphs only.
func (n *NodeBuilder) Otherwise(action string) *NodeBuilder { n.n.DefaultAction = action; return n }
