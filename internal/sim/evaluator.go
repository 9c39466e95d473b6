package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// evaluator says how a task of dag mode has to end: written from what dags mean, not from how the core
// goes about it. It knows no time, no order and no counters: the end of a node follows from the ends of
// those it depends on.
type evaluator struct {
	flow  *dagFlow
	play  *play
	visit int             // 2 when the task is retried
	ends  map[string]*end // by slug, as they are asked for
	bad   bool            // something has failed
}

// dagFlow and dagNode are what of a definition the evaluator understands.
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

// end is what becomes of a node.
type end struct {
	status   flow.StepStatus
	optional bool // it was skipped, and others go on without it
	out      any
}

// inside is what the nodes of a scope have in common.
type inside struct {
	flow   *dagFlow
	prefix string
	run    any
	sees   view // of nodes without dependencies
	shut   bool // the branch is skipped: nothing in it runs
}

// view is what a node sees of those it depends on.
type view struct {
	names   []string
	outs    map[string]any  // of those that completed
	skipped map[string]bool // those that were skipped
}

// evaluate is the outcome of a play.
func evaluate(p *play, visit int) outcome {
	e := &evaluator{play: p, visit: visit, ends: map[string]*end{}, flow: &dagFlow{}}
	if err := json.Unmarshal(p.definition, e.flow); err != nil {
		panic(err)
	}
	root := &inside{flow: e.flow, run: decoded(p.params)}
	result := e.scope(root)
	status := flow.TaskCompleted
	if e.bad || e.flow.Finally != "" && e.flow.Nodes[e.flow.Finally].Service == "boom" {
		status = flow.TaskFailed
	}
	return dagOutcome(status, e.ends, result)
}

// dagOutcome is an outcome as it is compared: every node that somebody wrote, and the result.
func dagOutcome(status flow.TaskStatus, ends map[string]*end, result any) outcome {
	nodes := map[string]any{}
	for slug, n := range ends {
		nodes[slug] = []any{n.status, n.out}
	}
	return outcome{Status: status, Shared: string(encoded(map[string]any{"nodes": nodes, "result": result}))}
}

// scope evaluates all of a scope and is its value.
func (e *evaluator) scope(in *inside) any {
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
		case in.closing(key):
		default:
			r := e.node(in, key)
			if !waited[key] {
				leaves.add(key, r)
			}
		}
	}
	switch {
	case output != nil:
		return e.output(in, output, leaves)
	case len(leaves.outs) == 0:
		return nil
	}
	return leaves.outs
}

func newView() view { return view{outs: map[string]any{}, skipped: map[string]bool{}} }

func (v *view) add(key string, r *end) {
	v.names = append(v.names, key)
	switch r.status {
	case flow.StepCompleted:
		v.outs[key] = r.out
	case flow.StepSkipped:
		v.skipped[key] = true
	}
}

// closing says whether a node only runs when the task is over.
func (in *inside) closing(key string) bool {
	return key == in.flow.Finally || slices.ContainsFunc(slices.Collect(maps.Values(in.flow.Nodes)), func(n *dagNode) bool { return n.Compensate == key })
}

func (e *evaluator) output(in *inside, n *dagNode, leaves view) any {
	r := &end{status: flow.StepSkipped}
	switch {
	case in.shut:
	case n.Service == "":
		r = &end{status: flow.StepCompleted, out: leaves.outs}
	default:
		r = e.tried(n.Service, n, e.input(in, leaves))
	}
	return e.keep(in.prefix+"output", r).out
}

func (e *evaluator) keep(slug string, r *end) *end {
	e.ends[slug] = r
	e.bad = e.bad || r.status == flow.StepFailed
	return r
}

