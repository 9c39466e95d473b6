package compile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/define"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// connected checks what the nodes of a scope wait for, what they refer to and how they are carried out.
func (c *dagChecker) connected(s *dagScope, at *define.Place) {
	nodes := at.Key("nodes")
	for _, src := range s.order {
		waits := map[string]bool{}
		for i, dep := range src.n.DependsOn {
			c.dependency(s, src.key, dep, waits[dep], nodes.Key(src.key).Key("depends_on").Index(i))
			waits[dep] = true
		}
	}
	for _, src := range s.order {
		c.connectedNode(s, src, nodes.Key(src.key))
	}
}

// dependency checks one entry of depends_on.
func (c *dagChecker) dependency(s *dagScope, key, dep string, again bool, at *define.Place) {
	switch _, known := s.names[dep]; {
	case dep == key:
		c.Errorf(at, "a node cannot wait for itself")
	case again:
		c.Errorf(at, "%.80q is there twice", dep)
	case s.special[dep]:
		c.Errorf(at, "%.80q compensates or runs finally: nobody can wait for it", dep)
	case !known && strings.ContainsAny(dep, "/:"):
		c.Errorf(at, "%.80q is in another scope: a node waits only for nodes beside it", dep)
	case !known:
		c.Errorf(at, "unknown node %.80q%s", dep, guessNode(dep, s.names))
	}
}

func (c *dagChecker) connectedNode(s *dagScope, src *dagSource, at *define.Place) {
	c.keyed(src.n, src.node, at)
	c.keyRefs(&src.n.KeyFields, src.n.Params, at)
	if src.node.Kind == flow.KindOutput {
		c.outputNode(src, at)
		return
	}
	switch src.n.RunOn {
	case "", runOnSuccess, runAlways:
	default:
		c.Errorf(at.Key("run_on"), "unknown word %.80q: write success or always", src.n.RunOn)
	}
	c.skipMode(src.n, at)
	for _, g := range src.ghosts {
		c.ghostNode(src, g, at)
	}
	c.when(src, at.Key("when"))
	if src.inner != nil {
		c.within(c.insideBranch(src), func() {
			c.inputsInside(src.n.Flow.Definition, at.Key("flow"))
			c.connected(src.inner, at.Key("flow"))
		})
		return
	}
	c.workNode(s, src, at)
}

// insideBranch is what `run` is in a branch that is laid out in its scope.
func (c *dagChecker) insideBranch(src *dagSource) given {
	if !src.n.Prep.Empty() {
		return given{made: true}
	}
	return c.given
}

// ghostNode checks how a gate, cond or prep is carried out.
func (c *dagChecker) ghostNode(src *dagSource, g *flow.PlanNode, at *define.Place) {
	h, ok := src.handler(g)
	switch {
	case !ok && g.Kind == flow.KindPrep:
		c.mapping(src, at)
		return
	case !ok:
		return
	}
	from := at.Key("prep")
	switch {
	case g.Kind == flow.KindCond:
		from = at.Key("when").Key("cond")
	case src.node.Kind == flow.KindFanout:
		from = at.Key("each").Key("items")
	}
	c.checkNodeFields(handlerSpot(h, g), false, from)
	c.dagExec(handlerNode(h, src.n), &g.Exec, from)
	c.tries(src.n, at)
	c.times(src.n, at)
}

// when checks a node's condition.
func (c *dagChecker) when(src *dagSource, at *define.Place) {
	w := src.n.When
	if w == nil {
		return
	}
	c.pattern(src, w.If, "never", at.Key("if"))
	c.pattern(src, w.IfNot, "always", at.Key("if_not"))
	if w.Expr != "" {
		c.condition(src.first().Dag.Expr, at.Key("expr"))
		c.reads(src, src.first().Dag.Expr, at.Key("expr"))
	}
}

// pattern checks what an input has to contain, or must not. Met says when that is so of what no input has.
func (c *dagChecker) pattern(src *dagSource, raw json.RawMessage, met string, at *define.Place) {
	if len(raw) == 0 {
		return
	}
	_, problems := expr.ParsePattern(raw)
	c.inside(problems, at)
	names, any := src.inputKeys()
	if any {
		return
	}
	members, _ := expr.Members(raw)
	for _, m := range members {
		if !slices.Contains(names, m.Key) {
			c.Warnf(at.Key(m.Key), "the node sees no %.80q, so this is %s met%s", m.Key, met, guess(m.Key, names))
		}
	}
}

