package compile

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// reservedKey is the key of shared where readers find the engine's own state.
const reservedKey = "_rt"

// checkGraphKind checks a node's kind in graph mode.
func (c fieldChecker) checkGraphKind(n *definition.Node, at *definition.Place) {
	switch kind, known := graphKind(n); {
	case !known:
		c.Errorf(at.Key("kind"), "unknown kind %.80q: write executor, choice, parallel, "+
			"subflow, timer, foreach, wait_event or approval", n.Kind)
	case kind == flow.KindSubflow && n.Subflow == nil && n.Flow == nil:
		c.Errorf(at.Key("subflow"), "is missing")
	}
}

func (c fieldChecker) checkNodeKey(key string, at *definition.Place) {
	switch {
	case key == "":
		c.Errorf(at, "the key of a node must not be empty")
	case len(key) > definition.MaxKey:
		c.Errorf(at, "the key of a node must not be longer than %d bytes", definition.MaxKey)
	case !utf8.ValidString(key) || slices.ContainsFunc([]rune(key), unicode.IsControl):
		c.Errorf(at, "the key of a node must not hold control characters: %.80q", key)
	case !flow.IsName(key):
		c.Errorf(at, "the key of a node %.80q %s", key, flow.NoName)
	}
}

// checkName checks a name, which is stored in rows and shown in messages in full.
func (c fieldChecker) checkName(text string, at *definition.Place) {
	switch {
	case !flow.IsText(text):
		c.Errorf(at, flow.NoText)
	case !flow.IsName(text):
		c.Errorf(at, flow.NoName)
	case len(text) > flow.MaxName:
		c.Errorf(at, "has %d bytes, more than the limit of %d", len(text), flow.MaxName)
	}
}

func (c fieldChecker) onError(word string, at *definition.Place) {
	switch word {
	case "", definition.OnErrorFollow, definition.OnErrorFail:
	default:
		c.Errorf(at.Key("on_error"), "unknown word %.80q: write follow or fail", word)
	}
}

func (c fieldChecker) onMissing(word string, at *definition.Place) {
	switch word {
	case "", definition.OnMissingFail, definition.OnMissingCoerce:
	default:
		c.Errorf(at.Key("on_missing"), "unknown word %.80q: write fail or coerce", word)
	}
}

func (c fieldChecker) checkPost(p flow.Post, at *definition.Place) {
	c.checkTarget(p.OutputKey, at.Key("output_key"))
	for _, key := range slices.Sorted(maps.Keys(p.OutputMap)) {
		c.checkTarget(key, at.Key("output_map").Key(key))
	}
}

// checkTarget rejects writing to the key of the engine's own state.
func (c fieldChecker) checkTarget(key string, at *definition.Place) {
	if key == reservedKey {
		c.Errorf(at, "the key %s is reserved", reservedKey)
	}
}

// checkExec checks how the jobs of a node are carried out.
func (c *checker) checkExec(n *definition.Node, pocketflow bool, at *definition.Place) {
	c.checkScript(n.Script, at.Key("script"))
	c.checkProgram(n, at)
	c.checkMilliseconds(n.AttemptDelayMS, at.Key("attempt_delay_ms"))
	c.checkCount(n.WorkersPerAttempt, at.Key("workers_per_attempt"))
	c.checkDuration(n.WorkerDelay, at.Key("worker_delay"))
	c.checkMilliseconds(n.VisibilityMS, at.Key("visibility_ms"))
	if len(n.Labels) > flow.MaxLabels {
		c.Errorf(at.Key("labels"), "has %d labels, more than the limit of %d", len(n.Labels), flow.MaxLabels)
	}
	for i, label := range n.Labels {
		c.checkName(label, at.Key("labels").Index(i))
	}
	c.checkName(n.Func, at.Key("func"))
	c.checkExecType(cmp.Or(n.ExecType, n.ExecMode), pocketflow, at)
}

