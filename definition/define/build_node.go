package define

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// NodeBuilder defines a node. Its methods return the NodeBuilder, so that calls can be chained.
type NodeBuilder struct {
	b   *Builder
	key string
	n   *definition.Node
}

// Kind sets the kind of the node.
func (n *NodeBuilder) Kind(k flow.Kind) *NodeBuilder { n.n.Kind = string(k); return n }

// Params sets the params of the node, which must be an object.
func (n *NodeBuilder) Params(v any) *NodeBuilder { n.n.Params = n.marshalValue("params", v); return n }

// Then adds an edge to another node for all actions, and returns that node. For graphs only.
func (n *NodeBuilder) Then(next *NodeBuilder) *NodeBuilder {
	n.On("default", next)
	if next == nil {
		return &NodeBuilder{b: n.b, n: &definition.Node{}} // so that the chain can continue to the error
	}
	return next
}

// On adds an edge to another node for an action; "error" is the action of a failure. For graphs
// only.
func (n *NodeBuilder) On(action string, next *NodeBuilder) *NodeBuilder {
	n.b.definition.Edges = append(n.b.definition.Edges, definition.Edge{From: n.key, Action: action,
		To: n.b.keyOf(next, "the node after %q", n.key)})
	return n
}

// After makes the node depend on other nodes. For dags only.
func (n *NodeBuilder) After(nodes ...*NodeBuilder) *NodeBuilder {
	for _, other := range nodes {
		n.n.DependsOn = append(n.n.DependsOn, n.b.keyOf(other, "a node before %q", n.key))
	}
	return n
}

// Called sets a name of the node in addition to the key. For dags only.
func (n *NodeBuilder) Called(name string) *NodeBuilder { n.n.Name = name; return n }

// Returns sets the type of the output of the node's handler: a text such as "int", or a value that
// describes the type. For dags only.
func (n *NodeBuilder) Returns(v any) *NodeBuilder {
	n.n.OutputType = n.marshalValue("output_type", v)
	return n
}

// Always makes the node run also after nodes that failed or were skipped. For dags only.
func (n *NodeBuilder) Always() *NodeBuilder { n.n.RunOn = "always"; return n }

// Each makes the node have a unit for each item of a list. For dags only.
func (n *NodeBuilder) Each(items Ref) *NodeBuilder {
	n.eachOf().Items = definition.Source{Ref: string(items)}
	return n
}

// EachOf makes the node have a unit for each item of the list that a service returns. For dags
// only.
func (n *NodeBuilder) EachOf(service string) *NodeBuilder {
	n.eachOf().Items = definition.Source{Handler: definition.Handler{Service: service}}
	return n
}

// Times makes the node have the given number of units. For dags only.
func (n *NodeBuilder) Times(count int) *NodeBuilder {
	n.eachOf().Count = definition.Source{Number: count, Literal: true}
	return n
}

// TimesOf makes the node have the number of units that a reference contains. For dags only.
func (n *NodeBuilder) TimesOf(count Ref) *NodeBuilder {
	n.eachOf().Count = definition.Source{Ref: string(count)}
	return n
}

// EachOnError sets the effect of a failed unit: fail_fast, collect or continue. For dags only.
func (n *NodeBuilder) EachOnError(word string) *NodeBuilder { n.eachOf().OnError = word; return n }

// Concurrency sets the maximum number of units in flight. For dags only.
func (n *NodeBuilder) Concurrency(most int) *NodeBuilder { n.eachOf().Concurrency = most; return n }

func (n *NodeBuilder) eachOf() *definition.EachOf {
	if n.n.Each == nil {
		n.n.Each = &definition.EachOf{}
	}
	return n.n.Each
}

// If makes the node run only if its input contains a pattern. For dags only.
func (n *NodeBuilder) If(pattern any) *NodeBuilder {
	n.whenOf().If = n.marshalValue("when.if", pattern)
	return n
}

// IfNot makes the node run only if its input does not contain a pattern. For dags only.
func (n *NodeBuilder) IfNot(pattern any) *NodeBuilder {
	n.whenOf().IfNot = n.marshalValue("when.if_not", pattern)
	return n
}

// When makes the node run only if a CEL expression is true. For dags only.
func (n *NodeBuilder) When(cel string) *NodeBuilder { n.whenOf().Expr = cel; return n }

// SkipIf asks a service whether the node is skipped. For dags only.
func (n *NodeBuilder) SkipIf(service string) *NodeBuilder {
	n.whenOf().Cond = &definition.Handler{Service: service}
	return n
}

func (n *NodeBuilder) whenOf() *definition.When {
	if n.n.When == nil {
		n.n.When = &definition.When{}
	}
	return n.n.When
}

// Shape sets the form of the input of the node's handler. For dags only.
func (n *NodeBuilder) Shape(s flow.Shape) *NodeBuilder { n.n.InputShape = string(s); return n }

// Skipping sets the effect on dependents when the node is skipped. For dags only.
func (n *NodeBuilder) Skipping(m flow.SkipMode) *NodeBuilder { n.n.SkipMode = string(m); return n }

// Exhausted sets the effect of the last failed attempt of the node: SkipFail, SkipOptional or
// SkipPropagate. For dags only.
func (n *NodeBuilder) Exhausted(m flow.SkipMode) *NodeBuilder { n.n.Exhausted = string(m); return n }

// milliseconds returns a duration in milliseconds. See Builder.milliseconds.
func (n *NodeBuilder) milliseconds(d time.Duration, field string) int64 {
	return n.b.milliseconds(d, fmt.Sprintf("node %q: %s", n.key, field))
}

func (n *NodeBuilder) marshalValue(what string, v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		n.b.recordError("node %q: %s: %w", n.key, what, err)
	}
	return b
}
