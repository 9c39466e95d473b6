package define

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// NodeBuilder says what a node is. Its methods return it, so that they can be chained.
type NodeBuilder struct {
	b   *Builder
	key string
	n   *Node
}

// Kind makes it a node of a kind.
func (n *NodeBuilder) Kind(k flow.Kind) *NodeBuilder { n.n.Kind = string(k); return n }

// Params of the node; an object.
func (n *NodeBuilder) Params(v any) *NodeBuilder { n.n.Params = n.marshalValue("params", v); return n }

// Then leads on to another node, whatever the action, and returns that. Of graphs.
func (n *NodeBuilder) Then(next *NodeBuilder) *NodeBuilder {
	n.On("default", next)
	if next == nil {
		return &NodeBuilder{b: n.b, n: &Node{}} // so that the chain can go on to the error
	}
	return next
}

// On leads on to another node for an action; "error" is the one after a failure. Of graphs.
func (n *NodeBuilder) On(action string, next *NodeBuilder) *NodeBuilder {
	n.b.definition.Edges = append(n.b.definition.Edges, Edge{From: n.key, Action: action, To: n.b.keyOf(next, "the node after %q", n.key)})
	return n
}

// After has it wait for other nodes. Of dags.
func (n *NodeBuilder) After(nodes ...*NodeBuilder) *NodeBuilder {
	for _, other := range nodes {
		n.n.DependsOn = append(n.n.DependsOn, n.b.keyOf(other, "a node before %q", n.key))
	}
	return n
}

// Called gives it a name that its key will not do for. Of dags.
func (n *NodeBuilder) Called(name string) *NodeBuilder { n.n.Name = name; return n }

// Returns says what its handler has to return: a type such as "int", or what describes one. Of
// dags.
func (n *NodeBuilder) Returns(v any) *NodeBuilder {
	n.n.OutputType = n.marshalValue("output_type", v)
	return n
}

// Always runs it also after nodes that failed or were skipped. Of dags.
func (n *NodeBuilder) Always() *NodeBuilder { n.n.RunOn = "always"; return n }

// Each makes it one unit for each item of a list. Of dags.
func (n *NodeBuilder) Each(items Ref) *NodeBuilder {
	n.eachOf().Items = Source{Ref: string(items)}
	return n
}

// EachOf makes it one unit for each item of the list that a service returns. Of dags.
func (n *NodeBuilder) EachOf(service string) *NodeBuilder {
	n.eachOf().Items = Source{Handler: Handler{Service: service}}
	return n
}

// Times makes it so many units. Of dags.
func (n *NodeBuilder) Times(count int) *NodeBuilder {
	n.eachOf().Count = Source{Number: count, Literal: true}
	return n
}

// TimesOf makes it as many units as a reference says. Of dags.
func (n *NodeBuilder) TimesOf(count Ref) *NodeBuilder {
	n.eachOf().Count = Source{Ref: string(count)}
	return n
}

// EachOnError says what a failed unit means: fail_fast, collect or continue. Of dags.
func (n *NodeBuilder) EachOnError(word string) *NodeBuilder { n.eachOf().OnError = word; return n }

// Concurrency bounds the units in flight at once. Of dags.
func (n *NodeBuilder) Concurrency(most int) *NodeBuilder { n.eachOf().Concurrency = most; return n }

func (n *NodeBuilder) eachOf() *EachOf {
	if n.n.Each == nil {
		n.n.Each = &EachOf{}
	}
	return n.n.Each
}

// If runs it only if its input contains a pattern. Of dags.
func (n *NodeBuilder) If(pattern any) *NodeBuilder {
	n.whenOf().If = n.marshalValue("when.if", pattern)
	return n
}

// IfNot runs it only if its input does not contain a pattern. Of dags.
func (n *NodeBuilder) IfNot(pattern any) *NodeBuilder {
	n.whenOf().IfNot = n.marshalValue("when.if_not", pattern)
	return n
}

// When runs it only if an expression in CEL is true. Of dags.
func (n *NodeBuilder) When(cel string) *NodeBuilder { n.whenOf().Expr = cel; return n }

// SkipIf asks a service whether to skip it. Of dags.
func (n *NodeBuilder) SkipIf(service string) *NodeBuilder {
	n.whenOf().Cond = &Handler{Service: service}
	return n
}

func (n *NodeBuilder) whenOf() *When {
	if n.n.When == nil {
		n.n.When = &When{}
	}
	return n.n.When
}

// Shape says what its handler gets. Of dags.
func (n *NodeBuilder) Shape(s flow.Shape) *NodeBuilder { n.n.InputShape = string(s); return n }

// Skipping says what it means for others when it is skipped. Of dags.
func (n *NodeBuilder) Skipping(m flow.SkipMode) *NodeBuilder { n.n.SkipMode = string(m); return n }

// Exhausted says what its last failed attempt means: SkipFail, SkipOptional or SkipPropagate. Of
// dags.
func (n *NodeBuilder) Exhausted(m flow.SkipMode) *NodeBuilder { n.n.Exhausted = string(m); return n }

// writtenDuration returns a duration as it is written in a definition. One that is finer than a
// millisecond stays, so that reading it is an error.
func writtenDuration(d time.Duration) Duration {
	written := Duration{MS: d.Milliseconds()}
	if d%time.Millisecond != 0 {
		written.exact = d
	}
	return written
}

// milliseconds returns a duration in milliseconds, see Builder.milliseconds.
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
