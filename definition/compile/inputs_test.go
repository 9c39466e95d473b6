package compile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/flow"
)

// told returns the problems of a definition as texts.
func told(t *testing.T, definition string) []string {
	t.Helper()
	_, problems := compile.Text([]byte(definition), flow.Limits{})
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	return got
}

func TestProblemsOfInputsHaveTheirPlaces(t *testing.T) {
	const task = "\nstart: a\nnodes: {a: {service: s}}\n"
	for definition, want := range map[string][]string{
		"inputs: {amount: int, limit: int = 3, note: optional text, items: [text]}" + task: nil,
		"inputs: {}" + task: nil,
		"inputs: {amount: itn, b: {type: text, min: x}}" + task: {
			`1:18: inputs.amount: unknown type "itn": did you mean int?`,
			`1:44: inputs.b.min: must be a whole number from 0 on, is "x"`},
		"inputs: {amount: integr, foo: {type: object, properties: 3}}" + task: {
			`1:18: inputs.amount: unknown type "integr": write text, int, number, bool, object, ` +
				`any, list of text, one of a | b, or optional before it`,
			`1:58: inputs.foo.properties: must be an object, is a number`},
		"inputs: {foo: {type: object, properties: 3}, bar: {type: strng}, items: {type: [strng], items: {min: 1}}}" + task: {
			`1:42: inputs.foo.properties: must be an object, is a number`,
			`1:58: inputs.bar.type: unknown type "strng": write text, int, number, bool, ` +
				`object, any, list of text, one of a | b, or optional before it`,
			`1:74: inputs.items.type: unknown type "strng": write string, integer, number, boolean, array, object or null`,
			`1:102: inputs.items.items.min: has a meaning for text, int, number and list alone: say the type`},
		"inputs: {amount: itn}\nstart: a\nnodes: {a: {service: s, prep: {input_map: {x: $params.amount, y: $params.amuont}}}}": {
			`1:18: inputs.amount: unknown type "itn": did you mean int?`,
			`3:66: nodes.a.prep.input_map.y: "$params.amuont" leads nowhere: amuont is not ` +
				`declared among the inputs: did you mean amount?`},
		"inputs: {b: {type: text, min: x}}" + task: {
			`1:31: inputs.b.min: must be a whole number from 0 on, is "x"`},
		"inputs:\n  to:\n    fields:\n      zip: txt\n" + task: {
			`4:12: inputs.to.fields.zip: unknown type "txt": did you mean text?`},
		"inputs: [amount]" + task: {`1:1: inputs: must be an object such as {amount: int}, is an array`},
		"inputs: {type: object, properties: {a: {type: int}}}" + task: {
			`1:47: inputs.properties.a.type: unknown type "int": write string, integer, number, boolean, array, object or null`},
		"inputs: {a: {type: int, minimun: 2}}" + task: {
			`1:34: warning: inputs.a.minimun: unknown keyword, ignored: did you mean minimum?`},
		"inputs: {a: int, a: text}" + task: {"1:18: inputs.a: the key is there twice, first in line 1"},
		`{"inputs":{"a":int}}`:             {"1:1: start: no start", `1:16: invalid JSON: texts are in double quotes: write "int"`},
		"inputs: {a: int}\nnodes: {m: {kind: map, service: s}}": {
			`1:1: inputs: are an object, but the map m works on the run's input itself, which ` +
				`has to be a list: have it wait for a node, or write each: {items: $run.NAME}`},
		"nodes: {b: {kind: branch, flow: {inputs: {a: int}, nodes: {n: {service: s}}}}}": {
			`1:9: nodes.b.prep: is missing: the flow inside declares inputs, and gets them from it`},
	} {
		require.Equal(t, want, told(t, definition), definition)
	}
}

