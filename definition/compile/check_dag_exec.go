package compile

import (
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

func (c *dagChecker) checkRoute(word string, at *definition.Place) {
	if _, known := routes[word]; !known && word != "" {
		c.Errorf(at.Key("route"), "unknown word %.80q: write push, queue or direct", word)
	}
}

// checkDagExec checks how the jobs of a node are delivered.
func (c *dagChecker) checkDagExec(n *definition.Node, e *flow.Exec, at *definition.Place) {
	own, route := c.scopeLowerer.defaults.applyRoute(n)
	c.checkExec(own, false, at)
	c.checkRoute(route, at)
	if n.Service != "" && n.Func != "" && execTypeOf(n.ExecType, n.ExecMode) == "" && n.Route == "" {
		c.Errorf(at.Key("service"), "has no effect beside func, which is called: give one of them, or exec_type")
	}
	if said := execTypeOf(own.ExecType, own.ExecMode); n.Route != "" && said != "" && routes[n.Route] != "" && said != routes[n.Route] {
		c.Errorf(at.Key("route"), "says otherwise than exec_type: give one of them")
	}
	if e.Type == flow.ExecDirect {
		if !idleExec(e) {
			c.Errorf(at.Key("route"), "a direct node has no handler: leave out its service, func or script, or choose another route")
		}
		c.checkClaimTimes(n, at)
		return
	}
	idle := idleExec(e) && (e.Type == flow.ExecPush || e.Type == flow.ExecRemote)
	c.checkExecComplete(e, at, !idle, false)
	if idle {
		c.Errorf(at, "has nothing to do: give it a service, a func, a script or route: direct")
	}
	c.checkClaimTimes(n, at)
}

// checkClaimTimes checks the timeouts of jobs that must be claimed.
func (c *dagChecker) checkClaimTimes(n *definition.Node, at *definition.Place) {
	c.checkDuration(n.StartTimeout, at.Key("start_timeout"))
	c.checkDuration(n.HeartbeatTimeout, at.Key("heartbeat_timeout"))
}

// checkNodeRetry checks the retry of a node or of the defaults.
func (c *dagChecker) checkNodeRetry(n *definition.Node, at *definition.Place) {
	c.checkRetry(n.Retry, c.scopeLowerer.profile, at.Key("retry"))
}

// checkTimes checks the timeouts of a node.
func (c *dagChecker) checkTimes(n *definition.Node, at *definition.Place) {
	c.checkMilliseconds(n.TimeoutMS, at.Key("timeout_ms"))
	c.checkTimeout(definition.Duration{MS: n.TimeoutMS}, c.scopeLowerer.profile, at.Key("timeout_ms"))
	c.checkTimeout(n.Timeout, c.scopeLowerer.profile, at.Key("timeout"))
}

// closingNode checks a node that only runs during the closing.
func (c *dagChecker) closingNode(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	if plainClosing(n) {
		c.checker.closingNode(n, p, at)
		return
	}
	c.checkNodeFields(graphSpot(n, p, false, true), false, at)
	c.checkPost(n.Post, at.Key("post"))
	c.checkParams(n.Params, at.Key("params"))
	c.checkPrep(n.Prep, false, at.Key("prep"))
	c.checkDagExec(n, &p.Exec, at)
	c.checkEnv(n, p.Kind, nil, at)
	c.checkNodeRetry(n, at)
	c.checkTimes(n, at)
	c.checkNodeKeyFields(n, p, at)
	c.withParams(c.rootParams, func() { c.graphRefs(n, p, at) })
}

// checkUnfolded checks exec, delay and signal. These are other notations for fields that graph mode
// also has.
func (c *dagChecker) checkUnfolded(n *definition.Node, at *definition.Place) {
	c.checkUnfoldedExec(n, at)
	key := signalKeys[flow.Kind(n.Kind)]
	delay, signal := at.Key("delay"), at.Key("signal")
	if !n.Delay.IsZero() && flow.Kind(n.Kind) == flow.KindTimer {
		c.checkDuration(n.Delay, delay)
		c.checkOnce(n, "delay_ms", delay)
	}
	if n.Signal == nil || key == "" {
		return
	}
	if n.Signal.Key != "" {
		c.checkOnce(n, key, signal.Key("key"))
	}
	if t := n.Signal.Timeout; !t.IsZero() {
		if flow.Kind(n.Kind) == flow.KindApproval {
			c.Errorf(signal.Key("timeout"), "has no effect on an approval: write timeout of the node")
		}
		c.checkDuration(t, signal.Key("timeout"))
		c.checkOnce(n, "timeout_ms", signal.Key("timeout"))
	}
}

func (c *dagChecker) checkUnfoldedExec(n *definition.Node, at *definition.Place) {
	switch e := n.Exec; {
	case e.Program() != nil && !isLocalProgram(n):
		c.checkProgram(n, at)
	case e == nil || e.Program() != nil:
	case saysExec(n):
		c.Errorf(at.Key("exec"), "says the same as service, func, script and exec_type: give one of them")
	case e.Type != "" && e.Type != execService && e.Type != execFunc:
		c.Errorf(at.Key("exec").Key("type"),
			"unknown word %.80q: write service, func, process, python, library, container or worker", e.Type)
	case e.Service != "" && (e.Func != "" || e.Type == execFunc), e.Func != "" && e.Type == execService:
		c.Errorf(at.Key("exec"), "is a service or a func, not both")
	}
	if n.Exec != nil && n.Exec.Program() == nil {
		c.refuseProgramFields(n.Exec, at.Key("exec"))
	}
}

// checkOnce reports a param that is written in two notations.
func (c *dagChecker) checkOnce(n *definition.Node, name string, at *definition.Place) {
	if _, twice := expr.Field(n.Params, name); twice {
		c.Errorf(at, "says the same as params.%s: give one of them", name)
	}
}
