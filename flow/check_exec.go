package flow

import (
	"maps"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// reservedKey is the key of shared under which readers find the engine's own state.
const reservedKey = "_rt"

// Words of on_error. With follow, a failed node takes the edges it takes after success.
const (
	onErrorFollow = "follow"
	onErrorFail   = "fail"
)

// maxKey is how many bytes the key of a node may have.
const maxKey = 256

// kind checks a node's kind in graph mode.
func (c *checker) kind(n *Node, at *place) {
	switch kind, known := graphKind(n); {
	case !known:
		c.errorf(at.key("kind"), "unknown kind %.80q: write executor, choice, parallel, subflow, timer, foreach, wait_event or approval", n.Kind)
	case kind == KindSubflow && n.Subflow == nil && n.Flow == nil:
		c.errorf(at.key("subflow"), "is missing")
	}
}

func (c *checker) nodeKey(key string, at *place) {
	switch {
	case key == "":
		c.errorf(at, "the key of a node must not be empty")
	case len(key) > maxKey:
		c.errorf(at, "the key of a node must not be longer than %d bytes", maxKey)
	case !utf8.ValidString(key) || slices.ContainsFunc([]rune(key), unicode.IsControl):
		c.errorf(at, "the key of a node must not hold control characters: %.80q", key)
	}
}

// name is what others are called by: it goes into rows and messages whole.
func (c *checker) name(text string, at *place) {
	switch {
	case !IsText(text):
		c.errorf(at, NoText)
	case len(text) > maxName:
		c.errorf(at, "has %d bytes, more than the limit of %d", len(text), maxName)
	}
}

func (c *checker) onError(word string, at *place) {
	switch word {
	case "", onErrorFollow, onErrorFail:
	default:
		c.errorf(at.key("on_error"), "unknown word %.80q: write follow or fail", word)
	}
}

func (c *checker) post(p Post, at *place) {
	c.target(p.OutputKey, at.key("output_key"))
	for _, key := range slices.Sorted(maps.Keys(p.OutputMap)) {
		c.target(key, at.key("output_map").key(key))
	}
}

// target refuses to write where readers expect the engine's own state.
func (c *checker) target(key string, at *place) {
	if key == reservedKey {
		c.errorf(at, "the key %s is reserved", reservedKey)
	}
}

// exec checks how a node says its jobs are carried out.
func (c *checker) exec(n *Node, at *place) {
	c.script(n.Script, at.key("script"))
	c.count(max(n.MaxAttempts, 0), at.key("max_attempts"))
	c.milliseconds(n.AttemptDelayMS, at.key("attempt_delay_ms"))
	c.milliseconds(n.VisibilityMS, at.key("visibility_ms"))
	if len(n.Labels) > maxLabels {
		c.errorf(at.key("labels"), "has %d labels, more than the limit of %d", len(n.Labels), maxLabels)
	}
	for i, label := range n.Labels {
		c.name(label, at.key("labels").index(i))
	}
	c.name(n.Func, at.key("func"))
	c.execType(word(n.ExecType, n.ExecMode), at)
}

// routed checks route in graph mode.
func (c *checker) routed(n *Node, at *place) {
	switch n.Route {
	case "", routePush, routeQueue:
	case routeDirect:
		c.errorf(at.key("route"), "a node of graph mode that is finished from outside is an approval or a wait_event")
	default:
		c.errorf(at.key("route"), "unknown word %.80q: write push or queue", n.Route)
	}
}

// overlay checks what a spec says over what its node says.
func (c *checker) overlay(s *ExecSpec, at *place) {
	c.execType(word(s.ExecType, s.ExecMode), at)
	c.script(s.Script, at.key("script"))
	c.params(s.Params, at.key("params"))
}

func (c *checker) execType(t ExecType, at *place) {
	if !t.known() {
		c.errorf(at.key("exec_type"), "unsupported exec %.80q: write http, queue, local_func or local_script", t)
	}
}

func (c *checker) script(s *Script, at *place) {
	if s = s.orNone(); s != nil {
		c.milliseconds(s.TimeoutMS, at.key("timeout_ms"))
	}
}

// settled checks how jobs travel. What they need has to be there if they are certain to be made from this.
func (c *checker) settled(e *Exec, at *place, certain bool) {
	c.name(e.Service, at.key("service"))
	switch {
	case !certain:
	case e.Type == ExecFunc && e.Func == "":
		c.errorf(at.key("func"), "is missing: say which local function to call")
	case e.Type == ExecScript && e.Script == nil:
		c.errorf(at.key("script"), "is missing: give it a cmd or code")
	case e.Type == ExecQueue && e.Service == "":
		c.errorf(at.key("service"), "is missing: say whose queue the job waits in")
	case e.Type == ExecHTTP && e.Service == "":
		c.warnf(at.key("service"), "is missing: no worker can be found for this")
	}
}

func (c *checker) branches(n *Node, p *PlanNode, at *place) {
	from := at.key("parallel_execs")
	for i := range n.ParallelExecs {
		c.overlay(&n.ParallelExecs[i], from.index(i))
	}
	if len(n.ParallelExecs) == 0 {
		from = at.key("parallel_services")
	}
	for i := range p.Each.Branches {
		c.settled(&p.Each.Branches[i].Exec, from.index(i), true)
	}
	if len(p.Each.Branches) > c.limits.Units {
		c.errorf(at, "%d branches, more than the %d units a step may have", len(p.Each.Branches), c.limits.Units)
	}
}

func (c *checker) items(n *Node, p *PlanNode, at *place) {
	seen := map[int]bool{}
	for i := range n.ForeachExecs {
		s, at := &n.ForeachExecs[i], at.key("foreach_execs").index(i)
		if s.Index < 0 {
			c.errorf(at.key("index"), "must not be negative")
			continue
		}
		c.overlay(s, at)
		if seen[s.Index] {
			c.warnf(at, "the item %d has an entry already: this one is ignored", s.Index)
			continue
		}
		seen[s.Index] = true
		e := p.Each.Items[s.Index]
		c.settled(&e, at, true)
	}
}

// childSpecs checks subflow_execs.
func (c *checker) childSpecs(s *scopeSource, at *place) {
	used := childSpecs(s)
	for i := range s.specs {
		spec, at := &s.specs[i], at.index(i)
		switch _, known := s.nodes[spec.Node]; {
		case !known:
			c.warnf(at.key("node"), "the subflow has no node %.80q: this entry is ignored", spec.Node)
		case used[spec.Node] != spec:
			c.warnf(at, "the node %.80q has an entry already: this one is ignored", spec.Node)
		default:
			c.overlay(spec, at)
		}
	}
}

func (c *checker) graphRetry(n *Node, p *PlanNode, at *place) {
	c.count(n.MaxRetries, at.key("max_retries"))
	c.milliseconds(n.WaitMS, at.key("wait_ms"))
	if p.Kind == KindExecutor {
		c.retry(n.Retry, ProfileNone, at.key("retry"))
	}
}

// window checks how many units are in flight at once.
func (c *checker) window(n *Node, at *place) {
	c.count(n.MaxParallel, at.key("max_parallel"))
	switch n.ParallelMode {
	case "", "sequential", "concurrent":
	default:
		c.warnf(at.key("parallel_mode"), "unknown word %.80q: units run one after the other; write concurrent or sequential", n.ParallelMode)
	}
}

// count checks a number of tries or units.
func (c *checker) count(n int, at *place) {
	switch {
	case n < 0:
		c.errorf(at, "must not be negative")
	case n > math.MaxInt32/2: // attempts are counted in 32 bits
		c.errorf(at, "is too large: %d", n)
	}
}

// milliseconds checks a duration.
func (c *checker) milliseconds(ms int64, at *place) {
	switch {
	case ms < 0:
		c.errorf(at, "must not be negative")
	case ms > maxDelay:
		c.errorf(at, "is too large: %d ms", ms)
	}
}

// waitKey warns of what is probably a mistake; a task may still bring another key in its params.
func (c *checker) waitKey(name string, params []byte, at *place) {
	at = at.key("params").key(name)
	raw, found := expr.Field(params, name)
	text, isText := expr.String(raw)
	switch {
	case !found:
		c.warnf(at, "is missing: every task has to bring it")
	case !isText:
		c.errorf(at, "must be a string, is %s", expr.KindOf(raw))
	case expr.ParseRef(text).Literal():
		c.warnf(at, "%.80q is read as $shared.%.80s", text, text)
	}
}

// numberParam warns of a number that would count as 0.
func (c *checker) numberParam(name string, params []byte, at *place) {
	raw, found := expr.Field(params, name)
	if kind := expr.KindOf(raw); found && kind != expr.KindNumber {
		c.warnf(at.key("params").key(name), "must be a number, is %s: it counts as 0", kind)
	}
}
