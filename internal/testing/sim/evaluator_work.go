package sim

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// buildInput returns the input of a node's handler.
func (e *dagEvaluator) buildInput(in *scopeContext, sees depsView) any {
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

// evaluateWork returns the end of a node that runs.
func (e *dagEvaluator) evaluateWork(in *scopeContext, key string, n *dagNode, sees depsView) *nodeEnd {
	var r *nodeEnd
	switch {
	case n.Kind == "timer":
		return &nodeEnd{status: flow.StepCompleted}
	case n.Kind == "wait_event":
		return &nodeEnd{status: flow.StepCompleted, out: decodeValue(e.play.signals[key])}
	case n.Kind == "fanout":
		items, ok := e.fanoutItems(in, n, sees)
		if !ok {
			return &nodeEnd{status: flow.StepFailed}
		}
		r = e.evaluateUnits(n, key, items)
	case n.Kind == "branch":
		made := &nodeEnd{status: flow.StepCompleted, out: in.run}
		if n.Prep != nil {
			made = e.evaluatePrep(in, n, sees)
		}
		if made.status == flow.StepFailed {
			return made
		}
		r = e.evaluateGraph(n, made.out)
	case n.Route == "direct":
		return &nodeEnd{status: flow.StepCompleted, out: decodeValue(directOutput(0))}
	case n.Prep != nil:
		made := e.evaluateExpr(in, n, sees)
		if made.status == flow.StepFailed {
			return made
		}
		r = e.tryService(n.Service, n, made.out)
	default:
		r = e.tryService(n.Service, n, e.buildInput(in, sees))
	}
	if r.status == flow.StepFailed && strings.HasPrefix(n.OnExhausted, "skip") {
		return &nodeEnd{status: flow.StepSkipped, optional: n.OnExhausted == "skip"}
	}
	return r
}

// fanoutItems returns the items of a fanout.
func (e *dagEvaluator) fanoutItems(in *scopeContext, n *dagNode, sees depsView) (units []any, ok bool) {
	input := e.buildInput(in, sees)
	if count, counted := n.Each.Count.(float64); counted {
		for range int(count) {
			units = append(units, input)
		}
		return units, true
	}
	var list any
	if handler, made := n.Each.Items.(map[string]any); made {
		list = e.tryService(handler["service"].(string), n, input).out
	} else {
		ref := n.Each.Items.(string)
		if dep, of := strings.CutPrefix(ref, "$deps."); of && sees.skipped[dep] {
			return nil, true
		}
		list, _ = in.resolveRef(sees, ref)
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

func (e *dagEvaluator) evaluateUnits(n *dagNode, key string, items []any) *nodeEnd {
	outs := []any{}
	if n.Route == "direct" && len(items) > 0 {
		for i := range len(items) + e.play.appends[key] {
			outs = append(outs, decodeValue(directOutput(i)))
		}
		return &nodeEnd{status: flow.StepCompleted, out: outs}
	}
	failed := false
	for _, item := range items {
		r := e.tryService(n.Service, n, item)
		failed = failed || r.status == flow.StepFailed
		outs = append(outs, r.out)
	}
	if failed && n.Each.OnError != "continue" {
		return &nodeEnd{status: flow.StepFailed}
	}
	return &nodeEnd{status: flow.StepCompleted, out: outs}
}

// evaluateGraph evaluates the graph that scenarios have in a branch: x, then y, if a choice between
// them allows y.
func (e *dagEvaluator) evaluateGraph(n *dagNode, run any) *nodeEnd {
	fields, _ := run.(map[string]any)
	first, second := n.Flow.Nodes["x"].Service, n.Flow.Nodes["y"].Service
	visit := 1
	if first == "second" || first == "unlucky" {
		visit = e.visit
	}
	x := e.runAttempts(first, 1, visit, fields["n"])
	if x.status == flow.StepFailed {
		return x
	}
	if c := n.Flow.Nodes["c"]; c != nil {
		goes, ok := e.play.cel.byText[c.ChoiceCases[0].Expr].evaluate(object{"params": fields, "shared": object{"out": x.out}})
		switch {
		case !ok:
			return &nodeEnd{status: flow.StepFailed}
		case goes != true:
			return x
		}
	}
	return e.runAttempts(second, 1, 1, map[string]any{"was": x.out})
}

func (e *dagEvaluator) tryService(service string, n *dagNode, input any) *nodeEnd {
	return e.runAttempts(service, max(n.Retry.MaxAttempts, 1), e.visit, input)
}

// runAttempts calls a service until it succeeds or the attempts are used up.
func (e *dagEvaluator) runAttempts(service string, most, visit int, input any) *nodeEnd {
	for attempt := 1; attempt <= most; attempt++ {
		job := flow.Job{Exec: &flow.Exec{Service: service}, Input: encodeValue(input)}
		job.Attempt, job.Visit = attempt, visit
		r := serveJob(job)
		if r.Error == "" {
			return &nodeEnd{status: flow.StepCompleted, out: decodeValue(r.Output)}
		}
		if r.Fatal {
			break
		}
	}
	return &nodeEnd{status: flow.StepFailed}
}

func containsPattern(v, pattern any) bool {
	p, ok := pattern.(map[string]any)
	if !ok {
		return v == pattern
	}
	have, ok := v.(map[string]any)
	for key, want := range p {
		value, there := have[key]
		ok = ok && there && containsPattern(value, want)
	}
	return ok
}

func decodeValue(v json.RawMessage) (out any) {
	_ = json.Unmarshal(v, &out) // null if the value cannot be decoded
	return out
}

func encodeValue(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