// checkGraphRoute checks route in graph mode.
func (c fieldChecker) checkGraphRoute(n *definition.Node, pocketflow bool, at *definition.Place) {
	said := execTypeOf(n.ExecType, n.ExecMode)
	if means := routes[n.Route]; !pocketflow && said != "" && means != "" && said != means {
		c.Errorf(at.Key("route"), "says otherwise than exec_type: give one of them")
	}
	switch n.Route {
	case "", flow.RoutePush, flow.RouteQueue:
	case flow.RouteDirect:
		c.Errorf(at.Key("route"), "a node of graph mode that is finished from outside is an approval or a wait_event")
	default:
		c.Errorf(at.Key("route"), "unknown word %.80q: write push or queue", n.Route)
	}
}

// checkOverlay checks an entry of a list of overrides and whether its fields apply.
func (c *checker) checkOverlay(s *definition.ExecSpec, list string, of spot, pocketflow bool, at *definition.Place) {
	c.checkOverride(s, list, of, pocketflow, at)
	c.checkExecType(cmp.Or(s.ExecType, s.ExecMode), pocketflow, at)
	c.checkScript(s.Script, at.Key("script"))
	c.checkParams(s.Params, at.Key("params"))
}

// checkExecType reports an unknown exec_type, or one of another profile.
func (c fieldChecker) checkExecType(word string, pocketflow bool, at *definition.Place) {
	switch {
	case word == pocketflowPush && !pocketflow:
		c.Errorf(at.Key("exec_type"), "http is a word of the profile pocketflow: write push")
	case word != pocketflowPush && !knownExec(flow.ExecType(word)):
		c.Errorf(at.Key("exec_type"), "unsupported exec %.80q: write push, remote, queue, local_func, local_script or external", word)
	}
}

func (c *checker) checkScript(s *flow.Script, at *definition.Place) {
	if s = orNone(s); s == nil {
		return
	}
	c.checkMilliseconds(s.TimeoutMS, at.Key("timeout_ms"))
	if s.StderrMode != "" && s.StderrMode != flow.StderrLog {
		c.Errorf(at.Key("stderr_mode"), "unknown word %.80q: write log, or leave it out", s.StderrMode)
	}
	pocketflow := c.lowered.pocketflow
	if s.Language != "" && s.Code == "" {
		c.reportByProfile(pocketflow, at.Key("language"), "has no effect without code: write code, or leave it out")
	}
	for name, word := range map[string]string{"stdin_mode": s.StdinMode, "output_mode": s.OutputMode} {
		if word != "" && word != "json" {
			c.reportByProfile(pocketflow, at.Key(name), "unknown word %.80q: write json, or leave it out", word)
		}
	}
}

// checkExecComplete checks how jobs are delivered. If certain is set, jobs are surely created with
// these settings, so required fields must be present. A job without a service fails only when it is
// created, so the pocketflow profile gets a warning.
func (c *checker) checkExecComplete(e *flow.Exec, at *definition.Place, certain, pocketflow bool) {
	c.checkName(e.Service, at.Key("service"))
	c.checkLocalFunc(e, at.Key("func"))
	field, advice := missingOfExec(e)
	switch {
	case field == "" || !certain:
	case pocketflow && (e.Type == flow.ExecPush || e.Type == flow.ExecRemote):
		c.Warnf(at.Key(field), "is missing: no worker can be found for this")
	default:
		c.Errorf(at.Key(field), "is missing: %s", advice)
	}
}

// missingOfExec returns the field without which jobs of an exec have no destination, with advice.
// It returns "" if nothing is missing.
func missingOfExec(e *flow.Exec) (field, advice string) {
	switch {
	case e.Type == flow.ExecFunc && e.Func == "":
		return "func", "say which local function to call"
	case e.Type == flow.ExecScript && e.Script == nil:
		return "script", "give it a cmd or code"
	case e.Service != "":
	case e.Type == flow.ExecQueue:
		return "service", "say whose queue the job waits in"
	case e.Type == flow.ExecExternal:
		return "service", "say which system the job is begun in"
	case e.Type == flow.ExecPush || e.Type == flow.ExecRemote:
		return "service", "say which service of the workers does this"
	}
	return "", ""
}

