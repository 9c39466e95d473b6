package compile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// dagChecker checks one scope of dag mode, including the branches whose nodes are in that scope.
type dagChecker struct {
	*checker
	scopeLowerer *dagLowerer
	keys         map[string]bool // keys of the nodes checked so far
}

// checkerOf returns the checker for the nodes of a branch. The settings of a branch may differ.
func (c *dagChecker) checkerOf(s *dagScope) *dagChecker {
	return &dagChecker{checker: c.checker, scopeLowerer: s.by, keys: c.keys}
}

// checkDag checks a scope of dag mode.
func (c *checker) checkDag(d *definition.Definition, g *flow.PlanScope, at *definition.Place) {
	s := c.lowered.scopes[g]
	dc := &dagChecker{checker: c, scopeLowerer: s.by, keys: map[string]bool{}}
	dc.checkSettings(d, s, at)
	if s.by.profile == flow.ProfileOrk && len(d.Nodes) == 0 {
		c.Errorf(at.Key("nodes"), "there are none: an Ork workflow has one at least")
	}
	dc.checkDeclared(d, s, at)
	dc.checkConnected(s, at)
	if cycle := cycleOf(g.Dag.List); cycle != nil {
		c.Errorf(at.Key("nodes"), "nodes wait for each other in a circle: %s", strings.Join(cycle, " → "))
	}
}

// checkSettings checks the settings of a flow, which apply to its nodes.
func (c *dagChecker) checkSettings(d *definition.Definition, s *dagScope, at *definition.Place) {
	c.checkDefaults(d.Defaults, at.Key("defaults"))
	c.checkShape(d.InputShape, at)
	if _, known := failFastOf(d, s.by.profile); !known {
		c.Errorf(at.Key("on_error"), "unknown word %.80q: write continue or fail_fast", d.OnError)
	}
	c.warnUnobeyedDefaults(d, at.Key("defaults"))
}

// hintsUnobeyed contains, for each field of the defaults, why no node obeys the field, and what to
// do.
var hintsUnobeyed = map[string]string{
	defaultRetry:    "no node without its own has attempts to repeat: give it to a node, or leave it out",
	defaultTimeout:  "no node without its own has attempts that can be late: give it to a node, or leave it out",
	defaultExecType: "each node with jobs has its own, or a route decides: leave it out",
	defaultRoute:    "each node with jobs has its own route, exec_type, func or script: leave it out",
	defaultSkipMode: "no node without its own has a condition: add when to a node, or leave it out",
}

// warnUnobeyedDefaults reports the fields of the defaults that no node obeys. Unknown fields are
// already reported as errors.
func (c *dagChecker) warnUnobeyedDefaults(d *definition.Definition, at *definition.Place) {
	_, skips := skipWord(d.Defaults.SkipMode)
	unknown := map[string]bool{
		defaultExecType: !knownExec(flow.ExecType(d.Defaults.ExecType)),
		defaultRoute:    routes[d.Defaults.Route] == "",
		defaultSkipMode: !skips,
	}
	for _, field := range writtenDefaults(&d.Defaults) {
		if !unknown[field] && !c.lowered.obeyed[d][field] {
			c.Warnf(at.Key(field), "has no effect: %s", hintsUnobeyed[field])
		}
	}
}

// checkBranchSettings checks the settings of a flow in a branch. A failure in the branch is treated
// like every failure in the surrounding scope.
func (c *dagChecker) checkBranchSettings(d *definition.Definition, s *dagScope, at *definition.Place) {
	c.checkProfile(d, at)
	c.checkSettings(d, s, at)
	failFast, known := failFastOf(d, s.by.profile)
	if d.OnError == "" && d.Profile == "" || !known || failFast == s.by.g.Dag.FailFast {
		return
	}
	field := "on_error"
	if d.OnError == "" {
		field = "profile"
	}
	around := definition.OnErrorContinue
	if s.by.g.Dag.FailFast {
		around = definition.OnErrorFailFast
	}
	report := c.Errorf
	if d.Embedded != "" || field == "profile" {
		report = c.Warnf
	}
	report(at.Key(field), "does not decide about failures here: a branch has the on_error of the flow around it, which is %s: "+
		"change it there, or start tasks of this flow", around)
}

// checkDefaults checks the defaults of a flow, once and at the place of the defaults.
func (c *dagChecker) checkDefaults(def definition.Defaults, at *definition.Place) {
	c.checkRetry(def.Retry, c.scopeLowerer.profile, at.Key("retry"))
	c.checkTimeout(def.Timeout, c.scopeLowerer.profile, at.Key("timeout"))
	c.checkExecType(def.ExecType, false, at)
	c.checkRoute(def.Route, at)
	c.checkSkipWord(def.SkipMode, at.Key("skip_mode"))
}

func (c *dagChecker) checkShape(word string, at *definition.Place) {
	if _, known := shapeOf(word, ""); !known {
		c.Errorf(at.Key("input_shape"), "unknown word %.80q: write run_deps, deps, merged or mapped", word)
	}
}