func TestAReferenceToAnUndeclaredInputIsAProblem(t *testing.T) {
	const inputs = "inputs: {amount: int, to: {fields: {zip: text}}, rows: [text]}\n"
	const amuont = ` leads nowhere: amuont is not declared among the inputs: did you mean amount?`
	for definition, want := range map[string][]string{
		"start: a\nnodes: {a: {service: s, prep: {input_key: $params.amount}}}":                nil,
		"start: a\nnodes: {a: {service: s, prep: {input_key: \"$params.rows[0]\"}}}":           nil,
		"start: a\nnodes: {a: {service: s, params: {mul: 2}, prep: {input_key: $params.mul}}}": nil,
		"start: a\nnodes: {a: {service: s, prep: {input_key: $params.amuont}}}": {
			`3:43: nodes.a.prep.input_key: "$params.amuont"` + amuont},
		"start: a\nnodes: {a: {service: s, prep: {input_map: {x: $params.to.zpi}}}}": {
			`3:47: nodes.a.prep.input_map.x: "$params.to.zpi" leads nowhere: zpi is not declared among the input to: did you mean zip?`},
		"start: a\nnodes: {a: {kind: choice, choice_cases: [{action: x, expr: {gt: " +
			"[$params.amuont, 1]}}]}, b: {service: s}}\nedges: [{from: a, action: x, to: b}]": {
			`3:66: nodes.a.choice_cases[0].expr.gt[0]: "$params.amuont"` + amuont},
		"start: a\nnodes: {a: {kind: choice, choice_cases: [{action: x, expr: params.amuont > 1 " +
			"&& has(params.amount)}]}, b: {service: s}}\nedges: [{from: a, action: x, to: b}]": {
			`3:60: nodes.a.choice_cases[0].expr: "params.amuont"` + amuont},
		"start: a\nnodes: {a: {kind: choice, choice_cases: [{action: x, expr: {and: [{not: " +
			"{exists: $params.amuont}}, {in: [$params.amount, [$params.q]]}, {eq: [1, {gt: " +
			"$params.q}]}]}}]}, b: {service: s}}\nedges: [{from: a, action: x, to: b}]": {
			`3:82: nodes.a.choice_cases[0].expr.and[0].not.exists: "$params.amuont"` + amuont},
		"start: a\nnodes: {a: {kind: wait_event, params: {signal_key: $params.amuont}}}": {
			`3:52: nodes.a.params.signal_key: "$params.amuont"` + amuont},
		"concurrency: {limit: 1, key: $params.amuont}\nstart: a\nnodes: {a: {service: s, rate: {limit: 1, per: 1s, key: $run.amuont}}}": {
			`2:30: concurrency.key: "$params.amuont"` + amuont, `4:56: nodes.a.rate.key: "$run.amuont"` + amuont},
		"start: a\nnodes: {a: {kind: parallel, params: {services: $params.services}}}": {
			`3:48: nodes.a.params.services: "$params.services" leads nowhere: services is not ` +
				`declared among the inputs: there is amount, to, rows`},
		"start: a\nnodes: {a: {kind: subflow, params: {own: 1}, subflow: {start: b, nodes: {b: " +
			"{service: s, prep: {input_map: {x: $params.own, y: $params.amuont}}}}}}}": {
			`3:128: nodes.a.subflow.nodes.b.prep.input_map.y: "$params.amuont"` + amuont},
		"start: a\nnodes: {a: {kind: subflow, flow: {inputs: {own: int}, start: b, nodes: {b: " +
			"{service: s, prep: {input_map: {x: $params.own, y: $params.amount}}}}}}}": {
			`3:127: nodes.a.flow.nodes.b.prep.input_map.y: "$params.amount" leads nowhere: ` +
				`amount is not declared among the inputs: there is own`},
		"nodes: {a: {service: s, inputs: {x: {ref: $run.amuont}, y: {ref: $run.amount}}}}": {
			`2:43: nodes.a.inputs.x.ref: "$run.amuont"` + amuont},
		"nodes: {a: {service: s, each: {items: $params.row}, when: {expr: run.amuont > 1}}}": {
			`2:39: nodes.a.each.items: "$params.row" leads nowhere: row is not declared among the inputs: did you mean rows?`,
			`2:66: nodes.a.when.expr: "run.amuont"` + amuont},
		"nodes: {b: {kind: branch, prep: {input_map: {q: $run.amount}}, flow: {inputs: {q: " +
			"int}, nodes: {n: {service: s, prep: {input_map: {x: $run.q, y: $run.amount}}}}}}}": {
			`2:146: nodes.b.flow.nodes.n.prep.input_map.y: "$run.amount" leads nowhere: amount ` +
				`is not declared among the inputs: there is q`},
		"nodes: {b: {kind: branch, prep: {input_map: {q: $run.amount}}, flow: {nodes: {n: " +
			"{service: s, prep: {input_key: $run.anything}}}}}}": nil,
		"finally: z\nnodes: {n: {service: s}, z: {service: s, prep: {input_map: {x: $params.amuont}}}}": {
			`3:64: nodes.z.prep.input_map.x: "$params.amuont"` + amuont},
	} {
		require.Equal(t, want, told(t, inputs+definition), definition)
	}
}

func TestWithoutInputsAParamThatLooksMisspelledIsAWarning(t *testing.T) {
	for names, want := range map[string][]string{
		"amount amount amuont": {`2:85: warning: nodes.a.prep.input_map.c: "$params.amuont" is ` +
			`the only one of that name, but amount is referred to 2 times: did you mean that? ` +
			`Declare inputs, and every reference is checked`},
		"amount amount amounts": nil, "item1 item1 item2": nil, "amount amount other": nil, "amount amuont other": nil,
	} {
		n := strings.Fields(names)
		require.Equal(t, want, told(t,
			"start: a\nnodes: {a: {service: s, prep: {input_map: {a: $params."+n[0]+", b: $params."+
				n[1]+", c: $params."+n[2]+"}}}}"), names)
	}
}

func TestInputsOfABuilderEqualThoseOfItsText(t *testing.T) {
	b := define.NewGraph("order").Input("amount", "int (in cents)").Input("limit", map[string]any{"type": "int", "default": 3})
	b.Start(b.Node("a").Service("s"))
	text, err := b.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"inputs":{"amount":"int (in cents)","limit":{"default":3,"type":"int"}}`)
	plan, problems := compile.Text(text, flow.Limits{})
	require.Empty(t, problems)
	d, err := b.Definition()
	require.NoError(t, err)
	built, problems := compile.Definition(d, flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, string(plan.Root.Inputs.Schema()), string(built.Root.Inputs.Schema()))
	require.JSONEq(t,
		`{"type":"object","properties":{"amount":{"type":"integer","description":"in cents"},"limit":{"type":"integer","default":3}},
		"required":["amount"],"additionalProperties":false}`, string(plan.Root.Inputs.Schema()))

	_, err = define.NewDag("x").Input("a", func() {}).Definition()
	require.ErrorContains(t, err, "input a")
}