// checkLocalFunc warns of a local function that the member does not have. This is a warning,
// because a program may register the function after publishing the flow.
func (c *checker) checkLocalFunc(e *flow.Exec, at *definition.Place) {
	if e.Type != flow.ExecFunc || e.Func == "" || c.site.Func == nil {
		return
	}
	if err := c.site.Func(e.Func); err != nil {
		c.Warnf(at, "%s", err)
	}
}

func (c *checker) checkBranches(n *definition.Node, p *flow.PlanNode, pocketflow bool, at *definition.Place) {
	from := at.Key(definition.ParallelExecs)
	for i := range n.ParallelExecs {
		o := &n.ParallelExecs[i]
		c.checkOverlay(o, definition.ParallelExecs, jobSpot(o, p.Each.Branches[i].Exec), pocketflow, from.Index(i))
	}
	if len(n.ParallelExecs) == 0 {
		from = at.Key("parallel_services")
	}
	for i := range p.Each.Branches {
		c.checkExecComplete(&p.Each.Branches[i].Exec, from.Index(i), true, pocketflow)
	}
	if len(p.Each.Branches) > c.limits.Units {
		c.Errorf(at, "%d branches, more than the %d units a step may have", len(p.Each.Branches), c.limits.Units)
	}
}

func (c *checker) checkItems(n *definition.Node, p *flow.PlanNode, pocketflow bool, at *definition.Place) {
	c.checkExecComplete(&p.Exec, at, len(n.ForeachExecs) == 0, pocketflow)
	if field, advice := missingOfExec(&p.Exec); field != "" && len(n.ForeachExecs) > 0 {
		c.Warnf(at.Key(field), "is missing: only the items in foreach_execs can be carried out; %s", advice)
	}
	seen := map[int]bool{}
	for i := range n.ForeachExecs {
		s, at := &n.ForeachExecs[i], at.Key(definition.ForeachExecs).Index(i)
		if s.Index < 0 {
			c.Errorf(at.Key("index"), "must not be negative")
			continue
		}
		if seen[s.Index] {
			c.reportByProfile(pocketflow, at, "the item %d has an entry already: this one is ignored", s.Index)
			continue
		}
		seen[s.Index] = true
		e := p.Each.Items[s.Index]
		c.checkOverlay(s, definition.ForeachExecs, jobSpot(s, e), pocketflow, at)
		c.checkExecComplete(&e, at, true, pocketflow)
	}
}

// childSpecs checks subflow_execs.
func (c *checker) childSpecs(s *scopeSource, g *flow.PlanScope, at *definition.Place) {
	used := childSpecs(s)
	for i := range s.specs {
		spec, at := &s.specs[i], at.Index(i)
		switch _, known := s.nodes[spec.Node]; {
		case !known:
			c.reportByProfile(s.pocketflow, at.Key("node"),
				"the subflow has no node %.80q: this entry is ignored", spec.Node)
		case used[spec.Node] != spec:
			c.reportByProfile(s.pocketflow, at, "the node %.80q has an entry already: this one is ignored", spec.Node)
		case g.Nodes[spec.Node] != nil:
			child := childSpot(spec, orEmpty(s.nodes[spec.Node]), g.Nodes[spec.Node])
			c.checkOverlay(spec, definition.SubflowExecs, child, s.pocketflow, at)
		default:
			c.reportByProfile(s.pocketflow, at.Key("node"),
				"the node %.80q only runs when the task is over: this entry is ignored", spec.Node)
		}
	}
}

// checkInnerTries checks the tries within one attempt. With the pocketflow profile a negative
// number counts as none.
func (c fieldChecker) checkInnerTries(n *definition.Node, pocketflow bool, at *definition.Place) {
	if n.MaxAttempts >= 0 || !pocketflow {
		c.checkCount(n.MaxAttempts, at.Key("max_attempts"))
	}
	if pocketflow && n.WorkersPerAttempt > 0 && n.MaxAttempts > 0 {
		c.Errorf(at.Key("workers_per_attempt"), "says the same as max_attempts: give one of them")
	}
	if pocketflow && !n.WorkerDelay.IsZero() && n.AttemptDelayMS > 0 {
		c.Errorf(at.Key("worker_delay"), "says the same as attempt_delay_ms: give one of them")
	}
}

