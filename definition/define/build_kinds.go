package define

import (
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

const kindChoice = string(flow.KindChoice)

// Node adds a node with one job: an executor, unless its methods make it another kind.
func (b *Builder) Node(key string) *NodeBuilder {
	if b.definition.Nodes[key] != nil {
		b.recordError("there is a node %q already", key)
	}
	n := definition.NewNode(len(b.definition.Nodes))
	b.definition.Nodes[key] = n
	if !b.isDag() && b.definition.Start == "" {
		b.definition.Start = key
	}
	return &NodeBuilder{b: b, key: key, n: n}
}

// Choice adds a node that decides by the first case that is true. See Case and Otherwise. For
// graphs only.
func (b *Builder) Choice(key string) *NodeBuilder { return b.Node(key).Kind(flow.KindChoice) }

// Parallel adds a node with a branch for each service. For graphs only.
func (b *Builder) Parallel(key string, services ...string) *NodeBuilder {
	n := b.Node(key).Kind(flow.KindParallel)
	n.n.ParallelServices = services
	return n
}

// Foreach adds a node with a unit for each item of a list. For graphs only.
func (b *Builder) Foreach(key string, items Ref) *NodeBuilder {
	return b.Node(key).Kind(flow.KindForeach).From(items)
}

// Fanout adds a node with a unit for each item of a list. For dags only.
func (b *Builder) Fanout(key string, items Ref) *NodeBuilder {
	return b.Node(key).Kind(flow.KindFanout).Each(items)
}

// Map adds a node with a unit for each item of its only dependency's output, or of the task's
// input. For dags only.
func (b *Builder) Map(key string) *NodeBuilder { return b.Node(key).Kind("map") }

// Timer adds a node that waits for a duration.
func (b *Builder) Timer(key string, d time.Duration) *NodeBuilder {
	n := b.Node(key).Kind(flow.KindTimer)
	return n.Params(map[string]int64{"delay_ms": n.milliseconds(d, "the delay")})
}

// WaitEvent adds a node that waits until a signal sets the value of a reference, such as
// Shared("paid").
func (b *Builder) WaitEvent(key string, signal Ref) *NodeBuilder {
	return b.Node(key).Kind(flow.KindWaitEvent).Params(map[string]Ref{"signal_key": signal})
}

// Approval adds a node that waits until a signal sets the decision at a reference, such as
// Shared("approved"). The value true leads to the action approved, false to rejected, and a text to
// the action of that name.
func (b *Builder) Approval(key string, decision Ref) *NodeBuilder {
	return b.Node(key).Kind(flow.KindApproval).Params(map[string]Ref{"approval_key": decision})
}

// Subflow adds a node with a nested flow of either mode to a graph. Branch adds such a node to a
// flow of either mode.
func (b *Builder) Subflow(key string, inside *Builder) *NodeBuilder { return b.Branch(key, inside) }

// Branch adds a node with a nested flow.
func (b *Builder) Branch(key string, inside *Builder) *NodeBuilder {
	n := b.addNested(key)
	switch {
	case inside == nil:
		b.recordError("node %q: the flow inside is nil: give what NewDag or NewGraph returns", key)
	case inside.problem != nil:
		b.recordError("%s: %w", key, inside.problem)
	case containsDefinition(inside.definition, b.definition):
		b.recordError("%s: a flow cannot be inside itself", key)
	default:
		n.n.Flow = &definition.Inner{Definition: inside.definition}
	}
	return n
}

// Published adds a node with a published flow inside. Publishing the outer flow embeds the newest
// version of the published flow.
func (b *Builder) Published(key, slug string) *NodeBuilder {
	n := b.addNested(key)
	n.n.Flow = &definition.Inner{Name: slug}
	return n
}

func (b *Builder) addNested(key string) *NodeBuilder {
	if b.isDag() {
		return b.Node(key).Kind(flow.KindBranch)
	}
	return b.Node(key).Kind(flow.KindSubflow)
}

// containsDefinition reports whether a definition is or contains another one.
func containsDefinition(d, other *definition.Definition) bool {
	if d == other {
		return true
	}
	for _, n := range d.Nodes {
		if n.Flow != nil && n.Flow.Definition != nil && containsDefinition(n.Flow.Definition, other) {
			return true
		}
	}
	return false
}

// Output adds the node of a dag whose output is the output of the flow.
func (b *Builder) Output(key string) *NodeBuilder { return b.Node(key).Kind(flow.KindOutput) }
