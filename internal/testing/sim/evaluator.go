package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// dagEvaluator computes how a task in dag mode has to end. It follows the meaning of dags, not the
// implementation of the core. It knows no time, order or counters: the end of a node follows from
// the ends of its dependencies.
type dagEvaluator struct {
	flow  *dagFlow
	play  *flowScenario
	visit int                 // 2 if the task is retried
	ends  map[string]*nodeEnd // by slug, filled on demand
	bad   bool                // a node has failed
}

// dagFlow and dagNode are the parts of a definition that the evaluator uses.
type dagFlow struct {
	Nodes      map[string]*dagNode
	InputShape string `json:"input_shape"`
	Start      string
	Finally    string
}

type dagNode struct {
	Kind, Service, Route string
	DependsOn            []string `json:"depends_on"`
	RunOn                string   `json:"run_on"`
	SkipMode             string   `json:"skip_mode"`
	OnExhausted          string   `json:"on_exhausted"`
	Compensate           string
	Params               map[string]any
	Retry                struct {
		MaxAttempts int `json:"max_attempts"`
	}
	Each *struct {
		Items   any
		Count   any
		OnError string `json:"on_error"`
	}
	ChoiceCases []struct{ Expr string } `json:"choice_cases"`
	When        *struct {
		If, Cond map[string]any
		Expr     string
		IfNot    map[string]any `json:"if_not"`
	}
	Prep *struct {
		Service  string
		Expr     string
		InputMap map[string]string `json:"input_map"`
	}
	Flow *dagFlow
}

// nodeEnd is the end of a node.
type nodeEnd struct {
	status   flow.StepStatus
	optional bool // whether the node was skipped, and its dependents run without it
	out      any
}

// scopeContext is shared by the nodes of a scope.
type scopeContext struct {
	flow   *dagFlow
	prefix string
	run    any
	sees   depsView // view of nodes without dependencies
	shut   bool     // the branch is skipped, so nothing in it runs
}

// depsView is the value of $deps for a node.
type depsView struct {
	names   []string
	outs    map[string]any  // outputs of the completed dependencies
	skipped map[string]bool // skipped dependencies
}

// evaluatePlay returns the outcome of a scenario.
func evaluatePlay(p *flowScenario, visit int) taskOutcome {
	e := &dagEvaluator{play: p, visit: visit, ends: map[string]*nodeEnd{}, flow: &dagFlow{}}
	if err := json.Unmarshal(p.definition, e.flow); err != nil {
		panic(err)
	}
	root := &scopeContext{flow: e.flow, run: decodeValue(p.params)}
	result := e.evaluateScope(root)
	status := flow.TaskCompleted
	if e.bad || e.flow.Finally != "" && e.flow.Nodes[e.flow.Finally].Service == "boom" {
		status = flow.TaskFailed
	}
	return dagOutcome(status, e.ends, result)
}

// dagOutcome returns an outcome in comparable form: every node of the definition, and the result.
func dagOutcome(status flow.TaskStatus, ends map[string]*nodeEnd, result any) taskOutcome {
	nodes := map[string]any{}
	for slug, n := range ends {
		nodes[slug] = []any{n.status, n.out}
	}
	return taskOutcome{Status: status, Shared: string(encodeValue(map[string]any{"nodes": nodes, "result": result}))}
}

// evaluateScope evaluates all nodes of a scope and returns its value.
func (e *dagEvaluator) evaluateScope(in *scopeContext) any {
	waited := map[string]bool{}
	leaves := newView()
	var output *dagNode
	for _, n := range in.flow.Nodes {
		for _, dep := range n.DependsOn {
			waited[dep] = true
		}
	}
	for key, n := range in.flow.Nodes {
		switch {
		case n.Kind == "output":
			output = n
		case in.isClosing(key):
		default:
			r := e.evaluateNode(in, key)
			if !waited[key] {
				leaves.addEnd(key, r)
			}
		}
	}
	switch {
	case output != nil:
		return e.evaluateOutput(in, output, leaves)
	case len(leaves.outs) == 0:
		return nil
	}
	return leaves.outs
}

func newView() depsView { return depsView{outs: map[string]any{}, skipped: map[string]bool{}} }

func (v *depsView) addEnd(key string, r *nodeEnd) {
	v.names = append(v.names, key)
	switch r.status {
	case flow.StepCompleted:
		v.outs[key] = r.out
	case flow.StepSkipped:
		v.skipped[key] = true
	}
}

// isClosing reports whether a node runs only when the task is over.
func (in *scopeContext) isClosing(key string) bool {
	return key == in.flow.Finally || slices.ContainsFunc(slices.Collect(maps.Values(in.flow.Nodes)),
		func(n *dagNode) bool { return n.Compensate == key })
}

func (e *dagEvaluator) evaluateOutput(in *scopeContext, n *dagNode, leaves depsView) any {
	r := &nodeEnd{status: flow.StepSkipped}
	switch {
	case in.shut:
	case n.Service == "":
		r = &nodeEnd{status: flow.StepCompleted, out: leaves.outs}
	default:
		r = e.tryService(n.Service, n, e.buildInput(in, leaves))
	}
	return e.recordEnd(in.prefix+"output", r).out
}