func (c *checker) graphRetry(n *definition.Node, pocketflow bool, at *definition.Place) {
	if pocketflow && n.Retry != nil && (n.MaxRetries > 0 || n.WaitMS > 0) {
		c.Errorf(at.Key("retry"), "says the same as max_retries and wait_ms: give one of them")
	}
	c.checkCount(n.MaxRetries, at.Key("max_retries"))
	c.checkMilliseconds(n.WaitMS, at.Key("wait_ms"))
	c.checkRetry(n.Retry, flow.ProfileNone, at.Key("retry"))
	c.checkTimeoutNotations(n, at)
}

// checkTimeoutNotations reports a timeout that is written in two notations. Only one can apply.
func (c fieldChecker) checkTimeoutNotations(n *definition.Node, at *definition.Place) {
	if !n.Timeout.IsZero() && n.TimeoutMS > 0 {
		c.Errorf(at.Key("timeout"), "says the same as timeout_ms: give one of them")
	}
}

// checkWindow checks the limit of units in flight.
func (c fieldChecker) checkWindow(n *definition.Node, at *definition.Place) {
	c.checkCount(n.MaxParallel, at.Key("max_parallel"))
	switch n.ParallelMode {
	case "", "sequential", "concurrent":
	default:
		c.Warnf(at.Key("parallel_mode"), "unknown word %.80q: units run one after the other; "+
			"write concurrent or sequential", n.ParallelMode)
	}
}

// checkCount checks a number of tries or units.
func (c fieldChecker) checkCount(n int, at *definition.Place) {
	switch {
	case n < 0:
		c.Errorf(at, "must not be negative")
	case n > math.MaxInt32/2: // attempts are counted in 32 bits
		c.Errorf(at, "is too large: %d", n)
	}
}

// checkMilliseconds checks a duration.
func (c fieldChecker) checkMilliseconds(ms int64, at *definition.Place) {
	switch {
	case ms < 0:
		c.Errorf(at, "must not be negative")
	case ms > flow.MaxDelay:
		c.Errorf(at, "is too large: %d ms", ms)
	}
}

// numberParam reports a param that is not a number of milliseconds. With the pocketflow profile
// this is a warning, because the param counts as 0 there.
func (c fieldChecker) numberParam(name string, params []byte, pocketflow bool, at *definition.Place) {
	raw, found := expr.Field(params, name)
	kind := expr.KindOf(raw)
	switch ms, _ := expr.Number(raw); {
	case !found:
	case kind != expr.KindNumber && pocketflow:
		c.Warnf(at, "must be a number, is %s: it counts as 0", kind)
	case kind != expr.KindNumber:
		c.Errorf(at, "must be a number of milliseconds, is %s", kind)
	case pocketflow && ms < 0:
		c.Warnf(at, "must not be negative, is %s", expr.Compact(raw))
	case pocketflow:
	case ms < 0:
		c.Errorf(at, "must not be negative, is %s", expr.Compact(raw))
	case ms > float64(flow.MaxDelay):
		c.Errorf(at, "is too large: %s ms", expr.Compact(raw))
	}
}

// timerParam reports a timer without a delay. Such a timer would end at once.
func (c fieldChecker) timerParam(p *flow.PlanNode, pocketflow bool, at *definition.Place) {
	if _, found := expr.Field(p.Params, "delay_ms"); found || p.Kind != flow.KindTimer {
		return
	}
	const how = "write params: {delay_ms: 5000}, or a reference such as $params.wait"
	if pocketflow {
		c.Warnf(at, "is missing, so the timer ends at once unless the task brings it: %s", how)
		return
	}
	c.Errorf(at, "is missing, so the timer would end at once: %s", how)
}
