package compile

import "github.com/troupe-engine/troupe/flow/define"

// idle is a field that has no effect where it is written, and what to write instead.
type idle struct {
	name    string
	written bool
	instead string
}

// idleInDag warns of what a node of a dag says that only graph mode hears.
func (c *checker) idleInDag(n *define.Node, at *define.Place) {
	for _, f := range []idle{
		{"post", n.Post.OutputKey != "" || len(n.Post.OutputMap) > 0 || n.Post.ActionStatic != "" || n.Post.ActionKey != "",
			"those that depend on a node get its output"},
		{"choice_cases", len(n.ChoiceCases) > 0, "give the nodes that depend on it a when"},
		{"default_action", n.DefaultAction != "", "give the nodes that depend on it a when"},
		{"parallel_services", len(n.ParallelServices) > 0, "write a node for each"},
		{"parallel_execs", len(n.ParallelExecs) > 0, "write a node for each"},
		{"foreach_execs", len(n.ForeachExecs) > 0, "its units are carried out alike"},
		{"parallel_mode", n.ParallelMode != "", "write each: {concurrency: …}"},
		{"max_parallel", n.MaxParallel != 0, "write each: {concurrency: …}"},
		{"failure_strategy", n.FailureStrategy != "", "write on_exhausted, or each: {on_error: …}"},
		{"on_error", n.OnError != "", "write on_exhausted, or on_error of the flow"},
	} {
		if f.written {
			c.Warnf(at.Key(f.name), "has no effect in a dag: %s", f.instead)
		}
	}
}

// idleInGraph tells what a node of graph mode says that only a dag hears. Without some of it the node would
// run at another time, or another number of times, than was meant.
func (c *checker) idleInGraph(n *define.Node, at *define.Place) {
	for _, f := range []idle{
		{"depends_on", len(n.DependsOn) > 0, "write edges, or leave out start and edges, which make the flow a graph"},
		{"run_on", n.RunOn != "", "write an edge for error, or finally"},
		{"each", n.Each != nil, "write kind: foreach"},
		{"when", n.When != nil, "write kind: choice"},
		{"exec", n.Exec != nil && n.Exec.Program() == nil, "write service, func or script"},
		{"delay", !n.Delay.IsZero(), "write params: {delay_ms: …}"},
		{"signal", n.Signal != nil, "write params"},
	} {
		if f.written {
			c.Errorf(at.Key(f.name), "belongs to a dag: %s", f.instead)
		}
	}
	for _, f := range []idle{
		{"name", n.Name != "", "a node is called by its key"},
		{"output_type", len(n.OutputType) > 0, "write kind: choice behind it"},
		{"skip_mode", n.SkipMode != "", "write kind: choice"},
		{"whenUnmet", n.WhenUnmet != "", "write kind: choice"},
		{"on_exhausted", n.Exhausted != "", "write an edge for error"},
		{"input_shape", n.InputShape != "", "write prep"},
		{"input", len(n.Input) > 0, "write prep"},
		{"inputs", len(n.Inputs) > 0, "write prep"},
		{"start_delay", !n.StartDelay.IsZero(), "write a node of kind timer"},
		{"start_timeout", !n.StartTimeout.IsZero() && !byFiles(n), "write timeout"},
		{"heartbeat_timeout", !n.HeartbeatTimeout.IsZero() && !byFiles(n), "write visibility_ms"},
	} {
		if f.written {
			c.Warnf(at.Key(f.name), "has no effect in a graph: %s", f.instead)
		}
	}
}
