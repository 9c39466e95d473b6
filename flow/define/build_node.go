package define

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// NodeBuilder says what a node is. Its methods return it, so that they can be chained.
type NodeBuilder struct {
	b   *Builder
	key string
	n   *Node
}

// Out is a reference to the node's output, or to a part of it, for nodes of a dag that come after it.
func (n *NodeBuilder) Out(path ...string) string {
	ref := "$deps." + n.key
	for _, p := range path {
		ref += "." + p
	}
	return ref
}

// Kind makes it a node of a kind.
func (n *NodeBuilder) Kind(k flow.Kind) *NodeBuilder { n.n.Kind = string(k); return n }

// Service has workers carry it out that offer the service.
func (n *NodeBuilder) Service(name string) *NodeBuilder { n.n.Service = name; return n }

// Func has a function of the member carry it out.
func (n *NodeBuilder) Func(name string) *NodeBuilder {
	n.n.ExecType, n.n.Func = string(flow.ExecFunc), name
	return n
}

// Script has the member run a program.
func (n *NodeBuilder) Script(s flow.Script) *NodeBuilder {
	n.n.ExecType, n.n.Script = string(flow.ExecScript), &s
	return n
}

// Queue has its jobs wait until a worker asks for them.
func (n *NodeBuilder) Queue() *NodeBuilder { n.n.Route = flow.RouteQueue; return n }

// Direct leaves it to be completed through the API.
func (n *NodeBuilder) Direct() *NodeBuilder { n.n.Route = flow.RouteDirect; return n }

// Labels are what a worker has to have.
func (n *NodeBuilder) Labels(labels ...string) *NodeBuilder { n.n.Labels = labels; return n }

// Params of the node; an object.
func (n *NodeBuilder) Params(v any) *NodeBuilder { n.n.Params = n.value("params", v); return n }

// From makes a reference the node's input.
func (n *NodeBuilder) From(ref string) *NodeBuilder { n.n.Prep.InputKey = ref; return n }

// Input sets a field of the input to a constant; with others like it they are the whole input. Of dags.
func (n *NodeBuilder) Input(field string, v any) *NodeBuilder {
	return n.bind(field, Binding{Const: n.value("inputs."+field, v)})
}

// InputFrom sets a field of the input to what a reference means. Of dags.
func (n *NodeBuilder) InputFrom(field, ref string) *NodeBuilder {
	return n.bind(field, Binding{Ref: ref})
}

func (n *NodeBuilder) bind(field string, b Binding) *NodeBuilder {
	if n.n.Inputs == nil {
		n.n.Inputs = map[string]Binding{}
	}
	n.n.Inputs[field] = b
	return n
}

// To writes the node's output to a key of shared. Of graphs.
func (n *NodeBuilder) To(key string) *NodeBuilder { n.n.Post.OutputKey = key; return n }

// Action is what the node ends with. Of graphs.
func (n *NodeBuilder) Action(action string) *NodeBuilder { n.n.Post.ActionStatic = action; return n }

// ActionFrom takes the action from a field of the output. Of graphs.
func (n *NodeBuilder) ActionFrom(field string) *NodeBuilder { n.n.Post.ActionKey = field; return n }

// Then leads on to another node, whatever the action, and returns that. Of graphs.
func (n *NodeBuilder) Then(next *NodeBuilder) *NodeBuilder { n.On("default", next); return next }

// On leads on to another node for an action; "error" is the one after a failure. Of graphs.
func (n *NodeBuilder) On(action string, next *NodeBuilder) *NodeBuilder {
	n.b.d.Edges = append(n.b.d.Edges, Edge{From: n.key, Action: action, To: next.key})
	return n
}

// Case has a choice end with an action if an expression is true. Of graphs.
func (n *NodeBuilder) Case(action, cel string) *NodeBuilder {
	n.n.Kind = string(flow.KindChoice)
	n.n.ChoiceCases = append(n.n.ChoiceCases, ChoiceCase{Action: action, Expr: expr.Quote(cel)})
	return n
}

// After has it wait for other nodes. Of dags.
func (n *NodeBuilder) After(nodes ...*NodeBuilder) *NodeBuilder {
	for _, other := range nodes {
		n.n.DependsOn = append(n.n.DependsOn, other.key)
	}
	return n
}

