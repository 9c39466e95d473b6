package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// connected checks what the nodes of a scope wait for, what they refer to and how they are carried out.
func (c *dagChecker) connected(s *dagScope, at *place) {
	nodes := at.key("nodes")
	for _, src := range s.order {
		waits := map[string]bool{}
		for i, dep := range src.n.DependsOn {
			c.dependency(s, src.key, dep, waits[dep], nodes.key(src.key).key("depends_on").index(i))
			waits[dep] = true
		}
	}
	for _, src := range s.order {
		c.connectedNode(s, src, nodes.key(src.key))
	}
}

// dependency checks one entry of depends_on.
func (c *dagChecker) dependency(s *dagScope, key, dep string, again bool, at *place) {
	switch _, known := s.names[dep]; {
	case dep == key:
		c.errorf(at, "a node cannot wait for itself")
	case again:
		c.errorf(at, "%.80q is there twice", dep)
	case s.special[dep]:
		c.errorf(at, "%.80q compensates or runs finally: nobody can wait for it", dep)
	case !known && strings.ContainsAny(dep, "/:"):
		c.errorf(at, "%.80q is in another scope: a node waits only for nodes beside it", dep)
	case !known:
		c.errorf(at, "unknown node %.80q", dep)
	}
}

func (c *dagChecker) connectedNode(s *dagScope, src *dagSource, at *place) {
	c.idleInDag(src.n, at)
	if src.node.Kind == KindOutput {
		c.outputNode(src, at)
		return
	}
	switch src.n.RunOn {
	case "", runOnSuccess, runAlways:
	default:
		c.errorf(at.key("run_on"), "unknown word %.80q: write success or always", src.n.RunOn)
	}
	c.skipMode(src.n, at)
	for _, g := range src.ghosts {
		c.ghostNode(src, g, at)
	}
	c.when(src, at.key("when"))
	if src.inner != nil {
		c.connected(src.inner, at.key("flow"))
		return
	}
	c.workNode(s, src, at)
}

// ghostNode checks how a gate, cond or prep is carried out.
func (c *dagChecker) ghostNode(src *dagSource, g *PlanNode, at *place) {
	h, ok := src.handler(g)
	switch {
	case !ok && g.Kind == KindPrep:
		c.mapping(src, at)
		return
	case !ok:
		return
	}
	from := at.key("prep")
	switch {
	case g.Kind == KindCond:
		from = at.key("when").key("cond")
	case src.node.Kind == KindFanout:
		from = at.key("each").key("items")
	}
	c.dagExec(handlerNode(h, src.n), &g.Exec, from)
	c.tries(src.n, at)
	c.times(src.n, at)
}

// when checks a node's condition.
func (c *dagChecker) when(src *dagSource, at *place) {
	w := src.n.When
	if w == nil {
		return
	}
	c.pattern(w.If, at.key("if"))
	c.pattern(w.IfNot, at.key("if_not"))
	if w.Expr != "" {
		c.condition(src.first().Dag.Expr, at.key("expr"))
	}
}

// pattern checks what an input has to contain, or must not.
func (c *dagChecker) pattern(raw json.RawMessage, at *place) {
	if len(raw) > 0 {
		_, problems := expr.ParsePattern(raw)
		c.inside(problems, at)
	}
}

// skipMode checks skip_mode, or the same in pgflow's words.
func (c *dagChecker) skipMode(n *Node, at *place) {
	word, from := n.SkipMode, at.key("skip_mode")
	if n.WhenUnmet != "" {
		if word != "" {
			c.errorf(at.key("whenUnmet"), "says the same as skip_mode: give one of them")
		}
		word, from = n.WhenUnmet, at.key("whenUnmet")
		if n.When == nil {
			c.errorf(from, "has no effect without a condition: add when, or leave it out")
		}
		if pgflowSkips[word] != "" {
			word = pgflowSkips[word]
		}
	}
	c.skipWord(word, from)
	if _, known := skipWord(word); known && word != "" && n.SkipMode != "" && n.When == nil {
		c.warnf(from, "has no effect without a condition: add when, or leave it out")
	}
}

// workNode checks how a node of a definition does its work.
func (c *dagChecker) workNode(s *dagScope, src *dagSource, at *place) {
	n, p := src.n, src.node
	c.params(n.Params, at.key("params"))
	if _, known := exhausted(n.Exhausted); !known {
		c.errorf(at.key("on_exhausted"), "unknown word %.80q: write fail, skip or skip-cascade", n.Exhausted)
	}
	c.duration(n.StartDelay, at.key("start_delay"))
	c.input(src, at)
	c.tries(n, at)
	switch p.Kind {
	case KindExecutor:
		c.dagExec(n, &p.Exec, at)
	case KindFanout:
		c.dagExec(n, &p.Exec, at)
		c.each(src, at.key("each"), at)
	case KindSubflow:
		if n.Flow == nil && n.Subflow == nil {
			c.errorf(at.key("flow"), "is missing: say what the branch consists of")
		}
		c.subflow(n, p.Sub, c.by.inside(s), src.key, at)
	}
	c.waits(p, at)
	c.times(n, at)
}