// inputKeys are those of what a condition looks at; any says that they are the task's, or made of its input.
func (src *dagSource) inputKeys() (names []string, any bool) {
	switch shape := src.first().Dag.Shape; {
	case shape == flow.ShapeMerged, shape == flow.ShapeDeps && len(src.sees) == 0:
		return nil, true
	case shape != flow.ShapeDeps:
		names = []string{"run"}
	}
	for _, seen := range src.sees {
		names = append(names, cmp.Or(seen.As, seen.Name))
	}
	return names, false
}

// skipMode checks skip_mode, or the same in pgflow's words.
func (c *dagChecker) skipMode(n *define.Node, at *define.Place) {
	word, from := n.SkipMode, at.Key("skip_mode")
	if n.WhenUnmet != "" {
		if word != "" {
			c.Errorf(at.Key("whenUnmet"), "says the same as skip_mode: give one of them")
		}
		word, from = n.WhenUnmet, at.Key("whenUnmet")
		if pgflowSkips[word] != "" {
			word = pgflowSkips[word]
		}
	}
	c.skipWord(word, from)
}

// workNode checks how a node of a definition does its work.
func (c *dagChecker) workNode(s *dagScope, src *dagSource, at *define.Place) {
	n, p := src.n, src.node
	c.params(n.Params, at.Key("params"))
	if _, known := exhausted(n.Exhausted); !known {
		c.Errorf(at.Key("on_exhausted"), "unknown word %.80q: write fail, skip or skip-cascade", n.Exhausted)
	}
	c.duration(n.StartDelay, at.Key("start_delay"))
	c.input(src, at)
	c.outputType(n, at.Key("output_type"))
	c.tries(n, at)
	switch p.Kind {
	case flow.KindExecutor:
		c.dagExec(n, &p.Exec, at)
	case flow.KindFanout:
		c.dagExec(n, &p.Exec, at)
		c.each(src, at.Key("each"), at)
	case flow.KindSubflow:
		if n.Flow == nil && n.Subflow == nil {
			c.Errorf(at.Key("flow"), "is missing: say what the branch consists of")
		}
		c.subflow(n, p.Sub, c.by.inside(s), src.key, at)
	}
	c.env(n, p.Kind, src, at)
	c.waits(p, nil, at)
	c.times(n, at)
}

// outputType checks what a node's handler has to return.
func (c *dagChecker) outputType(n *define.Node, at *define.Place) {
	_, problems := types.ReadForm(n.OutputType)
	for _, p := range problems {
		if p.Warning {
			c.Warnf(at.Below(p.Path), "%s", p.Msg)
		} else {
			c.Errorf(at.Below(p.Path), "%s", p.Msg)
		}
	}
}

// each checks where the units of a fanout come from.
func (c *dagChecker) each(src *dagSource, at, node *define.Place) {
	n, e := src.n, eachOf(src.n)
	c.count(e.Concurrency, at.Key("concurrency"))
	if _, known := c.by.eachStrategy(e.OnError); !known {
		c.Errorf(at.Key("on_error"), "unknown word %.80q: write fail_fast, collect or continue", e.OnError)
	}
	switch {
	case e.Items.Handler.Given():
	case e.Items.Literal:
		c.Errorf(at.Key("items"), "must be a reference or a handler: for a number of units write count")
	case e.Items.Ref != "":
		c.reference(src, e.Items.Ref, at.Key("items"))
		c.runHolds(src, e.Items.Ref, expr.KindArray, at.Key("items"))
	case !e.Count.IsZero():
	case n.Kind != "map":
		c.Errorf(at.Key("items"), "is missing: say where the items come from")
	case len(n.DependsOn) > 1:
		c.Errorf(node.Key("depends_on"), "a map works on one list: it has one dependency at most")
	}
	c.eachCount(src, at.Key("count"))
}

func (c *dagChecker) eachCount(src *dagSource, at *define.Place) {
	switch count := eachOf(src.n).Count; {
	case count.Handler.Given():
		c.Errorf(at, "must be a number or a reference")
	case count.Literal && count.Number < 1:
		c.Errorf(at, "must be 1 at least")
	case count.Literal && count.Number > c.limits.Units:
		c.Errorf(at, "is more than the %d units a step may have", c.limits.Units)
	case count.Ref != "":
		c.reference(src, count.Ref, at)
		c.runHolds(src, count.Ref, expr.KindNumber, at)
	}
}

// outputNode checks what a scope's output is made of.
func (c *dagChecker) outputNode(src *dagSource, at *define.Place) {
	if !handled(src.n) {
		c.mapping(src, at)
		return
	}
	c.dagExec(src.n, &src.node.Exec, at)
	c.env(src.n, src.node.Kind, nil, at)
	c.tries(src.n, at)
	c.times(src.n, at)
}

