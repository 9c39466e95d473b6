package flow

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// dagCompiler compiles one scope of dag mode. Branches are laid out flat: their nodes become nodes of
// the scope around them, under slugs such as `review/gate:legal`, so that one set of counters serves all.
type dagCompiler struct {
	*compiler
	g       *Graph
	profile Profile
	set     settings
	depth   int
	under   string // what the keys of its nodes begin with in the closing scope
}

// dagScope is what nodes of one definition within the scope have in common.
type dagScope struct {
	prefix string
	entry  []int  // that roots wait for: the last of a branch's gate, cond and prep
	run    int    // whose output is `run`
	sees   []Seen // what roots see of the world around the branch

	names   map[string]int // of the nodes other nodes may name: where their value is
	order   []*dagSource
	output  int // -1 = none
	leaves  []Seen
	special map[string]bool // nodes that compensate, or run finally
}

// dagSource is a node of a definition and what was made of it.
type dagSource struct {
	key    string
	n      *Node
	at     *place
	ghosts []*PlanNode // in the order in which they run
	node   *PlanNode   // itself, or the join of a branch
	inner  *dagScope   // of a branch
}

// dag compiles a scope of dag mode.
func (c *compiler) dag(d *Definition, profile Profile, depth int, under string, at *place) *Graph {
	dc := &dagCompiler{compiler: c, profile: profile, depth: depth, under: under, set: c.settings(d, profile, at)}
	dc.g = &Graph{Nodes: map[string]*PlanNode{}, Dag: &Dag{Output: -1, FailFast: c.failFast(d, profile, at)}}
	if profile == ProfileOrk && len(d.Nodes) == 0 {
		c.errorf(at.key("nodes"), "there are none: an Ork workflow has one at least")
	}
	s := dc.declare(d, &dagScope{run: -1}, at)
	dc.connect(s)
	dc.wire(at)
	dc.g.Dag.Output, dc.g.Dag.Leaves = s.output, s.leaves
	return dc.g
}

// Words of on_error in dag mode.
const (
	onErrorContinue = "continue"
	onErrorFailFast = "fail_fast"
)

func (c *compiler) failFast(d *Definition, profile Profile, at *place) bool {
	switch d.OnError {
	case "":
		return profile == ProfilePgflow
	case onErrorFailFast, onErrorFail:
		return true
	case onErrorContinue:
		return false
	}
	c.errorf(at.key("on_error"), "unknown word %.80q: write continue or fail_fast", d.OnError)
	return false
}

// declare gives every node of a definition, and what is made for it, a place in the list.
func (c *dagCompiler) declare(d *Definition, s *dagScope, at *place) *dagScope {
	s.names, s.output = map[string]int{}, -1
	c.onlyDag(d, s, at)
	nodes := at.key("nodes")
	written := c.unfolded(d.Nodes, nodes)
	s.special = c.specials(written, c.finallyOf(d, s), c.under+s.prefix, c.closingNode, at)
	for _, key := range inOrder(written) {
		n := written[key]
		if n == nil {
			n = &Node{}
		}
		if s.special[key] {
			continue
		}
		src := &dagSource{key: key, n: n, at: nodes.key(key)}
		s.order = append(s.order, src)
		c.declareNode(s, src)
	}
	return s
}

// onlyDag refuses what belongs to graph mode, or to the whole flow.
func (c *dagCompiler) onlyDag(d *Definition, s *dagScope, at *place) {
	if d.Start != "" {
		c.errorf(at.key("start"), "a dag has none: leave it out, or set mode: graph")
	}
	if len(d.Edges) > 0 {
		c.errorf(at.key("edges"), "a dag has none: write depends_on, or set mode: graph")
	}
	if d.Finally != "" && s.prefix != "" {
		c.errorf(at.key("finally"), "only the whole flow has one")
	}
}

// finallyOf is the finally of the whole flow; an inner one has none.
func (c *dagCompiler) finallyOf(d *Definition, s *dagScope) string {
	if s.prefix == "" && c.depth == 0 {
		return d.Finally
	}
	return ""
}

// inOrder are the keys of nodes as they were written.
func inOrder(nodes map[string]*Node) []string {
	return slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		orderOf := func(n *Node) int {
			if n == nil {
				return 0
			}
			return n.order
		}
		return cmp.Or(cmp.Compare(orderOf(nodes[a]), orderOf(nodes[b])), cmp.Compare(a, b))
	})
}

func (c *dagCompiler) declareNode(s *dagScope, src *dagSource) {
	kind := c.dagKind(src)
	c.slug(src, kind)
	c.fields(src, kind)
	if kind == KindOutput {
		c.declareOutput(s, src)
		return
	}
	branch := kind == KindBranch
	inner := c.innerDag(src, branch)
	if branch {
		c.ghost(s, src, KindGate)
	}
	if src.n.When != nil && src.n.When.Cond != nil {
		c.ghost(s, src, KindCond)
	}
	switch {
	case branch && !src.n.Prep.empty():
		c.ghost(s, src, KindPrep)
	case kind == KindFanout && src.n.Each != nil && src.n.Each.Items.Handler.given():
		c.ghost(s, src, KindPrep)
	}
	switch {
	case inner != nil:
		src.inner = c.declare(inner, &dagScope{prefix: s.prefix + src.key + "/"}, src.at.key("flow"))
		src.node = c.add(s.prefix+src.key, KindJoin, src.at)
	case branch:
		src.node = c.add(s.prefix+src.key, KindSubflow, src.at)
	default:
		src.node = c.add(s.prefix+src.key, kind, src.at)
	}
	s.names[src.key] = src.node.Dag.Index
	for _, g := range src.ghosts {
		g.Dag.For = src.node.Dag.Index
	}
}

