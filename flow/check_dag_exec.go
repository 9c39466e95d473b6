package flow

import "github.com/troupe-engine/troupe/flow/expr"

func (c *dagChecker) route(word string, at *place) {
	if _, known := routes[word]; !known && word != "" {
		c.errorf(at.key("route"), "unknown word %.80q: write push, queue or direct", word)
	}
}

// dagExec checks how a node's jobs travel.
func (c *dagChecker) dagExec(n *Node, e *Exec, at *place) {
	own, route := c.by.set.routed(n)
	c.exec(own, at)
	c.route(route, at)
	if said := word(own.ExecType, own.ExecMode); n.Route != "" && said != "" && routes[n.Route] != "" && said != routes[n.Route] {
		c.errorf(at.key("route"), "says otherwise than exec_type: give one of them")
	}
	if e.Type == ExecDirect {
		if !e.idle() {
			c.errorf(at.key("route"), "a direct node has no handler: leave out its service, func or script, or choose another route")
		}
		c.claimTimes(e, n, at)
		return
	}
	idle := e.idle() && e.Type == ExecHTTP
	c.settled(e, at, !idle)
	if idle {
		c.errorf(at, "has nothing to do: give it a service, a func, a script or route: direct")
	}
	c.claimTimes(e, n, at)
}

// claimTimes checks the deadlines of jobs that somebody has to claim.
func (c *dagChecker) claimTimes(e *Exec, n *Node, at *place) {
	c.duration(n.StartTimeout, at.key("start_timeout"))
	c.duration(n.HeartbeatTimeout, at.key("heartbeat_timeout"))
	if e.Type != ExecQueue && (e.StartMS > 0 || e.HeartbeatMS > 0) {
		c.errorf(at, "start_timeout and heartbeat_timeout are for jobs that wait in a queue: set route: queue")
	}
}

// tries checks retry, of the node or the flow.
func (c *dagChecker) tries(n *Node, at *place) {
	c.retry(n.Retry, c.by.profile, at.key("retry"))
	if n.MaxRetries > 0 || n.WaitMS > 0 {
		c.count(n.MaxRetries, at.key("max_retries"))
		c.milliseconds(n.WaitMS, at.key("wait_ms"))
	}
}

// times checks a node's deadlines.
func (c *dagChecker) times(n *Node, at *place) {
	c.milliseconds(n.TimeoutMS, at.key("timeout_ms"))
	c.timeout(Duration{MS: n.TimeoutMS}, c.by.profile, at.key("timeout_ms"))
	c.timeout(n.Timeout, c.by.profile, at.key("timeout"))
}

// closingNode checks a node that only runs when the task is over.
func (c *dagChecker) closingNode(n *Node, p *PlanNode, at *place) {
	if plainClosing(n) {
		c.checker.closingNode(n, p, at)
		return
	}
	c.post(n.Post, at.key("post"))
	c.params(n.Params, at.key("params"))
	c.prep(n.Prep, false, at.key("prep"))
	c.dagExec(n, &p.Exec, at)
	c.tries(n, at)
	c.times(n, at)
}

// unfold checks exec, delay and signal, which are other ways to write fields that graph mode has, too.
func (c *dagChecker) unfold(n *Node, at *place) {
	c.unfoldExec(n, at.key("exec"))
	key := signalKeys[Kind(n.Kind)]
	delay, signal := at.key("delay"), at.key("signal")
	if !n.Delay.IsZero() {
		if Kind(n.Kind) != KindTimer {
			c.errorf(delay, "is for a timer: units of other nodes wait by start_delay")
		}
		c.duration(n.Delay, delay)
		c.once(n, "delay_ms", delay)
	}
	if n.Signal == nil {
		return
	}
	if key == "" {
		c.errorf(signal, "is for a wait_event or an approval")
		return
	}
	if n.Signal.Key != "" {
		c.once(n, key, signal.key("key"))
	}
	if t := n.Signal.Timeout; !t.IsZero() {
		c.duration(t, signal.key("timeout"))
		c.once(n, "timeout_ms", signal.key("timeout"))
	}
}

func (c *dagChecker) unfoldExec(n *Node, at *place) {
	switch e := n.Exec; {
	case e == nil:
	case n.saysExec():
		c.errorf(at, "says the same as service, func, script and exec_type: give one of them")
	case e.Type != "" && e.Type != execService && e.Type != execFunc:
		c.errorf(at.key("type"), "unknown word %.80q: write service or func; for a program write script in the place of exec", e.Type)
	case e.Service != "" && (e.Func != "" || e.Type == execFunc), e.Func != "" && e.Type == execService:
		c.errorf(at, "is a service or a func, not both")
	}
}

// once refuses a param that is written in two ways.
func (c *dagChecker) once(n *Node, name string, at *place) {
	if _, twice := expr.Field(n.Params, name); twice {
		c.errorf(at, "says the same as params.%s: give one of them", name)
	}
}
