package compile

import (
	"encoding/json"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// knownParams holds what is known about `params` in a scope.
type knownParams struct {
	inputs *types.Inputs     // declared inputs; nil if any params are allowed
	around []json.RawMessage // params of the nodes around the scope, which are visible too
	made   bool              // a prep builds the params
}

// paramUse is a reference to an undeclared param.
type paramUse struct {
	text string
	at   *definition.Place
}

// checkInputs checks the declared inputs of a definition. References are checked against them from
// then on.
func (c *paramChecker) checkInputs(d *definition.Definition, at *definition.Place) {
	in, problems := d.Inputs.Read()
	at = at.Key("inputs")
	for _, p := range problems {
		if p.Warning {
			c.Warnf(at.Below(p.Path), "%s", p.Msg)
		} else {
			c.Errorf(at.Below(p.Path), "%s", p.Msg)
		}
	}
	if in == nil {
		in = d.Inputs.Named()
	}
	c.scopeParams = knownParams{inputs: in}
}

// checkRootInputs checks the declared inputs of the whole flow.
func (c *checker) checkRootInputs(d *definition.Definition) {
	c.checkInputs(d, nil)
	c.rootParams = c.scopeParams
	if dag := c.plan.Root.Dag; dag != nil && dag.RootMap != "" && c.scopeParams.inputs != nil {
		c.Errorf(definition.At("inputs"), "are an object, but the map %s works on the run's input "+
			"itself, which has to be a list: have it wait for a node, or write each: {items: $run.NAME}",
			dag.RootMap)
	}
}

// withParams runs a check inside a node, where `params` are different, and restores them
// afterwards.
func (c *paramChecker) withParams(inside knownParams, check func()) {
	before := c.scopeParams
	c.scopeParams = inside
	check()
	c.scopeParams = before
}

// insideGraph returns the params in a subflow of graph mode, which include those of the node.
func (c *paramChecker) insideGraph(n *definition.Node) knownParams {
	around := append(c.scopeParams.around[:len(c.scopeParams.around):len(c.scopeParams.around)], n.Params)
	for _, spec := range n.SubflowExecs {
		around = append(around, spec.Params)
	}
	return knownParams{inputs: c.scopeParams.inputs, around: around, made: c.scopeParams.made}
}

// insideFlow returns the params in a nested flow. The result of a prep is unknown.
func (c *paramChecker) insideFlow(n *definition.Node, s *scopeSource) knownParams {
	ofDag := s.nodes == nil
	if d := n.Flow.Definition; !n.Prep.Empty() && (ofDag || d != nil && ModeOf(d) == flow.ModeDag) {
		return knownParams{made: true}
	}
	return c.insideGraph(n)
}

// checkInnerInputs checks the declared inputs of a nested flow. If there are any, the nested flow
// sees no other params.
func (c *paramChecker) checkInnerInputs(d *definition.Definition, at *definition.Place) {
	if !d.Inputs.IsZero() {
		c.checkInputs(d, at)
	}
}

// checkParamPath checks a reference into params by the keys of the reference. own are the params of
// the node itself.
func (c *paramChecker) checkParamPath(text string, path []string, own json.RawMessage, at *definition.Place) {
	if len(path) == 0 || c.scopeParams.made {
		return
	}
	for _, params := range append(c.scopeParams.around[:len(c.scopeParams.around):len(c.scopeParams.around)], own) {
		if _, there := expr.Field(params, path[0]); there {
			return
		}
	}
	if c.scopeParams.inputs == nil {
		c.paramUses[path[0]] = append(c.paramUses[path[0]], paramUse{text, at})
		return
	}
	if wrong := c.scopeParams.inputs.Reaches(path); wrong != "" {
		c.Errorf(at, "%.80q leads nowhere: %s", text, wrong)
	}
}

// warnDoubtfulParams warns of a param that is used once and has a similar name to a more frequent
// one. Without declared inputs this is only a guess.
func (c *paramChecker) warnDoubtfulParams() {
	var common []string
	for name, uses := range c.paramUses {
		if len(uses) > 1 {
			common = append(common, name)
		}
	}
	for name, uses := range c.paramUses {
		meant := types.Nearest(name, common)
		if len(uses) > 1 || meant == "" || areVariants(name, meant) {
			continue
		}
		c.Warnf(uses[0].at, "%.80q is the only one of that name, but %s is referred to %d "+
			"times: did you mean that? Declare inputs, and every reference is checked",
			uses[0].text, meant, len(c.paramUses[meant]))
	}
}

// areVariants reports whether two similar names are probably both intended: they differ in a number
// or a plural s.
func areVariants(a, b string) bool {
	bare := func(name string) string {
		return strings.TrimSuffix(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, name), "s")
	}
	return bare(a) == bare(b)
}

