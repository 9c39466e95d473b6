package compile

import (
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// fields refuses what a node says and its kind has no use for: whoever wrote it expects something of it.
func (c *dagChecker) fields(n *define.Node, kind flow.Kind, at *define.Place) {
	refuse := func(given bool, field, why string) {
		if given {
			c.Errorf(at.Key(field), "%s", why)
		}
	}
	if kind == flow.KindOutput {
		refuse(n.When != nil, "when", "an output has no condition")
		refuse(n.Each != nil, "each", "an output is one unit")
		refuse(n.RunOn != "", "run_on", "an output runs whatever has become of the leaves: leave it out")
		refuse(n.SkipMode != "", "skip_mode", "an output has no condition that could skip it")
		refuse(n.Exhausted != "", "on_exhausted", "an output that fails has failed: leave it out")
		refuse(n.Compensate != "", "compensate", "nothing undoes an output")
	}
	if kind != flow.KindExecutor && kind != flow.KindFanout {
		refuse(n.Each != nil && kind != flow.KindOutput, "each", "only an executor has units")
		refuse(!n.StartDelay.IsZero(), "start_delay", "only the units of an executor can begin later")
		refuse(n.Route != "" && kind != flow.KindOutput, "route", "only jobs of an executor travel")
	}
	refuse(len(n.OutputType) > 0 && kind != flow.KindExecutor && kind != flow.KindFanout, "output_type", "only what an executor returns has a type")
	if err := flow.CheckName("the name", n.Name); err != nil {
		c.Errorf(at.Key("name"), "%s", err)
	}
	refuse(n.Flow != nil && kind != flow.KindBranch, "flow", "only a branch has a flow inside: set kind: branch")
	c.saidTwice(n, at)
	c.idleOn(n, kind, at)
	if w := n.When; w != nil && len(w.If) == 0 && len(w.IfNot) == 0 && w.Expr == "" && w.Cond == nil {
		c.Errorf(at.Key("when"), "says nothing: write if, if_not, expr or cond")
	}
}

// idleOn warns of what is of use to kinds that somebody works for.
func (c *dagChecker) idleOn(n *define.Node, kind flow.Kind, at *define.Place) {
	switch kind {
	case flow.KindTimer:
		c.idleFields("a timer", append(handlerFields(n), idle{"on_exhausted", n.Exhausted != "", "it does not fail"}), at)
	case flow.KindWaitEvent:
		c.idleFields("a wait_event", handlerFields(n), at)
	case flow.KindApproval:
		c.idleFields("an approval", handlerFields(n), at)
	case flow.KindBranch:
		c.idleFields("a branch", branchFields(n), at)
	}
}

func (c *dagChecker) idleFields(on string, fields []idle, at *define.Place) {
	for _, f := range fields {
		if f.written {
			c.Warnf(at.Key(f.name), "has no effect on %s: %s", on, f.instead)
		}
	}
}

// handlerFields are about who works for a node, and what they get.
func handlerFields(n *define.Node) []idle {
	const nobody = "nobody works for it"
	asked := n.When != nil && n.When.Cond != nil
	return []idle{
		{"service", n.Service != "", nobody}, {"func", n.Func != "", nobody}, {"script", n.Script != nil, nobody},
		{"deferred", n.Deferred, nobody}, {"retry", n.Retry != nil && !asked, nobody}, {"labels", len(n.Labels) > 0 && !asked, nobody}, {"input_shape", n.InputShape != "", nobody},
		{"input", len(n.Input) > 0, nobody}, {"inputs", len(n.Inputs) > 0, nobody}, {"prep", !n.Prep.Empty(), nobody},
	}
}

// branchFields are those that the nodes of a branch would have to have, and what only its own handlers hear.
func branchFields(n *define.Node) []idle {
	const nodes, inside, alone = "its nodes do the work", "give it to the nodes inside", "it has no handler of its own; give it to the nodes inside"
	fields := []idle{{"service", n.Service != "", nodes}, {"input", len(n.Input) > 0, "write prep"}, {"inputs", len(n.Inputs) > 0, "write prep"}}
	if n.Flow == nil || n.Flow.Definition == nil || ModeOf(n.Flow.Definition) != flow.ModeDag {
		return fields // the nodes of a graph take some of it over
	}
	handled := n.Prep.Given() || n.When != nil && n.When.Cond != nil
	return append(fields, []idle{
		{"func", n.Func != "", nodes}, {"script", n.Script != nil, nodes},
		{"deferred", n.Deferred, inside}, {"on_exhausted", n.Exhausted != "", inside}, {"params", len(n.Params) > 0, inside},
		{"retry", n.Retry != nil && !handled, alone}, {"labels", len(n.Labels) > 0 && !handled, alone},
		{"timeout", !n.Timeout.IsZero() && !handled, alone}, {"timeout_ms", n.TimeoutMS > 0 && !handled, alone},
	}...)
}