func (p Prep) empty() bool {
	return !p.given() && p.Expr == "" && p.InputMap == nil && p.InputKey == ""
}

// innerDag is the flow of a branch if it is of dag mode, so that it is laid out in this scope.
func (c *dagCompiler) innerDag(src *dagSource, branch bool) *Definition {
	f := src.n.Flow
	if !branch || f == nil {
		return nil
	}
	if f.Definition != nil && f.Embedded != "" && src.n.Prep.empty() {
		c.errorf(src.at.key("prep"), "is missing: an embedded flow gets its input from it")
	}
	if f.Definition == nil || modeOf(f.Definition) != modeDag {
		return nil
	}
	return f.Definition
}

// outputSlug is where a scope's output node is found, whatever it was called.
const outputSlug = "output"

func (c *dagCompiler) declareOutput(s *dagScope, src *dagSource) {
	if s.output >= 0 {
		c.errorf(src.at, "a scope has one output at most: %s is another one", c.g.Dag.List[s.output].Key)
	}
	if len(src.n.DependsOn) > 0 {
		c.errorf(src.at.key("depends_on"), "an output waits for all leaves: leave it out")
	}
	src.node = c.add(s.prefix+outputSlug, KindOutput, src.at)
	s.output = src.node.Dag.Index
}

// ghost adds a node that is made for another one.
func (c *dagCompiler) ghost(s *dagScope, src *dagSource, kind Kind) {
	g := c.add(s.prefix+string(kind)+":"+src.key, kind, src.at)
	src.ghosts = append(src.ghosts, g)
}

func (c *dagCompiler) add(key string, kind Kind, at *place) *PlanNode {
	if len(key) > 2*maxKey {
		c.errorf(at, "the slug %.40q… is longer than %d bytes: nest less deeply or choose shorter names", key, 2*maxKey)
	}
	n := &PlanNode{Key: key, Kind: kind, Dag: &PlanDag{Index: len(c.g.Dag.List), For: -1, Run: -1, Entry: -1}}
	c.g.Dag.List = append(c.g.Dag.List, n)
	if c.g.Nodes[key] != nil {
		c.errorf(at, "there is a node %.80q already", key)
	}
	c.g.Nodes[key] = n
	return n
}

var slugPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// slug checks the key of a node. Keys are part of slugs and of inputs.
func (c *dagCompiler) slug(src *dagSource, kind Kind) {
	switch {
	case strings.ContainsAny(src.key, "/:"):
		c.errorf(src.at, "the key %.80q holds / or :, which only slugs made by the compiler may have", src.key)
	case !slugPattern.MatchString(src.key):
		c.errorf(src.at, "the key %.80q is no slug: it begins with a letter or _ and has up to 128 letters, digits and _", src.key)
	case src.key == "run":
		c.errorf(src.at, "the key run is reserved for the run's input")
	case src.key == outputSlug && kind != KindOutput:
		c.errorf(src.at, "the key output is reserved: write kind: output")
	}
}

// dagKind reads a node's kind; each makes a fanout of a plain node.
func (c *dagCompiler) dagKind(src *dagSource) Kind {
	n := src.n
	switch k := Kind(n.Kind); k {
	case "", KindExecutor, "remote", "single":
		if n.Each != nil {
			return KindFanout
		}
		return KindExecutor
	case KindFanout, "map", KindForeach, KindParallel:
		return KindFanout
	case KindBranch, KindOutput, KindTimer, KindWaitEvent, KindApproval:
		return k
	case KindSubflow:
		return KindBranch
	case KindChoice:
		c.errorf(src.at.key("kind"), "a dag has no choice: give the nodes a when")
		return KindExecutor
	}
	c.errorf(src.at.key("kind"), "unknown kind %.80q: write executor, fanout, branch, output, timer, wait_event or approval", n.Kind)
	return KindExecutor
}

// wire makes the counters' side of the dependencies and looks for cycles.
func (c *dagCompiler) wire(at *place) {
	list := c.g.Dag.List
	for _, n := range list {
		slices.Sort(n.Dag.Deps)
		n.Dag.Deps = slices.Compact(n.Dag.Deps)
		for _, dep := range n.Dag.Deps {
			list[dep].Dag.Dependents = append(list[dep].Dag.Dependents, n.Dag.Index)
		}
	}
	if cycle := cycleOf(list); cycle != nil {
		c.errorf(at.key("nodes"), "nodes wait for each other in a circle: %s", strings.Join(cycle, " → "))
	}
}

// cycleOf finds a circle of dependencies, nil if there is none.
func cycleOf(list []*PlanNode) []string {
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
	// Whoever still waits has a dependency that still waits: following those leads into a circle.
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

// jsonObject checks a pattern or static input.
func (c *dagCompiler) jsonObject(raw []byte, at *place) []byte {
	if len(raw) == 0 {
		return nil
	}
	if kind := expr.KindOf(raw); kind != expr.KindObject {
		c.errorf(at, "must be an object, is %s", kindName(kind))
		return nil
	}
	return expr.Compact(raw)
}
