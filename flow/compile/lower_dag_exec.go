package compile

import (
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
)

// lowerExec says how a node's jobs travel. What the flow's defaults say holds for a node that says
// nothing of it.
func (l *dagLowerer) lowerExec(n *define.Node, key string) flow.Exec {
	n, route := l.defaults.applyRoute(n)
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

// idleExec says that nobody is named to carry out the jobs.
func idleExec(e *flow.Exec) bool {
	return e.Service == "" && e.Func == "" && e.Script == nil && e.Program == nil
}

// applyRoute is a node with the exec_type that the defaults give it, and its route.
func (s *nodeDefaults) applyRoute(n *define.Node) (*define.Node, string) {
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

// lowerRetry reads retry, of the node or the flow.
func (l *dagLowerer) lowerRetry(p *flow.PlanNode, n *define.Node) {
	spec := n.Retry
	if spec == nil || l.profile == flow.ProfilePgflow {
		spec = retryOr(spec, l.defaults.def.Retry)
	}
	switch {
	case n.MaxRetries > 0 || n.WaitMS > 0:
		p.Retry = flow.Retry{Units: true, Max: n.MaxRetries, WaitMS: n.WaitMS}
	case spec == nil:
		p.Retry = flow.Retry{Units: true}
	default:
		p.Retry = retryOf(spec)
		if l.profile == flow.ProfilePgflow && p.Retry.Exponential {
			p.Retry.WaitMS *= 2 // base × 2^(tries so far)
		}
	}
}

// lowerTimes reads a node's deadlines.
func (l *dagLowerer) lowerTimes(p *flow.PlanNode, n *define.Node) {
	p.TimeoutMS = orDuration(n.Timeout, n.TimeoutMS)
	given := n.TimeoutMS > 0 || n.NoTimeout() || !n.Timeout.IsZero()
	if !given && p.Exec.Type != flow.ExecDirect && p.Kind != flow.KindWaitEvent && p.Kind != flow.KindApproval && p.Kind != flow.KindTimer && p.Kind != flow.KindSubflow {
		p.TimeoutMS, p.Patient = l.defaults.def.Timeout.MS, l.defaults.timeoutUnset && p.Exec.Type != flow.ExecContainer // which runs while the attempt waits
	}
	if l.profile == flow.ProfilePgflow && p.Exec.Type == flow.ExecQueue && p.TimeoutMS > 0 && p.Exec.HeartbeatMS == 0 && n.VisibilityMS == 0 {
		p.Exec.VisibilityMS = p.TimeoutMS + 2_000 // so that it is the timeout that ends the attempt
	}
	if s := p.Exec.Script; s != nil && s.TimeoutMS == 0 && p.TimeoutMS > 0 { // else scripts have a shorter one
		own := *s
		own.TimeoutMS = p.TimeoutMS
		p.Exec.Script = &own
	}
}

// canDefer reports whether an output may name work outside that is waited for: in Ork's profile any
// may.
func (l *dagLowerer) canDefer(n *define.Node) bool { return n.Deferred || l.profile == flow.ProfileOrk }

// lowerWork makes a node one that somebody carries out.
func (l *dagLowerer) lowerWork(p *flow.PlanNode, n, times *define.Node, key string) {
	p.Single, p.Deferred = true, l.canDefer(n)
	p.Exec = l.lowerExec(n, key)
	p.Exec.Vars = programVars(n, nil)
	l.lowerRetry(p, times)
	l.lowerTimes(p, times)
}

// closingNode is that of a dag: what it does not say itself it takes from the flow, as every node
// does.
func (l *dagLowerer) closingNode(key string, n *define.Node) *flow.PlanNode {
	if plainClosing(n) {
		return l.lowerer.closingNode(key, n)
	}
	p := &flow.PlanNode{Key: key, Kind: flow.KindExecutor, Post: n.Post, Params: compactParams(n.Params), Prep: planPrep(n.Prep)}
	l.lowerWork(p, n, n, key[strings.LastIndexByte(key, '/')+1:])
	l.nodeKeys(n, p)
	return p
}

// plainClosing reports whether a node that closes means in a dag what it means in graph mode.
func plainClosing(n *define.Node) bool {
	kind, _ := graphKind(n)
	return n.Route == flow.RouteDirect || kind != flow.KindExecutor
}

// handlerNode is a node that stands for a handler of another one.
func handlerNode(h define.Handler, of *define.Node) *define.Node {
	return &define.Node{Service: h.Service, ExecType: h.ExecType, Func: h.Func, Script: h.Script, Labels: of.Labels, DagNode: define.DagNode{Route: h.Route}}
}