// each checks where the units of a fanout come from.
func (c *dagChecker) each(src *dagSource, at, node *place) {
	n, e := src.n, src.n.each()
	c.count(e.Concurrency, at.key("concurrency"))
	if _, known := c.by.eachStrategy(e.OnError); !known {
		c.errorf(at.key("on_error"), "unknown word %.80q: write fail_fast, collect or continue", e.OnError)
	}
	switch {
	case e.Items.Handler.given():
	case e.Items.Literal:
		c.errorf(at.key("items"), "must be a reference or a handler: for a number of units write count")
	case e.Items.Ref != "":
		c.reference(src, e.Items.Ref, at.key("items"))
	case !e.Count.IsZero():
	case n.Kind != "map":
		c.errorf(at.key("items"), "is missing: say where the items come from")
	case len(n.DependsOn) > 1:
		c.errorf(node.key("depends_on"), "a map works on one list: it has one dependency at most")
	}
	if src.node.Dag.Items != nil {
		const whole = "has no effect: a unit gets its item; with input_shape: merged it gets the item as item, beside the rest"
		for _, f := range []idle{{"inputs", len(n.Inputs) > 0, whole}, {"prep", !n.Prep.empty(), whole}} {
			if f.written {
				c.warnf(node.key(f.name), "%s", f.instead)
			}
		}
	}
	c.eachCount(src, at.key("count"))
}

func (c *dagChecker) eachCount(src *dagSource, at *place) {
	switch count := src.n.each().Count; {
	case count.Handler.given():
		c.errorf(at, "must be a number or a reference")
	case count.Literal && count.Number < 1:
		c.errorf(at, "must be 1 at least")
	case count.Literal && count.Number > c.limits.Units:
		c.errorf(at, "is more than the %d units a step may have", c.limits.Units)
	case count.Ref != "":
		c.reference(src, count.Ref, at)
	}
}

// outputNode checks what a scope's output is made of.
func (c *dagChecker) outputNode(src *dagSource, at *place) {
	if !src.n.handled() {
		c.mapping(src, at)
		return
	}
	c.dagExec(src.n, &src.node.Exec, at)
	c.tries(src.n, at)
	c.times(src.n, at)
}

// input checks what a node's handler gets.
func (c *dagChecker) input(src *dagSource, at *place) {
	n, p, branch := src.n, src.node.Dag, src.node.Kind == KindSubflow
	mapped := len(n.Inputs) > 0 || !n.Prep.empty()
	c.shape(n.InputShape, at)
	if shape, _ := shapeOf(n.InputShape, ""); mapped && !branch && shape != "" && shape != ShapeMapped {
		c.warnf(at.key("input_shape"), "has no effect: the input is said by inputs or prep")
	}
	if len(n.Inputs) > 0 && !n.Prep.empty() && !branch {
		c.errorf(at.key("prep"), "the input is said by inputs already: give one of them")
	}
	if kind := expr.KindOf(n.Input); len(n.Input) > 0 && kind != expr.KindObject {
		c.errorf(at.key("input"), "must be an object, is %s", kind)
	}
	if n.Prep.given() && !branch {
		c.errorf(at.key("prep"), "only a branch has a handler for its input; a fanout names one in each.items")
	}
	if !branch {
		c.mapping(src, at)
	}
	for _, seen := range p.Sees {
		if _, clash := expr.Field(p.Static, seen.Name); clash {
			c.warnf(at.key("input").key(seen.Name), "is never seen: the output of the dependency lies over it")
		}
	}
	if p.Static != nil && p.Shape != ShapeMerged {
		c.errorf(at.key("input"), "has an effect in input_shape merged alone: for a mapped input write inputs")
	}
}

// mapping checks an input, or the value of a prep or output, that is put together of parts.
func (c *dagChecker) mapping(src *dagSource, at *place) {
	n, prep := src.n, at.key("prep")
	switch {
	case len(n.Inputs) > 0:
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			b, at := n.Inputs[name], at.key("inputs").key(name)
			switch {
			case (b.Ref == "") == (len(b.Const) == 0):
				c.errorf(at, "needs exactly one of const and ref")
			case b.Ref != "":
				c.reference(src, b.Ref, at.key("ref"))
			}
		}
	case n.Prep.Expr != "":
		c.cel(c.by.cel(n.Prep.Expr, true), prep.key("expr"))
	case n.Prep.InputMap != nil:
		for _, name := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
			if text := n.Prep.InputMap[name]; strings.HasPrefix(text, "$") {
				c.reference(src, text, prep.key("input_map").key(name))
			}
		}
	case n.Prep.InputKey != "":
		c.reference(src, n.Prep.InputKey, prep.key("input_key"))
	}
}

// reference checks that a reference names something that is seen.
func (c *dagChecker) reference(src *dagSource, text string, at *place) {
	switch _, unseen := reference(text, src.sees); {
	case unseen == "":
	case unseen == "$item":
		c.errorf(at, "%.80q cannot be referred to: a unit gets its item as it is", text)
	case strings.HasPrefix(unseen, "$"):
		c.errorf(at, "%.80q begins with %.80q: references begin with $run, $deps, $shared or $params", text, unseen)
	default:
		c.errorf(at, "%.80q refers to %.80q, which is not among depends_on", text, unseen)
	}
}