func (c *dagChecker) checkSkipWord(word string, at *definition.Place) {
	if _, known := skipWord(word); !known {
		c.Errorf(at, "unknown word %.80q: write propagate, optional or fail", word)
	}
}

// checkDeclared checks the nodes of a definition and their places in the plan.
func (c *dagChecker) checkDeclared(d *definition.Definition, s *dagScope, at *definition.Place) {
	if s.prefix != "" {
		c.checkFlowFields(d, true, false, at)
	}
	nodes := at.Key("nodes")
	for key, n := range d.Nodes {
		if isFolded(n) {
			c.checkUnfolded(n, nodes.Key(key))
		}
	}
	c.checkSpecials(s.nodes, c.scopeLowerer.finallyOf(d, s), c.scopeLowerer.closingPrefix+s.prefix, c.closingNode, at)
	outputs := 0
	for _, src := range s.order {
		at := nodes.Key(src.key)
		kind := c.checkDagKind(src.source, at)
		c.checkSlug(src.key, kind, at)
		c.checkFields(src.source, kind, at)
		c.checkNodeFields(dagSpot(orEmpty(d.Nodes[src.key]), src, kind), false, at)
		if kind == flow.KindOutput {
			if outputs++; outputs > 1 {
				c.Errorf(at, "a scope has one output at most: %s is another one", src.node.Key)
			}
		}
		c.checkDeclaredNode(s, src, kind, at)
	}
}

func (c *dagChecker) checkDeclaredNode(_ *dagScope, src *dagSource, kind flow.Kind, at *definition.Place) {
	f := src.source.Flow
	if kind == flow.KindBranch && f != nil && f.Definition != nil && src.source.Prep.Empty() {
		switch {
		case f.Embedded != "":
			c.Errorf(at.Key("prep"), "is missing: an embedded flow gets its input from it")
		case !f.Inputs.IsZero():
			c.Errorf(at.Key("prep"), "is missing: the flow inside declares inputs, and gets them from it")
		}
	}
	for _, g := range src.guards {
		c.checkPlaced(g, at)
	}
	if src.inner != nil {
		in := c.checkerOf(src.inner)
		in.checkBranchSettings(f.Definition, src.inner, at.Key("flow"))
		in.checkDeclared(f.Definition, src.inner, at.Key("flow"))
	}
	c.checkPlaced(src.node, at)
}

// checkPlaced checks the slug of a node.
func (c *dagChecker) checkPlaced(n *flow.PlanNode, at *definition.Place) {
	if len(n.Key) > 2*definition.MaxKey {
		c.Errorf(at, "the slug %.40q… is longer than %d bytes: nest less deeply or choose shorter names", n.Key, 2*definition.MaxKey)
	}
	if c.keys[n.Key] {
		c.Errorf(at, "there is a node %.80q already", n.Key)
	}
	c.keys[n.Key] = true
}

var slugPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkSlug checks the key of a node, because keys are part of slugs and inputs.
func (c *dagChecker) checkSlug(key string, kind flow.Kind, at *definition.Place) {
	switch {
	case strings.ContainsAny(key, "/:"):
		c.Errorf(at, "the key %.80q holds / or :, which only slugs made by the compiler may have", key)
	case !slugPattern.MatchString(key):
		c.Errorf(at, "the key %.80q is no slug: it begins with a letter or _ and has up to 128 letters, digits and _", key)
	case key == "run":
		c.Errorf(at, "the key run is reserved for the run's input")
	case key == outputSlug && kind != flow.KindOutput:
		c.Errorf(at, "the key output is reserved: write kind: output")
	}
}

// checkDagKind checks a node's kind.
func (c *dagChecker) checkDagKind(n *definition.Node, at *definition.Place) flow.Kind {
	kind, known := dagKind(n)
	switch {
	case known:
	case flow.Kind(n.Kind) == flow.KindChoice:
		c.Errorf(at.Key("kind"), "a dag has no choice: give the nodes a when")
	default:
		c.Errorf(at.Key("kind"), "unknown kind %.80q: write executor, fanout, branch, output, timer, wait_event or approval", n.Kind)
	}
	return kind
}

// cycleOf returns a cycle of dependencies, or nil if there is none.
func cycleOf(list []*flow.PlanNode) []string {
	waits, ready := make([]int, len(list)), []int{}
	for i, n := range list {
		if waits[i] = len(n.Dag.Deps); waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		n := list[ready[len(ready)-1]]
		ready = ready[:len(ready)-1]
		for _, d := range n.Dag.Dependents {
			if waits[d]--; waits[d] == 0 {
				ready = append(ready, d)
			}
		}
	}
	at := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	if at < 0 {
		return nil
	}
	// A node that still waits has a dependency that still waits. Following these dependencies leads
	// to a cycle.
	var path []string
	seen := map[int]int{}
	for {
		if from, again := seen[at]; again {
			path = append(path[from:], list[at].Key)
			slices.Reverse(path)
			return path
		}
		seen[at] = len(path)
		path = append(path, list[at].Key)
		for _, dep := range list[at].Dag.Deps {
			if waits[dep] > 0 {
				at = dep
				break
			}
		}
	}
}
