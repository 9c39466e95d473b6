package define

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Builder puts a definition together in Go. Nodes are named by what Node returns, so that none can
// be misspelled; everything else is checked as it is in a text, when the definition is published.
//
//	b := define.NewDag("report")
//	fetch := b.Node("fetch").Service("fetch")
//	b.Fanout("score", fetch.Output("rows")).Service("score").After(fetch).Concurrency(10)
//	text, err := b.JSON()
type Builder struct {
	definition *Definition
	problem    error
}

// NewDag begins a flow whose nodes wait for each other.
func NewDag(name string) *Builder {
	return &Builder{definition: &Definition{Name: name, Mode: string(flow.ModeDag), Nodes: map[string]*Node{}}}
}

// NewGraph begins a flow whose nodes are joined by edges. A task begins at the first of them,
// unless Start names another one.
func NewGraph(name string) *Builder {
	return &Builder{definition: &Definition{Name: name, Mode: string(flow.ModeGraph), Nodes: map[string]*Node{}}}
}

func (b *Builder) isDag() bool { return b.definition.Mode == string(flow.ModeDag) }

// Describe says what the flow is for.
func (b *Builder) Describe(text string) *Builder { b.definition.Description = text; return b }

// Profile takes the defaults of a profile.
func (b *Builder) Profile(p flow.Profile) *Builder { b.definition.Profile = string(p); return b }

// FailFast ends the task, or in graph mode the scope, at the first failed step.
func (b *Builder) FailFast() *Builder {
	b.definition.OnError = OnErrorFail
	if b.isDag() {
		b.definition.OnError = OnErrorFailFast
	}
	return b
}

// OnError says what a failed step means for the others: OnErrorFail or OnErrorFollow in a graph,
// OnErrorContinue or OnErrorFailFast in a dag.
func (b *Builder) OnError(word string) *Builder { b.definition.OnError = word; return b }

// OnMissing says what a comparison with something missing does, in conditions in JSON:
// OnMissingFail or OnMissingCoerce. Of graphs.
func (b *Builder) OnMissing(word string) *Builder { b.definition.OnMissing = word; return b }

// Defaults are what the nodes of a dag take that say nothing themselves.
func (b *Builder) Defaults(d Defaults) *Builder { b.definition.Defaults = d; return b }

// Timeout bounds the whole task.
func (b *Builder) Timeout(d time.Duration) *Builder {
	b.definition.TimeoutMS = b.milliseconds(d, "the timeout")
	return b
}

// Shape says what handlers get.
func (b *Builder) Shape(s flow.Shape) *Builder { b.definition.InputShape = string(s); return b }

// Result names the key of shared that is the task's result, in graph mode.
func (b *Builder) Result(key string) *Builder { b.definition.Result = key; return b }

// Start is where a task of graph mode begins.
func (b *Builder) Start(n *NodeBuilder) *Builder {
	b.definition.Start = b.keyOf(n, "the start")
	return b
}

// Finally runs when everything else is over, whatever happened.
func (b *Builder) Finally(n *NodeBuilder) *Builder {
	b.definition.Finally = b.keyOf(n, "the last node")
	return b
}

// keyOf returns the key of a node of this flow. A missing node, or one of another flow, is a
// mistake in the role that is given.
func (b *Builder) keyOf(n *NodeBuilder, role string, args ...any) string {
	switch role = fmt.Sprintf(role, args...); {
	case n == nil:
		b.recordError("%s is nil: give what Node returns", role)
	case n.b != b:
		b.recordError("%s, %q, belongs to another flow: give a node of this one", role, n.key)
	default:
		return n.key
	}
	return ""
}

// milliseconds returns a duration in milliseconds, the smallest part that is kept. A finer one is a
// mistake in the field that is given.
func (b *Builder) milliseconds(d time.Duration, field string) int64 {
	if d%time.Millisecond != 0 {
		b.recordError("%s, %s, is finer than a millisecond: round it", field, d)
	}
	return d.Milliseconds()
}

func (b *Builder) recordError(format string, args ...any) {
	if b.problem == nil {
		b.problem = fmt.Errorf("flow: "+format, args...)
	}
}

// Definition is what has been built, or the first mistake in how that was done.
func (b *Builder) Definition() (*Definition, error) {
	if b.problem != nil {
		return nil, b.problem
	}
	return b.definition, nil
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
