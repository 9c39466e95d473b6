package flow

import (
	"cmp"
	"math"
)

// Words of retry.backoff.
const (
	backoffFixed       = "fixed"
	backoffExponential = "exponential"
)

// Words of route.
const (
	routePush   = "push"
	routeQueue  = "queue"
	routeDirect = "direct"
)

// tries reads retry, of the node or the flow.
func (c *dagCompiler) tries(p *PlanNode, n *Node, at *place) {
	p.Retry = Retry{Units: true}
	spec := n.Retry
	if spec == nil || c.profile == ProfilePgflow {
		spec = spec.or(c.set.def.Retry)
	}
	if n.MaxRetries > 0 || n.WaitMS > 0 {
		p.Retry.Max, p.Retry.WaitMS = c.count(n.MaxRetries, at.key("max_retries")), c.milliseconds(n.WaitMS, at.key("wait_ms"))
		return
	}
	if spec != nil {
		p.Retry = c.retrySpec(spec, at.key("retry"))
		if c.profile == ProfilePgflow && p.Retry.Exponential {
			p.Retry.WaitMS *= 2 // base × 2^(tries so far)
		}
	}
}

// or takes from another one what is not said.
func (r *RetrySpec) or(other *RetrySpec) *RetrySpec {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	return &RetrySpec{
		MaxAttempts: cmp.Or(r.MaxAttempts, other.MaxAttempts), Delay: cmp.Or(r.Delay, other.Delay), Backoff: cmp.Or(r.Backoff, other.Backoff),
		MaxDelay: cmp.Or(r.MaxDelay, other.MaxDelay), Jitter: cmp.Or(r.Jitter, other.Jitter),
	}
}

func (c *compiler) retrySpec(spec *RetrySpec, at *place) Retry {
	r := Retry{Units: true, Jitter: spec.Jitter,
		WaitMS: c.duration(spec.Delay, at.key("delay")), MaxWaitMS: c.duration(spec.MaxDelay, at.key("max_delay"))}
	r.Max = max(c.count(spec.MaxAttempts, at.key("max_attempts"))-1, 0)
	switch spec.Backoff {
	case "", backoffFixed:
	case backoffExponential:
		r.Exponential = true
		if r.WaitMS == 0 {
			r.WaitMS = 1_000
		}
	default:
		c.errorf(at.key("backoff"), "unknown word %.80q: write fixed or exponential", spec.Backoff)
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) || math.IsNaN(r.Jitter) {
		c.errorf(at.key("jitter"), "must be between 0 and 1, is %g", r.Jitter)
		r.Jitter = 0
	}
	return r
}

// duration refuses a number where no profile says that numbers are seconds.
func (c *compiler) duration(d Duration, at *place) int64 {
	if d.seconds && !c.seconds {
		c.errorf(at, "a number has no unit here: write for example 30s or 250ms")
	}
	return d.MS
}

// times reads a node's deadlines.
func (c *dagCompiler) times(p *PlanNode, n *Node, at *place) {
	p.TimeoutMS = c.milliseconds(n.TimeoutMS, at.key("timeout_ms"))
	given := n.TimeoutMS > 0 || !n.Timeout.IsZero()
	if !n.Timeout.IsZero() {
		p.TimeoutMS = c.duration(n.Timeout, at.key("timeout"))
	}
	if !given && p.Exec.Type != ExecDirect && p.Kind != KindWaitEvent && p.Kind != KindApproval && p.Kind != KindTimer && p.Kind != KindSubflow {
		p.TimeoutMS = c.set.def.Timeout.MS
	}
	if c.profile == ProfilePgflow && p.Exec.Type == ExecQueue && p.TimeoutMS > 0 && p.Exec.HeartbeatMS == 0 {
		p.Exec.VisibilityMS = p.TimeoutMS + 2_000 // so that it is the timeout that ends the attempt
	}
	if s := p.Exec.Script; s != nil && s.TimeoutMS == 0 && p.TimeoutMS > 0 { // else scripts have a shorter one
		own := *s
		own.TimeoutMS = p.TimeoutMS
		p.Exec.Script = &own
	}
}

// dagExec says how a node's jobs travel.
func (c *dagCompiler) dagExec(n *Node, key string, at *place) Exec {
	route := n.Route
	if route == "" && n.ExecType == "" && n.ExecMode == "" {
		route = c.set.def.Route
		if c.set.def.ExecType != "" {
			n = &Node{ExecType: c.set.def.ExecType, Service: n.Service, Func: n.Func, Script: n.Script, Labels: n.Labels, VisibilityMS: n.VisibilityMS,
				MaxAttempts: n.MaxAttempts, AttemptDelayMS: n.AttemptDelayMS, WeightedByLoad: n.WeightedByLoad}
		}
		if n.Func != "" || n.Script != nil {
			route = ""
		}
	}
	e := c.exec(n, Exec{}, at)
	e.Labels = n.Labels
	switch route {
	case "":
	case routePush:
		e.Type = ExecHTTP
	case routeQueue:
		e.Type = ExecQueue
	case routeDirect:
		e.Type = ExecDirect
	default:
		c.errorf(at.key("route"), "unknown word %.80q: write push, queue or direct", route)
	}
	if e.Type == ExecDirect {
		if e.Service != "" || e.Func != "" || e.Script != nil {
			c.errorf(at.key("route"), "a direct node has no handler: leave out its service, func or script, or choose another route")
		}
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
