package sim

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// input is what a handler in a node's place gets.
func (e *evaluator) input(in *inside, sees view) any {
	all := map[string]any{}
	switch e.flow.InputShape {
	case "deps":
		if len(sees.names) == 0 {
			return in.run
		}
	case "merged":
		if run, ok := in.run.(map[string]any); ok {
			maps.Copy(all, run)
		}
		for _, name := range sees.names {
			all[name] = nil
		}
	default:
		all["run"] = in.run
	}
	maps.Copy(all, sees.outs)
	return all
}

// work is what becomes of a node that runs.
func (e *evaluator) work(in *inside, key string, n *dagNode, sees view) *end {
	var r *end
	switch {
	case n.Kind == "timer":
		return &end{status: flow.StepCompleted}
	case n.Kind == "wait_event":
		return &end{status: flow.StepCompleted, out: decoded(e.play.signals[key])}
	case n.Kind == "fanout":
		items, ok := e.items(in, n, sees)
		if !ok {
			return &end{status: flow.StepFailed}
		}
		r = e.units(n, key, items)
	case n.Kind == "branch":
		made := &end{status: flow.StepCompleted, out: in.run}
		if n.Prep != nil {
			made = e.prep(in, n, sees)
		}
		if made.status == flow.StepFailed {
			return made
		}
		r = e.graph(n, made.out)
	case n.Route == "direct":
		return &end{status: flow.StepCompleted, out: decoded(direct(0))}
	case n.Prep != nil:
		made := e.made(in, n, sees)
		if made.status == flow.StepFailed {
			return made
		}
		r = e.tried(n.Service, n, made.out)
	default:
		r = e.tried(n.Service, n, e.input(in, sees))
	}
	if r.status == flow.StepFailed && strings.HasPrefix(n.OnExhausted, "skip") {
		return &end{status: flow.StepSkipped, optional: n.OnExhausted == "skip"}
	}
	return r
}

// items are what the units of a fanout work on.
func (e *evaluator) items(in *inside, n *dagNode, sees view) (units []any, ok bool) {
	input := e.input(in, sees)
	if count, counted := n.Each.Count.(float64); counted {
		for range int(count) {
			units = append(units, input)
		}
		return units, true
	}
	var list any
	if handler, made := n.Each.Items.(map[string]any); made {
		list = e.tried(handler["service"].(string), n, input).out
	} else {
		ref := n.Each.Items.(string)
		if dep, of := strings.CutPrefix(ref, "$deps."); of && sees.skipped[dep] {
			return nil, true
		}
		list, _ = in.meaning(sees, ref)
	}
	items, ok := list.([]any)
	for _, item := range items {
		if e.flow.InputShape == "merged" {
			with := maps.Clone(input.(map[string]any))
			with["item"] = item
			item = with
		}
		units = append(units, item)
	}
	return units, ok
}

func (e *evaluator) units(n *dagNode, key string, items []any) *end {
	outs := []any{}
	if n.Route == "direct" && len(items) > 0 {
		for i := range len(items) + e.play.appends[key] {
			outs = append(outs, decoded(direct(i)))
		}
		return &end{status: flow.StepCompleted, out: outs}
	}
	failed := false
	for _, item := range items {
		r := e.tried(n.Service, n, item)
		failed = failed || r.status == flow.StepFailed
		outs = append(outs, r.out)
	}
	if failed && n.Each.OnError != "continue" {
		return &end{status: flow.StepFailed}
	}
	return &end{status: flow.StepCompleted, out: outs}
}

// graph is the flow of graph mode that plays have in a branch: x, then y, if a choice between them says so.
func (e *evaluator) graph(n *dagNode, run any) *end {
	fields, _ := run.(map[string]any)
	first, second := n.Flow.Nodes["x"].Service, n.Flow.Nodes["y"].Service
	visit := 1
	if first == "second" || first == "unlucky" {
		visit = e.visit
	}
	x := e.attempts(first, 1, visit, fields["n"])
	if x.status == flow.StepFailed {
		return x
	}
	if c := n.Flow.Nodes["c"]; c != nil {
		goes, ok := e.play.cel.seen[c.ChoiceCases[0].Expr].mean(object{"params": fields, "shared": object{"out": x.out}})
		switch {
		case !ok:
			return &end{status: flow.StepFailed}
		case goes != true:
			return x
		}
	}
	return e.attempts(second, 1, 1, map[string]any{"was": x.out})
}

func (e *evaluator) tried(service string, n *dagNode, input any) *end {
	return e.attempts(service, max(n.Retry.MaxAttempts, 1), e.visit, input)
}

// attempts asks a service until it answers.
func (e *evaluator) attempts(service string, most, visit int, input any) *end {
	for attempt := 1; attempt <= most; attempt++ {
		job := flow.Job{Exec: &flow.Exec{Service: service}, Input: encoded(input)}
		job.Attempt, job.Visit = attempt, visit
		r := serve(job)
		if r.Error == "" {
			return &end{status: flow.StepCompleted, out: decoded(r.Output)}
		}
		if r.Fatal {
			break
		}
	}
	return &end{status: flow.StepFailed}
}

// contains says whether a value contains a pattern.
func contains(v, pattern any) bool {
	p, ok := pattern.(map[string]any)
	if !ok {
		return v == pattern
	}
	have, ok := v.(map[string]any)
	for key, want := range p {
		value, there := have[key]
		ok = ok && there && contains(value, want)
	}
	return ok
}

func decoded(v json.RawMessage) (out any) {
	_ = json.Unmarshal(v, &out) // nothing is null
	return out
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
