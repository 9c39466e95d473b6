package compile

import (
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// lowerExec returns how the jobs of a node are delivered. The defaults of the flow apply if the
// node does not set it.
func (l *dagLowerer) lowerExec(n *definition.Node, key string) flow.Exec {
	own := n
	n, route := l.defaults.applyRoute(n)
	l.noteRoute(own, route)
	e := nodeExec(n, flow.Exec{})
	if p := e.Program; p != nil && e.Type != flow.ExecLibrary {
		p.LooseMarks = l.profile == flow.ProfileOrk
	}
	if t, ok := routes[route]; ok && e.Program == nil {
		e.Type = t
	}
	if e.Type != flow.ExecDirect {
		if e.Type == "" && e.Func != "" {
			e.Type = flow.ExecFunc
		}
		if idleExec(&e) && l.profile == flow.ProfilePgflow {
			e.Service = key
		}
		e = resolveExecType(e)
		e.FromClaim = e.Type == flow.ExecQueue
	}
	e.StartMS, e.HeartbeatMS = n.StartTimeout.MS, n.HeartbeatTimeout.MS
	return e
}

// idleExec reports whether the exec names nothing that could carry out the jobs.
func idleExec(e *flow.Exec) bool {
	return e.Service == "" && e.Func == "" && e.Script == nil && e.Program == nil
}

// applyRoute returns a node with the exec_type of the defaults, and its route.
func (s *nodeDefaults) applyRoute(n *definition.Node) (*definition.Node, string) {
	if n.Exec.Program() != nil {
		return n, ""
	}
	if n.Route != "" || n.ExecType != "" || n.ExecMode != "" {
		return n, n.Route
	}
	route := s.def.Route
	if s.def.ExecType != "" {
		own := *n
		own.ExecType = s.def.ExecType
		n = &own
	}
	if n.Func != "" || n.Script != nil {
		route = ""
	}
	return n, route
}

// noteRoute notes whether a node obeys the route or the exec_type of the defaults. A route takes
// precedence.
func (l *dagLowerer) noteRoute(n *definition.Node, route string) {
	if n.Exec.Program() != nil || n.Route != "" || n.ExecType != "" || n.ExecMode != "" {
		return
	}
	decided, routed := routes[route]
	if routed {
		l.obeyDefault(defaultRoute)
	}
	if !routed || decided == flow.ExecType(l.defaults.def.ExecType) {
		l.obeyDefault(defaultExecType)
	}
}

// noteRetry notes whether a node that has attempts gets its retry from the defaults.
func (l *dagLowerer) noteRetry(p *flow.PlanNode, n *definition.Node) {
	def := l.defaults.def.Retry
	isMerged := n.Retry != nil && def != nil && l.profile == flow.ProfilePgflow && *retryOr(n.Retry, def) != *n.Retry
	if p.Exec.Type != "" && p.Exec.Type != flow.ExecDirect && (n.Retry == nil || isMerged) {
		l.obeyDefault(defaultRetry)
	}
}

// lowerRetry sets the retry from the node or the defaults.
func (l *dagLowerer) lowerRetry(p *flow.PlanNode, n *definition.Node) {
	spec := n.Retry
	if spec == nil || l.profile == flow.ProfilePgflow {
		spec = retryOr(spec, l.defaults.def.Retry)
	}
	switch {
	case spec == nil:
		p.Retry = flow.Retry{Units: true}
	default:
		p.Retry = retryOf(spec)
		if l.profile == flow.ProfilePgflow && p.Retry.Exponential {
			p.Retry.WaitMS *= 2 // base × 2^(tries so far)
		}
	}
}

// lowerTimes sets the timeouts of a node.
func (l *dagLowerer) lowerTimes(p *flow.PlanNode, n *definition.Node) {
	p.TimeoutMS = orDuration(n.Timeout, n.TimeoutMS)
	given := n.TimeoutMS > 0 || n.NoTimeout() || !n.Timeout.IsZero()
	if !given && p.Exec.Type != flow.ExecDirect && p.Kind != flow.KindWaitEvent &&
		p.Kind != flow.KindApproval && p.Kind != flow.KindTimer && p.Kind != flow.KindSubflow {
		// a container runs while its attempt waits
		p.TimeoutMS, p.Patient = l.defaults.def.Timeout.MS, l.defaults.timeoutUnset && p.Exec.Type != flow.ExecContainer
		l.obeyDefault(defaultTimeout)
	}
	if l.profile == flow.ProfilePgflow && p.Exec.Type == flow.ExecQueue && p.TimeoutMS > 0 &&
		p.Exec.HeartbeatMS == 0 && n.VisibilityMS == 0 {
		p.Exec.VisibilityMS = p.TimeoutMS + 2_000 // so that the timeout ends the attempt first
	}
	// otherwise scripts have a shorter timeout
	if s := p.Exec.Script; s != nil && s.TimeoutMS == 0 && p.TimeoutMS > 0 {
		own := *s
		own.TimeoutMS = p.TimeoutMS
		p.Exec.Script = &own
	}
}

// canDefer reports whether an output may name external jobs to wait for. With the ork profile every
// output may name such jobs.
func (l *dagLowerer) canDefer(n *definition.Node) bool {
	return n.Deferred || l.profile == flow.ProfileOrk
}

// lowerWork makes a node an executor with one unit.
func (l *dagLowerer) lowerWork(p *flow.PlanNode, n, times *definition.Node, key string) {
	p.Single, p.Deferred = true, l.canDefer(n)
	p.Exec = l.lowerExec(n, key)
	p.Exec.Vars = programVars(n, nil)
	l.lowerRetry(p, times)
	l.noteRetry(p, times)
	l.lowerTimes(p, times)
}

// closingNode lowers a closing node of a dag. Fields that it does not set come from the flow's
// defaults, as for every node.
func (l *dagLowerer) closingNode(key string, n *definition.Node) *flow.PlanNode {
	if plainClosing(n) {
		return l.lowerer.closingNode(key, n)
	}
	p := &flow.PlanNode{Key: key, Kind: flow.KindExecutor, Post: n.Post, Params: compactParams(n.Params), Prep: planPrep(n.Prep)}
	l.lowerWork(p, n, n, key[strings.LastIndexByte(key, '/')+1:])
	l.nodeKeys(n, p)
	return p
}

// plainClosing reports whether a closing node has the same meaning in a dag as in graph mode.
func plainClosing(n *definition.Node) bool {
	kind, _ := graphKind(n)
	return n.Route == flow.RouteDirect || kind != flow.KindExecutor
}

// handlerNode returns a node for a handler of another node.
func handlerNode(h definition.Handler, of *definition.Node) *definition.Node {
	return &definition.Node{Service: h.Service, ExecType: h.ExecType, Func: h.Func, Script: h.Script,
		Labels: of.Labels, DagNode: definition.DagNode{Route: h.Route}}
}