// input checks what a node's handler gets.
func (c *dagChecker) input(src *dagSource, at *define.Place) {
	n, p, branch := src.n, src.node.Dag, src.node.Kind == flow.KindSubflow
	c.shape(n.InputShape, at)
	if len(n.Inputs) > 0 && !n.Prep.Empty() && !branch {
		c.Errorf(at.Key("prep"), "the input is said by inputs already: give one of them")
	}
	if kind := expr.KindOf(n.Input); len(n.Input) > 0 && kind != expr.KindObject {
		c.Errorf(at.Key("input"), "must be an object, is %s", kind)
	}
	if !branch {
		c.mapping(src, at)
	}
	for _, seen := range p.Sees {
		if _, clash := expr.Field(p.Static, seen.Name); clash {
			c.Warnf(at.Key("input").Key(seen.Name), "is never seen: the output of the dependency lies over it")
		}
	}
}

// mapping checks an input, or the value of a prep or output, that is put together of parts.
func (c *dagChecker) mapping(src *dagSource, at *define.Place) {
	n, prep := src.n, at.Key("prep")
	switch {
	case len(n.Inputs) > 0:
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			b, at := n.Inputs[name], at.Key("inputs").Key(name)
			switch {
			case (b.Ref == "") == (len(b.Const) == 0):
				c.Errorf(at, "needs exactly one of const and ref")
			case b.Ref != "":
				c.reference(src, b.Ref, at.Key("ref"))
			}
		}
	case n.Prep.Expr != "":
		compiled := c.by.cel(n.Prep.Expr, true)
		c.cel(compiled, prep.Key("expr"))
		c.reads(src, compiled, prep.Key("expr"))
	case n.Prep.InputMap != nil:
		for _, name := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
			switch text, at := n.Prep.InputMap[name], prep.Key("input_map").Key(name); {
			case strings.HasPrefix(text, "$"):
				c.reference(src, text, at)
			case src.dollarless(text) != "":
				c.Warnf(at, "%.80q is a text: references begin with $, so write %.80s", text, src.dollarless(text))
			}
		}
	case n.Prep.InputKey != "":
		c.reference(src, n.Prep.InputKey, prep.Key("input_key"))
	}
}

// reference checks that a reference names something that is seen.
func (c *dagChecker) reference(src *dagSource, text string, at *define.Place) {
	switch r, unseen := reference(text, src.sees); {
	case unseen == "":
		if r.From == flow.FromRun || r.From == flow.FromInput {
			c.intoRun(text, r.Path, at)
		}
	case unseen == "$item":
		c.Errorf(at, "%.80q cannot be referred to: a unit gets its item as it is", text)
	case strings.HasPrefix(unseen, "$"):
		c.Errorf(at, "%.80q begins with %.80q: references begin with $run, $deps, $shared or $params", text, unseen)
	default:
		c.unseen(src, text, unseen, at)
	}
}

func (c *dagChecker) unseen(src *dagSource, text, name string, at *define.Place) {
	c.Errorf(at, "%.80q refers to %.80q, which is not among depends_on%s", text, name, src.guess(name))
}

// reads checks the parts of variables that an expression names.
func (c *dagChecker) reads(src *dagSource, compiled *expr.CEL, at *define.Place) {
	c.readsOf(compiled, nil, at)
	for _, read := range compiled.Reads() {
		sees := func(s flow.Seen) bool { return s.Name == read.Path[1] }
		if read.Path[0] == "deps" && !slices.ContainsFunc(src.sees, sees) {
			c.unseen(src, strings.Join(read.Path, "."), read.Path[1], at.Character(read.At))
		}
	}
}

// guess asks whether another node was meant, of those that references may name.
func (src *dagSource) guess(name string) define.Guess {
	return define.Guess{Word: name, Names: func() (names []string) {
		for _, seen := range src.sees {
			names = append(names, seen.Name)
		}
		return names
	}}
}

// dollarless is the reference that a text may have been meant to be, or "".
func (src *dagSource) dollarless(text string) string {
	head, rest, _ := strings.Cut(text, ".")
	if rest == "" || strings.ContainsAny(rest, " \t\n") {
		return ""
	}
	for _, meant := range []string{"$" + text, "$deps." + text} {
		if _, unseen := reference(meant, src.sees); unseen == "" && head != "tasks" {
			return meant
		}
	}
	return ""
}