// Always runs it also after nodes that failed or were skipped. Of dags.
func (n *NodeBuilder) Always() *NodeBuilder { n.n.RunOn = "always"; return n }

// Each makes it one unit for each item of a list. Of dags.
func (n *NodeBuilder) Each(items string) *NodeBuilder { n.each().Items = Source{Ref: items}; return n }

// EachOf makes it one unit for each item of the list that a service returns. Of dags.
func (n *NodeBuilder) EachOf(service string) *NodeBuilder {
	n.each().Items = Source{Handler: Handler{Service: service}}
	return n
}

// Times makes it so many units. Of dags.
func (n *NodeBuilder) Times(count int) *NodeBuilder {
	n.each().Count = Source{Number: count, Literal: true}
	return n
}

// Concurrency bounds the units in flight at once. Of dags.
func (n *NodeBuilder) Concurrency(most int) *NodeBuilder { n.each().Concurrency = most; return n }

func (n *NodeBuilder) each() *EachOf {
	if n.n.Each == nil {
		n.n.Each = &EachOf{}
	}
	return n.n.Each
}

// If runs it only if its input contains a pattern. Of dags.
func (n *NodeBuilder) If(pattern any) *NodeBuilder {
	n.when().If = n.value("when.if", pattern)
	return n
}

// IfNot runs it only if its input does not contain a pattern. Of dags.
func (n *NodeBuilder) IfNot(pattern any) *NodeBuilder {
	n.when().IfNot = n.value("when.if_not", pattern)
	return n
}

// When runs it only if an expression in CEL is true. Of dags.
func (n *NodeBuilder) When(cel string) *NodeBuilder { n.when().Expr = cel; return n }

// SkipIf asks a service whether to skip it. Of dags.
func (n *NodeBuilder) SkipIf(service string) *NodeBuilder {
	n.when().Cond = &Handler{Service: service}
	return n
}

func (n *NodeBuilder) when() *When {
	if n.n.When == nil {
		n.n.When = &When{}
	}
	return n.n.When
}

// Skipping says what it means for others when it is skipped. Of dags.
func (n *NodeBuilder) Skipping(m flow.SkipMode) *NodeBuilder { n.n.SkipMode = string(m); return n }

// Exhausted says what its last failed attempt means: SkipFail, SkipOptional or SkipPropagate. Of dags.
func (n *NodeBuilder) Exhausted(m flow.SkipMode) *NodeBuilder { n.n.Exhausted = string(m); return n }

// Retry tries so many times in all, with a pause in between.
func (n *NodeBuilder) Retry(attempts int, delay time.Duration) *NodeBuilder {
	n.n.Retry = &RetrySpec{MaxAttempts: attempts, Delay: duration(delay)}
	return n
}

// Backoff doubles the pause each time, up to a longest one, and leaves a part of it, 0 to 1, to chance.
// It belongs after Retry.
func (n *NodeBuilder) Backoff(longest time.Duration, jitter float64) *NodeBuilder {
	if n.n.Retry == nil {
		n.b.fail("node %q: Backoff belongs after Retry", n.key)
		return n
	}
	n.n.Retry.Backoff, n.n.Retry.MaxDelay, n.n.Retry.Jitter = BackoffExponential, duration(longest), jitter
	return n
}

// Timeout bounds each attempt; of a flow inside, all of it.
func (n *NodeBuilder) Timeout(d time.Duration) *NodeBuilder {
	n.n.TimeoutMS = d.Milliseconds()
	return n
}

// Delay has its units start later. Of dags.
func (n *NodeBuilder) Delay(d time.Duration) *NodeBuilder { n.n.StartDelay = duration(d); return n }

// Compensate names the node that undoes this one when the task fails or is canceled.
func (n *NodeBuilder) Compensate(by *NodeBuilder) *NodeBuilder { n.n.Compensate = by.key; return n }

func duration(d time.Duration) Duration { return Duration{MS: d.Milliseconds()} }

func (n *NodeBuilder) value(what string, v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		n.b.fail("node %q: %s: %w", n.key, what, err)
	}
	return b
}