// checkParamsRef checks a text that may be a reference into params, as in graph mode and keys.
func (c *paramChecker) checkParamsRef(text string, own json.RawMessage, at *definition.Place) {
	if path, ok := parseRef(text).IntoParams(); ok {
		c.checkParamPath(text, path, own, at)
	}
}

// checkRunRef checks a reference to the run's input: $run.x, or in dag mode also $params.x and
// $input.x.
func (c *paramChecker) checkRunRef(text, path string, at *definition.Place) {
	if keys, ok := expr.PathKeys(path); ok {
		c.checkParamPath(text, keys, nil, at)
	}
}

// checkParamReads checks the params that an expression reads.
func (c *paramChecker) checkParamReads(compiled *expr.CEL, own json.RawMessage, at *definition.Place) {
	for _, read := range compiled.Reads() {
		if name := read.Path[0]; name == "params" || name == "run" {
			c.checkParamPath(strings.Join(read.Path, "."), read.Path[1:], own, at.Character(read.At))
		}
	}
}

// graphRefs checks the references of a node of graph mode.
func (c *paramChecker) graphRefs(n *definition.Node, p *flow.PlanNode, at *definition.Place) {
	own := n.Params
	prep := at.Key("prep")
	if n.Prep.InputMap == nil {
		c.checkParamsRef(n.Prep.InputKey, own, prep.Key("input_key"))
	}
	for key, text := range n.Prep.InputMap {
		c.checkParamsRef(text, own, prep.Key("input_map").Key(key))
	}
	for i, ch := range p.Cases {
		at := at.Key("choice_cases").Index(i).Key("expr")
		c.checkParamReads(ch.CEL, own, at)
		if ch.Cond != nil {
			c.checkOperands(ch.Text, own, at)
		}
	}
	c.keyRefs(&n.KeyFields, own, at)
}

// checkOperands checks the references that a JSON expression compares. Texts in a list that is an
// operand are literals.
func (c *paramChecker) checkOperands(raw, own json.RawMessage, at *definition.Place) {
	one := func(v json.RawMessage, at *definition.Place) {
		if text, ok := expr.String(v); ok {
			c.checkParamsRef(text, own, at)
		}
	}
	operators, _ := expr.Members(raw)
	for _, m := range operators {
		at, joins := at.Key(m.Key), m.Key == "and" || m.Key == "or" || m.Key == "not"
		one(m.Value, at)
		elements, _ := expr.Elements(m.Value)
		for i, e := range elements {
			one(e, at.Index(i))
			if joins {
				c.checkOperands(e, own, at.Index(i))
			}
		}
		if joins {
			c.checkOperands(m.Value, own, at)
		}
	}
}

// pocketflowRefs checks the references of control params, which may also come from the task's
// params.
func (c *paramChecker) pocketflowRefs(p *flow.PlanNode, own json.RawMessage, at *definition.Place) {
	if p.Kind == flow.KindParallel && len(p.Each.Branches) == 0 {
		c.checkParamPath("$params.services", []string{"services"}, own, at)
	}
	if key := signalKeys[p.Kind]; key != "" {
		raw, _ := expr.Field(p.Params, key)
		text, _ := expr.String(raw)
		c.checkParamsRef(text, own, at.Key("params").Key(key))
	}
}

// keyRefs checks the references in the keys that attempts or tasks wait for.
func (c *paramChecker) keyRefs(f *definition.KeyFields, own json.RawMessage, at *definition.Place) {
	one := func(text string, at *definition.Place) {
		c.checkParamsRef(text, own, at)
		if path, ok := cutRefName(text, runRef); ok {
			c.withParams(c.rootParams, func() { c.checkRunRef(text, path, at) })
		}
	}
	for _, spec := range []struct {
		*definition.KeySpec
		at *definition.Place
	}{{f.Concurrency, at.Key("concurrency")}, {f.Rate, at.Key("rate")}} {
		if spec.KeySpec != nil {
			one(spec.Key, spec.at.Key("key"))
			one(spec.Fair, spec.at.Key("fair"))
		}
	}
	if text, ok := expr.String(f.Priority); ok {
		one(text, at.Key("priority"))
	}
}
