package compile

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// checkConnected checks the dependencies, references and execution of the nodes of a scope.
func (c *dagChecker) checkConnected(s *dagScope, at *definition.Place) {
	nodes := at.Key("nodes")
	for _, src := range s.order {
		waits := map[string]bool{}
		for i, dep := range src.source.DependsOn {
			c.checkDependency(s, src.key, dep, waits[dep], nodes.Key(src.key).Key("depends_on").Index(i))
			waits[dep] = true
		}
	}
	for _, src := range s.order {
		c.checkConnectedNode(s, src, nodes.Key(src.key))
	}
}

// checkDependency checks one entry of depends_on.
func (c *dagChecker) checkDependency(s *dagScope, key, dep string, again bool, at *definition.Place) {
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

func (c *dagChecker) checkConnectedNode(s *dagScope, src *dagSource, at *definition.Place) {
	c.checkNodeKeyFields(src.source, src.node, at)
	c.keyRefs(&src.source.KeyFields, src.source.Params, at)
	if src.node.Kind == flow.KindOutput {
		c.checkOutputNode(src, at)
		return
	}
	switch src.source.RunOn {
	case "", runOnSuccess, runAlways:
	default:
		c.Errorf(at.Key("run_on"), "unknown word %.80q: write success or always", src.source.RunOn)
	}
	c.checkSkipMode(src.source, at)
	for _, g := range src.guards {
		c.checkGuardNode(src, g, at)
	}
	c.checkWhen(src, at.Key("when"))
	if src.inner != nil {
		c.withParams(c.insideBranch(src), func() {
			c.checkInnerInputs(src.source.Flow.Definition, at.Key("flow"))
			c.checkerOf(src.inner).checkConnected(src.inner, at.Key("flow"))
		})
		return
	}
	c.checkWorkNode(s, src, at)
}

// insideBranch returns the known params of `run` in a branch whose nodes are in the scope of the
// parent.
func (c *dagChecker) insideBranch(src *dagSource) knownParams {
	if !src.source.Prep.Empty() {
		return knownParams{made: true}
	}
	return c.scopeParams
}

// checkGuardNode checks how a gate, cond or prep is carried out.
func (c *dagChecker) checkGuardNode(src *dagSource, g *flow.PlanNode, at *definition.Place) {
	h, ok := src.guardHandler(g)
	switch {
	case !ok && g.Kind == flow.KindPrep:
		c.checkMapping(src, at)
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
	c.checkDagExec(handlerNode(h, src.source), &g.Exec, from)
	c.checkNodeRetry(src.source, at)
	c.checkTimes(src.source, at)
}

// checkWhen checks a node's condition.
func (c *dagChecker) checkWhen(src *dagSource, at *definition.Place) {
	w := src.source.When
	if w == nil {
		return
	}
	c.checkPattern(src, w.If, "never", at.Key("if"))
	c.checkPattern(src, w.IfNot, "always", at.Key("if_not"))
	if w.Expr != "" {
		c.checkCondition(src.firstNode().Dag.Expr, at.Key("expr"))
		c.checkReads(src, src.firstNode().Dag.Expr, at.Key("expr"))
	}
}

// checkPattern checks a pattern of a condition. met is the result of the pattern for keys that no
// input has.
func (c *dagChecker) checkPattern(src *dagSource, raw json.RawMessage, met string, at *definition.Place) {
	if len(raw) == 0 {
		return
	}
	_, problems := expr.ParsePattern(raw)
	c.reportProblems(problems, at)
	names, any := src.inputKeys()
	if any {
		return
	}
	members, _ := expr.Members(raw)
	for _, m := range members {
		if !slices.Contains(names, m.Key) {
			c.Warnf(at.Key(m.Key), "the node sees no %.80q, so this is %s met%s", m.Key, met, guessFrom(m.Key, names))
		}
	}
}

// inputKeys returns the keys of the input that a condition sees. any means that the keys are
// unknown, because they come from the task's input.
func (src *dagSource) inputKeys() (names []string, any bool) {
	switch shape := src.firstNode().Dag.Shape; {
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

// checkSkipMode checks skip_mode, or whenUnmet, the name of the field in pgflow.
func (c *dagChecker) checkSkipMode(n *definition.Node, at *definition.Place) {
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
	c.checkSkipWord(word, from)
}

// checkWorkNode checks how the work of a node is done.
func (c *dagChecker) checkWorkNode(s *dagScope, src *dagSource, at *definition.Place) {
	n, p := src.source, src.node
	c.checkParams(n.Params, at.Key("params"))
	if _, known := exhaustedMode(n.Exhausted); !known {
		c.Errorf(at.Key("on_exhausted"), "unknown word %.80q: write fail, skip or skip-cascade", n.Exhausted)
	}
	c.checkDuration(n.StartDelay, at.Key("start_delay"))
	c.checkInput(src, at)
	c.outputType(n, at.Key("output_type"))
	c.checkNodeRetry(n, at)
	switch p.Kind {
	case flow.KindExecutor:
		c.checkDagExec(n, &p.Exec, at)
	case flow.KindFanout:
		c.checkDagExec(n, &p.Exec, at)
		c.checkEach(src, at.Key("each"), at)
	case flow.KindSubflow:
		if n.Flow == nil && n.Subflow == nil {
			c.Errorf(at.Key("flow"), "is missing: say what the branch consists of")
		}
		c.checkSubflow(n, p.Sub, c.scopeLowerer.branchSource(s), src.key, at)
	}
	c.checkEnv(n, p.Kind, src, at)
	c.checkWaits(p, nil, at)
	c.checkTimes(n, at)
}

// outputType checks the output type of a node.
func (c *dagChecker) outputType(n *definition.Node, at *definition.Place) {
	_, problems := types.ReadForm(n.OutputType)
	for _, p := range problems {
		if p.Warning {
			c.Warnf(at.Below(p.Path), "%s", p.Msg)
		} else {
			c.Errorf(at.Below(p.Path), "%s", p.Msg)
		}
	}
}

// checkEach checks where the units of a fanout come from.
func (c *dagChecker) checkEach(src *dagSource, at, node *definition.Place) {
	n, e := src.source, eachOf(src.source)
	c.checkCount(e.Concurrency, at.Key("concurrency"))
	if _, known := c.scopeLowerer.eachStrategy(e.OnError); !known {
		c.Errorf(at.Key("on_error"), "unknown word %.80q: write fail_fast, collect or continue", e.OnError)
	}
	switch {
	case e.Items.Handler.Given():
	case e.Items.Literal:
		c.Errorf(at.Key("items"), "must be a reference or a handler: for a number of units write count")
	case e.Items.Ref != "":
		c.checkReference(src, e.Items.Ref, at.Key("items"))
		c.checkRunKind(src, e.Items.Ref, expr.KindArray, at.Key("items"))
	case !e.Count.IsZero():
	case n.Kind != "map":
		c.Errorf(at.Key("items"), "is missing: say where the items come from")
	case len(n.DependsOn) > 1:
		c.Errorf(node.Key("depends_on"), "a map works on one list: it has one dependency at most")
	}
	c.checkEachCount(src, at.Key("count"))
}

func (c *dagChecker) checkEachCount(src *dagSource, at *definition.Place) {
	switch count := eachOf(src.source).Count; {
	case count.Handler.Given():
		c.Errorf(at, "must be a number or a reference")
	case count.Literal && count.Number < 1:
		c.Errorf(at, "must be 1 at least")
	case count.Literal && count.Number > c.limits.Units:
		c.Errorf(at, "is more than the %d units a step may have", c.limits.Units)
	case count.Ref != "":
		c.checkReference(src, count.Ref, at)
		c.checkRunKind(src, count.Ref, expr.KindNumber, at)
	}
}

// checkOutputNode checks the parts of a scope's output.
func (c *dagChecker) checkOutputNode(src *dagSource, at *definition.Place) {
	if !hasHandler(src.source) {
		c.checkMapping(src, at)
		return
	}
	c.checkDagExec(src.source, &src.node.Exec, at)
	c.checkEnv(src.source, src.node.Kind, nil, at)
	c.checkNodeRetry(src.source, at)
	c.checkTimes(src.source, at)
}

// checkInput checks the input of a node's handler.
func (c *dagChecker) checkInput(src *dagSource, at *definition.Place) {
	n, p, branch := src.source, src.node.Dag, src.node.Kind == flow.KindSubflow
	c.checkShape(n.InputShape, at)
	if len(n.Inputs) > 0 && !n.Prep.Empty() && !branch {
		c.Errorf(at.Key("prep"), "the input is said by inputs already: give one of them")
	}
	if kind := expr.KindOf(n.Input); len(n.Input) > 0 && kind != expr.KindObject {
		c.Errorf(at.Key("input"), "must be an object, is %s", kind)
	}
	if !branch {
		c.checkMapping(src, at)
	}
	for _, seen := range p.Sees {
		if _, clash := expr.Field(p.Static, seen.Name); clash {
			c.Warnf(at.Key("input").Key(seen.Name), "is never seen: the output of the dependency lies over it")
		}
	}
}

// checkMapping checks an input, or the value of a prep or output, that is built from parts.
func (c *dagChecker) checkMapping(src *dagSource, at *definition.Place) {
	n, prep := src.source, at.Key("prep")
	switch {
	case len(n.Inputs) > 0:
		for _, name := range slices.Sorted(maps.Keys(n.Inputs)) {
			b, at := n.Inputs[name], at.Key("inputs").Key(name)
			switch {
			case (b.Ref == "") == (len(b.Const) == 0):
				c.Errorf(at, "needs exactly one of const and ref")
			case b.Ref != "":
				c.checkReference(src, b.Ref, at.Key("ref"))
			}
		}
	case n.Prep.Expr != "":
		compiled := c.scopeLowerer.compileCEL(n.Prep.Expr, true)
		c.checkCEL(compiled, prep.Key("expr"))
		c.checkReads(src, compiled, prep.Key("expr"))
	case n.Prep.InputMap != nil:
		for _, name := range slices.Sorted(maps.Keys(n.Prep.InputMap)) {
			switch text, at := n.Prep.InputMap[name], prep.Key("input_map").Key(name); {
			case strings.HasPrefix(text, "$"):
				c.checkReference(src, text, at)
			case src.missingDollarRef(text) != "":
				c.Warnf(at, "%.80q is a text: references begin with $, so write %.80s", text, src.missingDollarRef(text))
			}
		}
	case n.Prep.InputKey != "":
		c.checkReference(src, n.Prep.InputKey, prep.Key("input_key"))
	}
}

// checkReference checks that a reference names a visible value.
func (c *dagChecker) checkReference(src *dagSource, text string, at *definition.Place) {
	switch r, unseen := parseReference(text, src.sees); {
	case unseen == "":
		if r.From == flow.FromRun || r.From == flow.FromInput {
			c.checkRunRef(text, r.Path, at)
		}
	case unseen == "$item":
		c.Errorf(at, "%.80q cannot be referred to: a unit gets its item as it is", text)
	case strings.HasPrefix(unseen, "$"):
		c.Errorf(at, "%.80q begins with %.80q: references begin with $run, $deps, $shared or $params", text, unseen)
	default:
		c.reportUnseen(src, text, unseen, at)
	}
}

func (c *dagChecker) reportUnseen(src *dagSource, text, name string, at *definition.Place) {
	c.Errorf(at, "%.80q refers to %.80q, which is not among depends_on%s", text, name, src.guessDependency(name))
}

// checkReads checks the variables and fields that an expression reads.
func (c *dagChecker) checkReads(src *dagSource, compiled *expr.CEL, at *definition.Place) {
	c.checkParamReads(compiled, nil, at)
	for _, read := range compiled.Reads() {
		sees := func(s flow.Seen) bool { return s.Name == read.Path[1] }
		if read.Path[0] == "deps" && !slices.ContainsFunc(src.sees, sees) {
			c.reportUnseen(src, strings.Join(read.Path, "."), read.Path[1], at.Character(read.At))
		}
	}
}

// guessDependency returns the question whether another dependency was meant.
func (src *dagSource) guessDependency(name string) definition.Guess {
	return definition.Guess{Word: name, Names: func() (names []string) {
		for _, seen := range src.sees {
			names = append(names, seen.Name)
		}
		return names
	}}
}

// missingDollarRef returns the reference that a text was probably meant to be, or "".
func (src *dagSource) missingDollarRef(text string) string {
	head, rest, _ := strings.Cut(text, ".")
	if rest == "" || strings.ContainsAny(rest, " \t\n") {
		return ""
	}
	for _, meant := range []string{"$" + text, "$deps." + text} {
		if _, unseen := parseReference(meant, src.sees); unseen == "" && head != "tasks" {
			return meant
		}
	}
	return ""
}
