package define

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Builder puts a definition together in Go. Nodes are named by what Node returns, so that none can be
// misspelled; everything else is checked as it is in a text, when the definition is published.
//
//	b := define.NewDag("report")
//	fetch := b.Node("fetch").Service("fetch")
//	b.Node("score").Service("score").After(fetch).Each(fetch.Out("rows")).Concurrency(10)
//	text, err := b.JSON()
type Builder struct {
	d       *Definition
	problem error
}

// NewDag begins a flow whose nodes wait for each other.
func NewDag(name string) *Builder {
	return &Builder{d: &Definition{Name: name, Mode: string(flow.ModeDag), Nodes: map[string]*Node{}}}
}

// NewGraph begins a flow whose nodes are joined by edges.
func NewGraph(name string) *Builder {
	return &Builder{d: &Definition{Name: name, Mode: string(flow.ModeGraph), Nodes: map[string]*Node{}}}
}

func (b *Builder) isDag() bool { return b.d.Mode == string(flow.ModeDag) }

// Describe says what the flow is for.
func (b *Builder) Describe(text string) *Builder { b.d.Description = text; return b }

// Profile takes the defaults of a profile.
func (b *Builder) Profile(p flow.Profile) *Builder { b.d.Profile = string(p); return b }

// FailFast ends the task, or in graph mode the scope, at the first failed step.
func (b *Builder) FailFast() *Builder {
	b.d.OnError = OnErrorFail
	if b.isDag() {
		b.d.OnError = OnErrorFailFast
	}
	return b
}

// Timeout bounds the whole task.
func (b *Builder) Timeout(d time.Duration) *Builder { b.d.TimeoutMS = d.Milliseconds(); return b }

// Shape says what handlers get.
func (b *Builder) Shape(s flow.Shape) *Builder { b.d.InputShape = string(s); return b }

// Result names the key of shared that is the task's result, in graph mode.
func (b *Builder) Result(key string) *Builder { b.d.Result = key; return b }

// Start is where a task of graph mode begins.
func (b *Builder) Start(n *NodeBuilder) *Builder { b.d.Start = n.key; return b }

// Finally runs when everything else is over, whatever happened.
func (b *Builder) Finally(n *NodeBuilder) *Builder { b.d.Finally = n.key; return b }

// Node adds a node.
func (b *Builder) Node(key string) *NodeBuilder {
	if b.d.Nodes[key] != nil {
		b.fail("there is a node %q already", key)
	}
	n := &Node{order: len(b.d.Nodes)}
	b.d.Nodes[key] = n
	return &NodeBuilder{b: b, key: key, n: n}
}

// Branch adds a node with a flow of its own inside.
func (b *Builder) Branch(key string, inside *Builder) *NodeBuilder {
	n := b.Node(key)
	n.n.Kind = string(flow.KindSubflow)
	if b.isDag() {
		n.n.Kind = string(flow.KindBranch)
	}
	switch {
	case inside.problem != nil:
		b.fail("%s: %w", key, inside.problem)
	case inside.d.holds(b.d):
		b.fail("%s: a flow cannot be inside itself", key)
	default:
		n.n.Flow = &Inner{Definition: inside.d}
	}
	return n
}

// holds says whether a definition is another one, or has it inside.
func (d *Definition) holds(other *Definition) bool {
	if d == other {
		return true
	}
	for _, n := range d.Nodes {
		if n.Flow != nil && n.Flow.holds(other) {
			return true
		}
	}
	return false
}

// Output adds the node of a dag whose output is the flow's.
func (b *Builder) Output(key string) *NodeBuilder { return b.Node(key).Kind(flow.KindOutput) }

func (b *Builder) fail(format string, args ...any) {
	if b.problem == nil {
		b.problem = fmt.Errorf("flow: "+format, args...)
	}
}

// Definition is what has been built, or the first mistake in how that was done.
func (b *Builder) Definition() (*Definition, error) {
	if b.problem != nil {
		return nil, b.problem
	}
	return b.d, nil
}

// JSON is the definition as a text that can be published.
func (b *Builder) JSON() ([]byte, error) {
	d, err := b.Definition()
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// MarshalJSON writes a definition with its nodes in their order, which encoding/json would sort.
func (d Definition) MarshalJSON() ([]byte, error) {
	type plain Definition
	return json.Marshal(struct {
		*plain
		Nodes orderedNodes `json:"nodes"`
	}{(*plain)(&d), d.Nodes})
}

type orderedNodes map[string]*Node

// MarshalJSON writes the nodes in their order.
func (nodes orderedNodes) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, key := range InOrder(nodes) {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		node, err := json.Marshal(nodes[key])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), node...)
	}
	return append(b, '}'), nil
}
