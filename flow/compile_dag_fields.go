package flow

// fields refuses what a node says and its kind has no use for: whoever wrote it expects something of it.
func (c *dagCompiler) fields(src *dagSource, kind Kind) {
	n, at := src.n, src.at
	refuse := func(given bool, field, why string) {
		if given {
			c.errorf(at.key(field), "%s", why)
		}
	}
	if kind == KindOutput {
		refuse(n.When != nil, "when", "an output has no condition")
		refuse(n.Each != nil, "each", "an output is one unit")
		refuse(n.RunOn != "", "run_on", "an output runs whatever has become of the leaves: leave it out")
		refuse(n.SkipMode != "", "skip_mode", "an output has no condition that could skip it")
		refuse(n.Exhausted != "", "on_exhausted", "an output that fails has failed: leave it out")
		refuse(n.Compensate != "", "compensate", "nothing undoes an output")
	}
	if kind != KindExecutor && kind != KindFanout {
		refuse(n.Each != nil && kind != KindOutput, "each", "only an executor has units")
		refuse(!n.StartDelay.IsZero(), "start_delay", "only the units of an executor can begin later")
		refuse(n.Route != "" && kind != KindOutput, "route", "only jobs of an executor travel")
	}
	refuse(n.Flow != nil && kind != KindBranch, "flow", "only a branch has a flow inside: set kind: branch")
	refuse(n.Retry != nil && (n.MaxRetries > 0 || n.WaitMS > 0), "retry", "says the same as max_retries and wait_ms: give one of them")
	refuse(!n.Timeout.IsZero() && n.TimeoutMS > 0, "timeout", "says the same as timeout_ms: give one of them")
	if w := n.When; w != nil && len(w.If) == 0 && len(w.IfNot) == 0 && w.Expr == "" && w.Cond == nil {
		c.errorf(at.key("when"), "says nothing: write if, if_not, expr or cond")
	}
}
