package compile

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// checkWaits checks the control params of a node. s is nil for a node of a dag.
func (c *checker) checkWaits(p *flow.PlanNode, s *scopeSource, at *definition.Place) {
	c.warnMisspelled(p, at.Key("params"))
	if p.Kind == flow.KindApproval {
		c.checkQuestion(p.Params, at.Key("params"))
	}
	pocketflow := s != nil && s.pocketflow
	c.checkEndlessWait(p, pocketflow, at.Key("params").Key("timeout_ms"))
	c.timerParam(p, pocketflow, at.Key("params").Key("delay_ms"))
	if pocketflow {
		c.pocketflowControls(p, s.isFlat(), at)
		c.pocketflowRefs(p, p.Params, at)
		return
	}
	c.warnConstants(p, at.Key("params"))
	for _, name := range p.Controls() {
		c.checkControl(p, name, at.Key("params").Key(name))
	}
}

// checkEndlessWait reports a timeout of a wait that never times out.
func (c fieldChecker) checkEndlessWait(p *flow.PlanNode, pocketflow bool, at *definition.Place) {
	if p.Kind != flow.KindWaitEvent || p.Strategy != flow.StrategyRetry {
		return
	}
	if _, found := expr.Field(p.Params, "timeout_ms"); found {
		c.reportByProfile(pocketflow, at, "has no effect with failure_strategy: retry: leave one of them out")
	}
}

// warnConstants warns of the params of a choice. They hide the task's params, and nothing else
// reads them.
func (c fieldChecker) warnConstants(p *flow.PlanNode, at *definition.Place) {
	if p.Kind != flow.KindChoice {
		return
	}
	members, _ := expr.Members(p.Params)
	for _, m := range members {
		c.Warnf(at.Key(m.Key), "always wins over what a task brings: for a default declare it in the inputs of the flow")
	}
}

// checkControl checks one control param, which is a value or a reference.
func (c *checker) checkControl(p *flow.PlanNode, name string, at *definition.Place) {
	raw, found := expr.Field(p.Params, name)
	text, isText := expr.String(raw)
	mode := flow.ModeGraph
	if p.Dag != nil {
		mode = flow.ModeDag
	}
	switch {
	case name == signalKeys[p.Kind]:
		c.waitKey(text, found && !isText, raw, mode, at)
	case name == "services":
		c.checkServices(raw, found, at)
	case !isText || !referenceLike(text):
		c.numberParam(name, p.Params, false, at)
		return
	case !flow.IsControlRef(text, mode):
		c.Errorf(at, "%.80q is no reference", text)
	}
	c.controlRef(text, mode, at)
}

// referenceLike reports whether a text is intended as a reference.
func referenceLike(text string) bool { return text != "" && text[0] == '$' }

// waitKey reports a key that no signal or answer can set.
func (c fieldChecker) waitKey(text string, other bool, raw json.RawMessage, mode flow.Mode, at *definition.Place) {
	if other {
		c.Errorf(at, "must be a string, is %s", expr.KindOf(raw))
		return
	}
	if _, _, err := flow.ReadWaitKey(text, mode); err != nil {
		c.Errorf(at, "%s", err)
	}
}

// checkServices checks the branches of a parallel that are listed in its params alone.
func (c fieldChecker) checkServices(raw json.RawMessage, found bool, at *definition.Place) {
	text, isText := expr.String(raw)
	elements, isList := expr.Elements(raw)
	switch {
	case !found:
		c.Errorf(at, "is missing: write parallel_services or parallel_execs, or a reference to a list, such as $params.services")
	case isText && !flow.IsControlRef(text, flow.ModeGraph), !isText && !isList:
		c.Errorf(at, "must be a list of services, or a reference to one such as $params.services")
	}
	for i, e := range elements {
		if _, isText := expr.String(e); !isText {
			c.Errorf(at.Index(i), "must be the name of a service, is %s", expr.KindOf(e))
		}
	}
}

// controlRef checks a reference to the task's params. The params of the node itself do not count.
func (c *paramChecker) controlRef(text string, mode flow.Mode, at *definition.Place) {
	if !referenceLike(text) {
		return
	}
	if mode == flow.ModeGraph {
		c.checkParamsRef(text, nil, at)
	} else if path, ok := flow.RunPath(text); ok {
		c.checkRunRef(text, path, at)
	}
}

// pocketflowControls warns if a task's params can replace control params. With the pocketflow
// profile the task's params take precedence.
func (c *checker) pocketflowControls(p *flow.PlanNode, flat bool, at *definition.Place) {
	for _, name := range p.Controls() {
		at := at.Key("params").Key(name)
		raw, found := expr.Field(p.Params, name)
		text, isText := expr.String(raw)
		switch wait := name == signalKeys[p.Kind]; {
		case wait && !found:
			c.Warnf(at, "is missing: every task has to bring it")
		case wait && !isText:
			c.Errorf(at, "must be a string, is %s", expr.KindOf(raw))
		case wait && expr.ParseRef(text).Literal():
			c.Warnf(at, "%.80q is read as $shared.%.80s", text, text)
		case !wait && name != "services":
			c.numberParam(name, p.Params, true, at)
		}
		if (found || name == "timeout_ms" || name == "services") && !(flat && found) && c.mayBring(name) {
			c.Warnf(at, "in profile pocketflow a task's param %s wins over this and decides %s: "+
				"write profile: troupe, or declare inputs without it", name, controlEffects[name])
		}
	}
}

// controlEffects maps control params to their effects, for messages.
var controlEffects = map[string]string{
	"delay_ms": "how long the timer waits", "timeout_ms": "how long it waits",
	"signal_key": "what ends the wait", "approval_key": "what approves, also without a person",
	"services": "which services are called",
}

// mayBring reports whether a task may start with a param of the given name.
func (c *paramChecker) mayBring(name string) bool {
	return c.scopeParams.inputs == nil || c.scopeParams.inputs.Reaches([]string{name}) == ""
}
