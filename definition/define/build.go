package define

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// Builder builds a definition in Go. Nodes are referenced by the values that Node returns, so their
// names cannot be misspelled. Everything else is checked when the definition is published.
//
//	b := define.NewDag("report")
//	fetch := b.Node("fetch").Service("fetch")
//	b.Fanout("score", fetch.Output("rows")).Service("score").After(fetch).Concurrency(10)
//	text, err := b.JSON()
type Builder struct {
	definition *definition.Definition
	problem    error
}

// NewDag starts a flow whose nodes depend on each other.
func NewDag(name string) *Builder {
	return &Builder{definition: &definition.Definition{Name: name, Mode: string(flow.ModeDag), Nodes: map[string]*definition.Node{}}}
}

// NewGraph starts a flow whose nodes are connected by edges. A task begins at the first node,
// unless Start sets another node.
func NewGraph(name string) *Builder {
	return &Builder{definition: &definition.Definition{Name: name, Mode: string(flow.ModeGraph), Nodes: map[string]*definition.Node{}}}
}

func (b *Builder) isDag() bool { return b.definition.Mode == string(flow.ModeDag) }

// Describe sets the description of the flow.
func (b *Builder) Describe(text string) *Builder { b.definition.Description = text; return b }

// Profile sets the profile, which defines the defaults.
func (b *Builder) Profile(p flow.Profile) *Builder { b.definition.Profile = string(p); return b }

// FailFast ends the task, or in graph mode the scope, at the first failed step.
func (b *Builder) FailFast() *Builder {
	b.definition.OnError = definition.OnErrorFail
	if b.isDag() {
		b.definition.OnError = definition.OnErrorFailFast
	}
	return b
}

// OnError sets the effect of a failed step on the others: OnErrorFail or OnErrorFollow in a graph,
// OnErrorContinue or OnErrorFailFast in a dag.
func (b *Builder) OnError(word string) *Builder { b.definition.OnError = word; return b }

// OnMissing sets the result of a comparison with a missing value, in JSON conditions of graphs:
// OnMissingFail or OnMissingCoerce.
func (b *Builder) OnMissing(word string) *Builder { b.definition.OnMissing = word; return b }

// Defaults sets the defaults of the nodes of a dag.
func (b *Builder) Defaults(d definition.Defaults) *Builder { b.definition.Defaults = d; return b }

// Timeout limits the whole task.
func (b *Builder) Timeout(d time.Duration) *Builder {
	b.definition.TimeoutMS = b.milliseconds(d, "the timeout")
	return b
}

// Shape sets the form of the input of handlers.
func (b *Builder) Shape(s flow.Shape) *Builder { b.definition.InputShape = string(s); return b }

// Result sets the key of shared whose value is the task's result, in graph mode.
func (b *Builder) Result(key string) *Builder { b.definition.Result = key; return b }

// Start sets the node where a task of graph mode begins.
func (b *Builder) Start(n *NodeBuilder) *Builder {
	b.definition.Start = b.keyOf(n, "the start")
	return b
}

// Finally sets the node that runs after everything else, however the task ends.
func (b *Builder) Finally(n *NodeBuilder) *Builder {
	b.definition.Finally = b.keyOf(n, "the last node")
	return b
}

// keyOf returns the key of a node of this flow. It records an error that names the given role if
// the node is nil or belongs to another flow.
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

// milliseconds returns a duration in milliseconds, the smallest unit of a definition. It records an
// error for the given field if the duration is finer.
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

// Definition returns the definition, or the first error of a builder method.
func (b *Builder) Definition() (*definition.Definition, error) {
	if b.problem != nil {
		return nil, b.problem
	}
	return b.definition, nil
}

// JSON returns the definition as a text that can be published.
func (b *Builder) JSON() ([]byte, error) {
	d, err := b.Definition()
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// Schedule sets the schedule at which tasks start.
func (b *Builder) Schedule(s definition.Schedule) *Builder { b.definition.Schedule = &s; return b }
