package cases

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// readTimedActs reads acts at given times: {2d: {approve: sign}, 3w: cancel}.
func (r *caseReader) readTimedActs(c *Case, n *yaml.Node) {
	if !r.expectKind(n, yaml.MappingNode, "at") {
		return
	}
	// the acts that all cases share
	c.Acts = slices.DeleteFunc(c.Acts, func(a rehearse.Act) bool { return a.Waiting == "" })
	for _, p := range r.mappingPairs(n) {
		at := r.readSpan(p.key, "at")
		for _, e := range listElements(p.value) {
			for _, a := range r.readActs(e) {
				a.At += at
				a.ID = "at " + rehearse.Span(a.At) + ": " + actWords(&a)
				r.addAct(c, a, e)
			}
		}
	}
}

// readWaitingActs reads acts for waiting steps: {sign: {answer: true, after: 1h}}. In a list, the
// first act is for the first wait of the step, and the last act for all later waits.
func (r *caseReader) readWaitingActs(c *Case, n *yaml.Node) {
	if !r.expectKind(n, yaml.MappingNode, "when_waiting") {
		return
	}
	c.Acts = slices.DeleteFunc(c.Acts, func(a rehearse.Act) bool { return a.Waiting != "" })
	for _, p := range r.mappingPairs(n) {
		for i, e := range listElements(p.value) {
			for _, a := range r.readActs(e) {
				a.Waiting, a.Nth = p.key.Value, i
				if a.Kind == rehearse.ActAnswer || a.Target == "" && needsTarget(a.Kind) {
					a.Target = p.key.Value
				}
				a.ID = "when " + a.Waiting + " waits"
				if a.At > 0 {
					a.ID += ", " + rehearse.Span(a.At) + " later"
				}
				a.ID += ": " + actWords(&a)
				r.addAct(c, a, e)
			}
		}
	}
}

func needsTarget(k rehearse.ActKind) bool {
	return k == rehearse.ActApprove || k == rehearse.ActReject
}

// addAct adds an act. It numbers acts of equal wording, so that their ids are unique.
func (r *caseReader) addAct(c *Case, a rehearse.Act, n *yaml.Node) {
	id := a.ID
	for i := 2; c.actsFrom[a.ID] != (Place{}); i++ {
		a.ID = fmt.Sprintf("%s (%d)", id, i)
	}
	c.actsFrom[a.ID] = placeOf(n)
	c.Acts = append(c.Acts, a)
}

// actWords describes an act without its time.
func actWords(a *rehearse.Act) string {
	switch a.Kind {
	case rehearse.ActSignal, rehearse.ActComplete, rehearse.ActFail:
		return fmt.Sprintf("%s %s = %s", a.Kind, a.Target, rehearse.Value(a.Value))
	case rehearse.ActAnswer:
		return "answer " + rehearse.Value(a.Value)
	}
	if a.Target == "" || a.Target == a.Waiting {
		return string(a.Kind)
	}
	return string(a.Kind) + " " + a.Target
}

// simpleActs are the acts that need no argument.
var simpleActs = []rehearse.ActKind{rehearse.ActCancel, rehearse.ActCancelGracefully, rehearse.ActPause,
	rehearse.ActResume, rehearse.ActRetry, rehearse.ActApprove, rehearse.ActReject}

// readActs reads an act: a word, or a mapping with its argument.
func (r *caseReader) readActs(n *yaml.Node) (all []rehearse.Act) {
	if n.Kind == yaml.ScalarNode {
		kind := rehearse.ActKind(n.Value)
		if !slices.Contains(simpleActs, kind) {
			r.reportUnknown(n, "act", n.Value, []string{"approve", "reject", "cancel",
				"cancel_gracefully", "pause", "resume", "retry", "{signal: {KEY: VALUE}}",
				"{answer: VALUE}", "{complete: {NODE: OUTPUT}}", "{fail: {NODE: TEXT}}",
				"{append: {NODE: [ITEM]}}"})
		}
		return []rehearse.Act{{Kind: kind}}
	}
	known := map[string]func(*yaml.Node){}
	add := func(a rehearse.Act) { all = append(all, a) }
	for _, kind := range simpleActs {
		known[string(kind)] = func(n *yaml.Node) {
			a := rehearse.Act{Kind: kind}
			if needsTarget(kind) {
				a.Target = r.readNodeName(n, string(kind))
			} else {
				r.readBool(n, string(kind))
			}
			add(a)
		}
	}
	known["signal"] = func(n *yaml.Node) {
		r.readMapping(n, "signal", func(key, v *yaml.Node) {
			add(rehearse.Act{Kind: rehearse.ActSignal, Target: key.Value, Value: r.readJSON(v)})
		})
	}
	known["answer"] = func(n *yaml.Node) { add(rehearse.Act{Kind: rehearse.ActAnswer, Value: r.readJSON(n)}) }
	known["complete"] = func(n *yaml.Node) {
		r.readMapping(n, "complete", func(key, v *yaml.Node) {
			add(rehearse.Act{Kind: rehearse.ActComplete, Target: r.readNodeName(key, "complete"), Value: r.readJSON(v)})
		})
	}
	known["fail"] = func(n *yaml.Node) {
		r.readMapping(n, "fail", func(key, v *yaml.Node) {
			add(rehearse.Act{Kind: rehearse.ActFail, Target: r.readNodeName(key, "fail"), Value: expr.Quote(r.readText(v, "fail"))})
		})
	}
	known["append"] = func(n *yaml.Node) {
		r.readMapping(n, "append", func(key, v *yaml.Node) {
			items, _ := expr.Elements(r.readJSON(v))
			add(rehearse.Act{Kind: rehearse.ActAppend, Target: r.readNodeName(key, "append"), Items: items})
		})
	}
	var more func(a *rehearse.Act)
	known["after"] = func(n *yaml.Node) {
		d, before := r.readSpan(n, "after"), more
		more = func(a *rehearse.Act) { a.At = d; applyIf(before, a) }
	}
	known["unit"] = func(n *yaml.Node) {
		unit, before := r.readNumber(n, "unit", 0), more
		more = func(a *rehearse.Act) { a.Unit = unit; applyIf(before, a) }
	}
	r.readFields(n, "an act", known)
	if len(all) == 0 {
		r.reportError(n, "nothing is said to be done")
	}
	for i := range all {
		applyIf(more, &all[i])
	}
	return all
}

func applyIf(f func(*rehearse.Act), a *rehearse.Act) {
	if f != nil {
		f(a)
	}
}

// readMapping reads a mapping with arbitrary keys.
func (r *reader) readMapping(n *yaml.Node, what string, f func(key, v *yaml.Node)) {
	if r.expectKind(n, yaml.MappingNode, what) {
		for _, p := range r.mappingPairs(n) {
			f(p.key, p.value)
		}
	}
}
