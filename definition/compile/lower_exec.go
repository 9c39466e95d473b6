package compile

import (
	"cmp"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// nodeExec returns how the jobs of a node are carried out, before open choices are resolved. Fields
// that the node does not set come from the node that contains its scope.
func nodeExec(n *definition.Node, defaults flow.Exec) flow.Exec {
	e := flow.Exec{
		Type: execTypeOf(n.ExecType, n.ExecMode), Service: n.Service, Func: n.Func, Script: orNone(n.Script), ByLoad: n.WeightedByLoad,
		MaxAttempts: cmp.Or(n.WorkersPerAttempt, max(n.MaxAttempts, 0)),
		TryDelayMS:  cmp.Or(n.WorkerDelay.MS, n.AttemptDelayMS), VisibilityMS: n.VisibilityMS, Labels: n.Labels,
	}
	if byFiles(n) {
		e.StartMS, e.HeartbeatMS = n.StartTimeout.MS, n.HeartbeatTimeout.MS
	}
	if p := n.Exec.Program(); p != nil {
		e.Type, e.Program = flow.ExecType(n.Exec.Type), p
		return e
	}
	e.Type, e.Func = cmp.Or(e.Type, defaults.Type), cmp.Or(e.Func, defaults.Func)
	if e.Script == nil {
		e.Script = defaults.Script
	}
	return e
}

// byFiles reports whether the workers of a node report through files.
func byFiles(n *definition.Node) bool {
	e := flow.Exec{Type: execTypeOf(n.ExecType, n.ExecMode), Service: n.Service, Program: n.Exec.Program()}
	return e.ByFiles()
}

// orNone returns the script, or nil if it has nothing to run.
func orNone(s *flow.Script) *flow.Script {
	if s == nil || s.Cmd == "" && s.Code == "" {
		return nil
	}
	return s
}

// pocketflowPush is the word for push in the pocketflow profile.
const pocketflowPush = "http"

// execTypeOf returns the exec_type, or the value of the older field exec_mode.
func execTypeOf(execType, execMode string) flow.ExecType {
	if word := cmp.Or(execType, execMode); word != pocketflowPush {
		return flow.ExecType(word)
	}
	return flow.ExecPush
}

func knownExec(t flow.ExecType) bool {
	switch t {
	case "", flow.ExecPush, flow.ExecRemote, flow.ExecQueue, flow.ExecFunc, flow.ExecScript, flow.ExecExternal, flow.ExecDirect:
		return true
	}
	return false
}

// routes maps the values of route to types.
var routes = map[string]flow.ExecType{flow.RoutePush: flow.ExecPush, flow.RouteQueue: flow.ExecQueue, flow.RouteDirect: flow.ExecDirect}

// withRouteType returns a node of graph mode with its exec_type set from its route.
func withRouteType(n *definition.Node) *definition.Node {
	if n.Exec.Program() != nil || n.Route != flow.RoutePush && n.Route != flow.RouteQueue {
		return n
	}
	r := *n
	r.ExecType = string(routes[n.Route])
	return &r
}

// overlayExec merges an override over the settings of its node.
func overlayExec(e flow.Exec, s *definition.ExecSpec) flow.Exec {
	e.Type, e.Func = cmp.Or(execTypeOf(s.ExecType, s.ExecMode), e.Type), cmp.Or(s.Func, e.Func)
	if script := orNone(s.Script); script != nil {
		e.Script = script
	}
	e.Params = compactParams(s.Params)
	return e
}

// resolveExecType sets the type if it is open: a script or function without a service runs on the
// member, everything else goes to a worker.
func resolveExecType(e flow.Exec) flow.Exec {
	switch {
	case e.Type != "":
	case e.Script != nil && e.Service == "":
		e.Type = flow.ExecScript
	case e.Func != "" && e.Service == "":
		e.Type = flow.ExecFunc
	default:
		e.Type = flow.ExecPush
	}
	return e
}

// unitExec returns the base for the branches of a parallel that only params.services names.
func unitExec(e flow.Exec) flow.Exec {
	e.Type = cmp.Or(e.Type, flow.ExecPush)
	return e
}

// parallelBranches returns the branches from parallel_execs, otherwise from parallel_services.
// Branches with the same name are distinguished by position.
func parallelBranches(n *definition.Node, base flow.Exec) []flow.Branch {
	var out []flow.Branch
	add := func(name string, e flow.Exec) {
		e.Service = name
		out = append(out, flow.Branch{Name: name, Exec: resolveExecType(e)})
	}
	for i := range n.ParallelExecs {
		add(n.ParallelExecs[i].Service, overlayExec(base, &n.ParallelExecs[i]))
	}
	if len(out) == 0 {
		for _, name := range n.ParallelServices {
			add(name, base)
		}
	}
	return out
}

// foreachItems returns the items of a foreach that are carried out differently. The service of
// these items is always the service of the node.
func foreachItems(n *definition.Node, base flow.Exec) map[int]flow.Exec {
	var out map[int]flow.Exec
	for i := range n.ForeachExecs {
		s := &n.ForeachExecs[i]
		if _, there := out[s.Index]; there {
			continue
		}
		if out == nil {
			out = map[int]flow.Exec{}
		}
		out[s.Index] = resolveExecType(overlayExec(base, s))
	}
	return out
}

// childSpecs returns the first entry of subflow_execs for each child.
func childSpecs(s *scopeSource) map[string]*definition.ExecSpec {
	var out map[string]*definition.ExecSpec
	for i := range s.specs {
		spec := &s.specs[i]
		if _, known := s.nodes[spec.Node]; !known || out[spec.Node] != nil {
			continue
		}
		if out == nil {
			out = map[string]*definition.ExecSpec{}
		}
		out[spec.Node] = spec
	}
	return out
}

// strategies maps the values of failure_strategy, by kind. An unknown value counts as the default,
// as flows written for other engines expect.
var strategies = map[flow.Kind]map[string]flow.Strategy{
	flow.KindParallel: {"continue": flow.Continue, "ignore_errors": flow.Continue, "fail_fast": flow.FailFast},
	flow.KindForeach:  {"continue": flow.Continue, "ignore_errors": flow.Continue, "fail_fast": flow.FailFast},
	// Children of a subflow run one after another, so the first failure is the last one.
	flow.KindSubflow:   {"continue": flow.Continue, "ignore_errors": flow.Continue, "retry": flow.StrategyRetry, "fail_fast": flow.Collect},
	flow.KindWaitEvent: {"continue": flow.Continue, "ignore_errors": flow.Continue, "retry": flow.StrategyRetry},
}

func strategyOf(k flow.Kind, word string) (s flow.Strategy, known bool) {
	words := strategies[k]
	if s, known = words[word]; known {
		return s, true
	}
	return flow.Collect, words == nil || word == "" || word == "collect_errors"
}

// unitWindow returns the maximum number of units in flight: one, unless the mode is concurrent.
func unitWindow(n *definition.Node) int {
	if n.ParallelMode == "concurrent" {
		return n.MaxParallel
	}
	return 1
}

// graphRetry returns the retry of a node: for each of its units, or for a subflow as a whole. If
// there is no retry, it uses max_retries of the pocketflow profile: additional tries of an
// executor, all tries of a subflow.
func graphRetry(n *definition.Node, p *flow.PlanNode) flow.Retry {
	switch {
	case n.Retry != nil && p.Kind == flow.KindSubflow:
		return retryOfScope(n.Retry)
	case n.Retry != nil && (p.Kind == flow.KindExecutor || p.Kind == flow.KindParallel || p.Kind == flow.KindForeach):
		return retryOf(n.Retry)
	case p.Kind == flow.KindExecutor:
		return flow.Retry{Max: n.MaxRetries, WaitMS: n.WaitMS, Units: true}
	case p.Kind == flow.KindSubflow && p.Strategy == flow.StrategyRetry:
		return flow.Retry{Max: max(n.MaxRetries-1, 0), WaitMS: n.WaitMS}
	}
	return flow.Retry{}
}

// retryOf converts a retry specification.
func retryOf(r *definition.RetrySpec) flow.Retry {
	t := flow.Retry{Units: true, Max: max(r.MaxAttempts-1, 0), WaitMS: r.Delay.MS, MaxWaitMS: r.MaxDelay.MS, Jitter: r.Jitter,
		Exponential: r.Backoff == definition.BackoffExponential}
	if t.Exponential && r.Delay.IsZero() {
		t.WaitMS = 1_000
	}
	return t
}

// retryOfScope converts a retry specification for a whole scope inside a node.
func retryOfScope(r *definition.RetrySpec) flow.Retry {
	t := retryOf(r)
	t.Units = false
	return t
}

// retryOr returns a retry with absent fields taken from another retry.
func retryOr(r, other *definition.RetrySpec) *definition.RetrySpec {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	return &definition.RetrySpec{
		MaxAttempts: cmp.Or(r.MaxAttempts, other.MaxAttempts), Delay: cmp.Or(r.Delay, other.Delay),
		Backoff:  cmp.Or(r.Backoff, other.Backoff),
		MaxDelay: cmp.Or(r.MaxDelay, other.MaxDelay), Jitter: cmp.Or(r.Jitter, other.Jitter),
	}
}