func (e *dagEvaluator) recordEnd(slug string, r *nodeEnd) *nodeEnd {
	e.ends[slug] = r
	e.bad = e.bad || r.status == flow.StepFailed
	return r
}

func (e *dagEvaluator) evaluateNode(in *scopeContext, key string) *nodeEnd {
	if r := e.ends[in.prefix+key]; r != nil {
		return r
	}
	n, sees, runs := in.flow.Nodes[key], in.sees, !in.shut
	if len(n.DependsOn) > 0 {
		sees = newView()
	}
	for _, dep := range n.DependsOn {
		d := e.evaluateNode(in, dep)
		sees.addEnd(dep, d)
		runs = runs && (d.status == flow.StepCompleted || n.RunOn == "always" || d.status == flow.StepSkipped && d.optional)
	}
	r := &nodeEnd{status: flow.StepSkipped}
	if runs {
		r = e.decideNode(in, n, sees)
	}
	switch {
	case n.Flow != nil && n.Flow.Start == "":
		r = e.evaluateBranch(in, key, n, sees, r)
	case r.status == flow.StepStarted:
		r = e.evaluateWork(in, key, n, sees)
	}
	return e.recordEnd(in.prefix+key, r)
}

// decideNode returns the end of a node that may run: started, or skipped by its condition.
func (e *dagEvaluator) decideNode(in *scopeContext, n *dagNode, sees depsView) *nodeEnd {
	skip := false
	if w := n.When; w != nil {
		input := e.buildInput(in, sees)
		skip = w.If != nil && !containsPattern(input, w.If) || w.IfNot != nil && containsPattern(input, w.IfNot)
		if !skip && w.Expr != "" {
			holds, ok := e.play.cel.byText[w.Expr].evaluate(in.exprVars(sees))
			if !ok {
				return &nodeEnd{status: flow.StepFailed}
			}
			skip = holds != true
		}
		if w.Cond != nil {
			answer := e.tryService(w.Cond["service"].(string), n, input)
			yes, isBool := answer.out.(bool)
			if answer.status != flow.StepCompleted || !isBool {
				return &nodeEnd{status: flow.StepFailed}
			}
			skip = yes
		}
	}
	switch {
	case !skip:
		return &nodeEnd{status: flow.StepStarted}
	case n.SkipMode == "fail":
		return &nodeEnd{status: flow.StepFailed}
	}
	return &nodeEnd{status: flow.StepSkipped, optional: n.SkipMode == "optional"}
}

// evaluateBranch expands the flow of a branch. The nodes are skipped with the branch, and the
// branch has no value if one of its nodes has failed.
func (e *dagEvaluator) evaluateBranch(in *scopeContext, key string, n *dagNode, sees depsView, r *nodeEnd) *nodeEnd {
	inner := &scopeContext{flow: n.Flow, prefix: in.prefix + key + "/", run: in.run, sees: sees}
	if r.status == flow.StepStarted && n.Prep != nil {
		made := e.evaluatePrep(in, n, sees)
		if inner.run = made.out; made.status != flow.StepCompleted {
			r = &nodeEnd{status: flow.StepFailed}
		}
	}
	inner.shut = r.status != flow.StepStarted
	before := e.bad
	e.bad = false
	value := e.evaluateScope(inner)
	switch {
	case inner.shut:
	case e.bad:
		r = &nodeEnd{status: flow.StepSkipped}
	default:
		r = &nodeEnd{status: flow.StepCompleted, out: value}
	}
	e.bad = e.bad || before
	return r
}

func (e *dagEvaluator) evaluatePrep(in *scopeContext, n *dagNode, sees depsView) *nodeEnd {
	if n.Prep.Service != "" {
		return e.tryService(n.Prep.Service, n, e.buildInput(in, sees))
	}
	if n.Prep.Expr != "" {
		return e.evaluateExpr(in, n, sees)
	}
	made := map[string]any{}
	for field, ref := range n.Prep.InputMap {
		v, found := in.resolveRef(sees, ref)
		if !found {
			return &nodeEnd{status: flow.StepFailed}
		}
		made[field] = v
	}
	return &nodeEnd{status: flow.StepCompleted, out: made}
}

// evaluateExpr returns the value of a prep expression.
func (e *dagEvaluator) evaluateExpr(in *scopeContext, n *dagNode, sees depsView) *nodeEnd {
	v, ok := e.play.cel.byText[n.Prep.Expr].evaluate(in.exprVars(sees))
	if !ok {
		return &nodeEnd{status: flow.StepFailed}
	}
	return &nodeEnd{status: flow.StepCompleted, out: v}
}

// exprVars returns the variables of expressions.
func (in *scopeContext) exprVars(sees depsView) object {
	return object{"run": in.run, "deps": sees.outs, "sees": sees.names}
}

// resolveRef resolves $run.x or $deps.x.
func (in *scopeContext) resolveRef(sees depsView, ref string) (v any, found bool) {
	of, field, _ := strings.Cut(strings.TrimPrefix(ref, "$"), ".")
	if of == "deps" {
		v, found = sees.outs[field]
		return v, found
	}
	run, _ := in.run.(map[string]any)
	return run[field], run[field] != nil
}
