package flow

import "cmp"

// exec is how a node says its jobs are carried out, before it is settled what was left open. What it does not
// say comes from the node that holds its scope.
func exec(n *Node, defaults Exec) Exec {
	e := Exec{
		Type: word(n.ExecType, n.ExecMode), Service: n.Service, Func: n.Func, Script: n.Script.orNone(), ByLoad: n.WeightedByLoad,
		MaxAttempts: max(n.MaxAttempts, 0), TryDelayMS: n.AttemptDelayMS, VisibilityMS: n.VisibilityMS, Labels: n.Labels,
	}
	e.Type, e.Func = cmp.Or(e.Type, defaults.Type), cmp.Or(e.Func, defaults.Func)
	if e.Script == nil {
		e.Script = defaults.Script
	}
	return e
}

// orNone is a script that has something to run; an empty one counts as none.
func (s *Script) orNone() *Script {
	if s == nil || s.Cmd == "" && s.Code == "" {
		return nil
	}
	return s
}

// word is the exec_type, or what the older name of that field says.
func word(execType, execMode string) ExecType { return ExecType(cmp.Or(execType, execMode)) }

func (t ExecType) known() bool {
	switch t {
	case "", ExecHTTP, ExecQueue, ExecFunc, ExecScript, ExecDirect:
		return true
	}
	return false
}

// Words of route.
const (
	routePush   = "push"
	routeQueue  = "queue"
	routeDirect = "direct"
)

// routes are the words of route and what they mean.
var routes = map[string]ExecType{routePush: ExecHTTP, routeQueue: ExecQueue, routeDirect: ExecDirect}

// routed is a node of graph mode whose route, another word for how jobs travel, is its exec_type.
func routed(n *Node) *Node {
	if n.Route != routePush && n.Route != routeQueue {
		return n
	}
	r := *n
	r.ExecType = string(routes[n.Route])
	return &r
}

// overlaid is what a spec says over what its node says.
func (e Exec) overlaid(s *ExecSpec) Exec {
	e.Type, e.Func = cmp.Or(word(s.ExecType, s.ExecMode), e.Type), cmp.Or(s.Func, e.Func)
	if script := s.Script.orNone(); script != nil {
		e.Script = script
	}
	e.Params = params(s.Params)
	return e
}

// settled decides what was left open: a script or function without a service is run, everything else goes to
// a worker.
func (e Exec) settled() Exec {
	switch {
	case e.Type != "":
	case e.Script != nil && e.Service == "":
		e.Type = ExecScript
	case e.Func != "" && e.Service == "":
		e.Type = ExecFunc
	default:
		e.Type = ExecHTTP
	}
	return e
}

// ofUnits is what a parallel's branches are made from when only params.services names them.
func (e Exec) ofUnits() Exec {
	e.Type = cmp.Or(e.Type, ExecHTTP)
	return e
}

// branches are those of parallel_execs, else of parallel_services. Position tells branches of the same name apart.
func branches(n *Node, base Exec) []Branch {
	var out []Branch
	add := func(name string, e Exec) {
		e.Service = name
		out = append(out, Branch{Name: name, Exec: e.settled()})
	}
	for i := range n.ParallelExecs {
		add(n.ParallelExecs[i].Service, base.overlaid(&n.ParallelExecs[i]))
	}
	if len(out) == 0 {
		for _, name := range n.ParallelServices {
			add(name, base)
		}
	}
	return out
}

// items are the items of a foreach that are carried out differently. The service stays the node's.
func items(n *Node, base Exec) map[int]Exec {
	var out map[int]Exec
	for i := range n.ForeachExecs {
		s := &n.ForeachExecs[i]
		if _, there := out[s.Index]; there {
			continue
		}
		if out == nil {
			out = map[int]Exec{}
		}
		out[s.Index] = base.overlaid(s).settled()
	}
	return out
}

// childSpecs are the first entries of subflow_execs for each child.
func childSpecs(s *scopeSource) map[string]*ExecSpec {
	var out map[string]*ExecSpec
	for i := range s.specs {
		spec := &s.specs[i]
		if _, known := s.nodes[spec.Node]; !known || out[spec.Node] != nil {
			continue
		}
		if out == nil {
			out = map[string]*ExecSpec{}
		}
		out[spec.Node] = spec
	}
	return out
}

// strategies are what failure_strategy means, by kind. A word that means nothing to the kind is read as the
// default, as flows written for other engines expect.
var strategies = map[Kind]map[string]Strategy{
	KindParallel: {"continue": Continue, "ignore_errors": Continue, "fail_fast": FailFast},
	KindForeach:  {"continue": Continue, "ignore_errors": Continue, "fail_fast": FailFast},
	// Children of a subflow run one after the other: the first failure is the last.
	KindSubflow:   {"continue": Continue, "ignore_errors": Continue, "retry": StrategyRetry, "fail_fast": Collect},
	KindWaitEvent: {"continue": Continue, "ignore_errors": Continue, "retry": StrategyRetry},
}

func strategyOf(k Kind, word string) (s Strategy, known bool) {
	words := strategies[k]
	if s, known = words[word]; known {
		return s, true
	}
	return Collect, words == nil || word == "" || word == "collect_errors"
}

// window is how many units are in flight at once: one, unless the mode is concurrent.
func window(n *Node) int {
	if n.ParallelMode == "concurrent" {
		return n.MaxParallel
	}
	return 1
}

// graphRetry reads max_retries: additional tries of an executor, all tries of a subflow.
func graphRetry(n *Node, p *PlanNode) Retry {
	switch {
	case p.Kind == KindExecutor && n.Retry != nil:
		return n.Retry.retry()
	case p.Kind == KindExecutor:
		return Retry{Max: n.MaxRetries, WaitMS: n.WaitMS, Units: true}
	case p.Kind == KindSubflow && p.Strategy == StrategyRetry:
		return Retry{Max: max(n.MaxRetries-1, 0), WaitMS: n.WaitMS}
	}
	return Retry{}
}

// retry is what a retry means.
func (r *RetrySpec) retry() Retry {
	t := Retry{Units: true, Max: max(r.MaxAttempts-1, 0), WaitMS: r.Delay.MS, MaxWaitMS: r.MaxDelay.MS, Jitter: r.Jitter,
		Exponential: r.Backoff == backoffExponential}
	if t.Exponential && r.Delay.IsZero() {
		t.WaitMS = 1_000
	}
	return t
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

// Words of retry.backoff.
const (
	backoffFixed       = "fixed"
	backoffExponential = "exponential"
)
