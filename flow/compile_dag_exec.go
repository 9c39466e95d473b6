package flow

// Words of route.
const (
	routePush   = "push"
	routeQueue  = "queue"
	routeDirect = "direct"
)

// route reads how jobs reach whoever carries them out; "" when it is not said.
func (c *compiler) route(word string, at *place) ExecType {
	switch word {
	case "":
	case routePush:
		return ExecHTTP
	case routeQueue:
		return ExecQueue
	case routeDirect:
		return ExecDirect
	default:
		c.errorf(at.key("route"), "unknown word %.80q: write push, queue or direct", word)
	}
	return ""
}

// dagExec says how a node's jobs travel.
func (c *dagCompiler) dagExec(n *Node, key string, at *place) Exec {
	route := n.Route
	if route == "" && n.ExecType == "" && n.ExecMode == "" {
		route = c.set.def.Route
		if c.set.def.ExecType != "" {
			own := *n
			own.ExecType = c.set.def.ExecType
			n = &own
		}
		if n.Func != "" || n.Script != nil {
			route = ""
		}
	}
	e := c.exec(n, Exec{}, at)
	e.Labels = n.Labels
	if t := c.route(route, at); t != "" {
		if said := word(n.ExecType, n.ExecMode); n.Route != "" && said != "" && said != t {
			c.errorf(at.key("route"), "says otherwise than exec_type: give one of them")
		}
		e.Type = t
	}
	if e.Type == ExecDirect {
		if e.Service != "" || e.Func != "" || e.Script != nil {
			c.errorf(at.key("route"), "a direct node has no handler: leave out its service, func or script, or choose another route")
		}
		c.claimTimes(&e, n, at)
		return e
	}
	if e.Type == "" && e.Func != "" {
		e.Type = ExecFunc
	}
	if e.Service == "" && e.Func == "" && e.Script == nil && c.profile == ProfilePgflow {
		e.Service = key
	}
	idle := e.Service == "" && e.Func == "" && e.Script == nil && (e.Type == "" || e.Type == ExecHTTP)
	e = c.settle(e, at, !idle)
	if idle {
		c.errorf(at, "has nothing to do: give it a service, a func, a script or route: direct")
	}
	c.claimTimes(&e, n, at)
	return e
}

// claimTimes are the deadlines of jobs that somebody has to claim.
func (c *dagCompiler) claimTimes(e *Exec, n *Node, at *place) {
	e.StartMS = c.duration(n.StartTimeout, at.key("start_timeout"))
	e.HeartbeatMS = c.duration(n.HeartbeatTimeout, at.key("heartbeat_timeout"))
	if e.Type != ExecQueue {
		if e.StartMS > 0 || e.HeartbeatMS > 0 {
			c.errorf(at, "start_timeout and heartbeat_timeout are for jobs that wait in a queue: set route: queue")
		}
		return
	}
	e.FromClaim = true
}