func (e *evaluator) node(in *inside, key string) *end {
	if r := e.ends[in.prefix+key]; r != nil {
		return r
	}
	n, sees, runs := in.flow.Nodes[key], in.sees, !in.shut
	if len(n.DependsOn) > 0 {
		sees = newView()
	}
	for _, dep := range n.DependsOn {
		d := e.node(in, dep)
		sees.add(dep, d)
		runs = runs && (d.status == flow.StepCompleted || n.RunOn == "always" || d.status == flow.StepSkipped && d.optional)
	}
	r := &end{status: flow.StepSkipped}
	if runs {
		r = e.decide(in, n, sees)
	}
	switch {
	case n.Flow != nil && n.Flow.Start == "":
		r = e.branch(in, key, n, sees, r)
	case r.status == flow.StepStarted:
		r = e.work(in, key, n, sees)
	}
	return e.keep(in.prefix+key, r)
}

// decide says whether a node that may run does: it is started then.
func (e *evaluator) decide(in *inside, n *dagNode, sees view) *end {
	skip := false
	if w := n.When; w != nil {
		input := e.input(in, sees)
		skip = w.If != nil && !contains(input, w.If) || w.IfNot != nil && contains(input, w.IfNot)
		if !skip && w.Expr != "" {
			holds, ok := e.play.cel.seen[w.Expr].mean(in.vars(sees))
			if !ok {
				return &end{status: flow.StepFailed}
			}
			skip = holds != true
		}
		if w.Cond != nil {
			answer := e.tried(w.Cond["service"].(string), n, input)
			yes, isBool := answer.out.(bool)
			if answer.status != flow.StepCompleted || !isBool {
				return &end{status: flow.StepFailed}
			}
			skip = yes
		}
	}
	switch {
	case !skip:
		return &end{status: flow.StepStarted}
	case n.SkipMode == "fail":
		return &end{status: flow.StepFailed}
	}
	return &end{status: flow.StepSkipped, optional: n.SkipMode == "optional"}
}

// branch lays the flow of a branch out: its nodes are skipped with it, and it has no value if one of them
// has failed.
func (e *evaluator) branch(in *inside, key string, n *dagNode, sees view, r *end) *end {
	inner := &inside{flow: n.Flow, prefix: in.prefix + key + "/", run: in.run, sees: sees}
	if r.status == flow.StepStarted && n.Prep != nil {
		made := e.prep(in, n, sees)
		if inner.run = made.out; made.status != flow.StepCompleted {
			r = &end{status: flow.StepFailed}
		}
	}
	inner.shut = r.status != flow.StepStarted
	before := e.bad
	e.bad = false
	value := e.scope(inner)
	switch {
	case inner.shut:
	case e.bad:
		r = &end{status: flow.StepSkipped}
	default:
		r = &end{status: flow.StepCompleted, out: value}
	}
	e.bad = e.bad || before
	return r
}

func (e *evaluator) prep(in *inside, n *dagNode, sees view) *end {
	if n.Prep.Service != "" {
		return e.tried(n.Prep.Service, n, e.input(in, sees))
	}
	if n.Prep.Expr != "" {
		return e.made(in, n, sees)
	}
	made := map[string]any{}
	for field, ref := range n.Prep.InputMap {
		v, found := in.meaning(sees, ref)
		if !found {
			return &end{status: flow.StepFailed}
		}
		made[field] = v
	}
	return &end{status: flow.StepCompleted, out: made}
}

// made is what the expression of a prep gives.
func (e *evaluator) made(in *inside, n *dagNode, sees view) *end {
	v, ok := e.play.cel.seen[n.Prep.Expr].mean(in.vars(sees))
	if !ok {
		return &end{status: flow.StepFailed}
	}
	return &end{status: flow.StepCompleted, out: v}
}

// vars are what expressions name.
func (in *inside) vars(sees view) object {
	return object{"run": in.run, "deps": sees.outs, "sees": sees.names}
}

// meaning is what $run.x or $deps.x stands for.
func (in *inside) meaning(sees view, ref string) (v any, found bool) {
	of, field, _ := strings.Cut(strings.TrimPrefix(ref, "$"), ".")
	if of == "deps" {
		v, found = sees.outs[field]
		return v, found
	}
	run, _ := in.run.(map[string]any)
	return run[field], run[field] != nil
}
