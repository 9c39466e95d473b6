package show_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// same states the relation of a plan's field to the shape: two definitions that differ in it, or
// the reason why it is not part of the shape.
type same struct{ old, new, why string }

const (
	limitsOfTries = "how long, how often and how many at a time is no part of the shape"
	follows       = "it follows from others"
)

func graphOf(node string) string {
	return "start: a\nnodes: {a: " + node + ", b: {service: s}}\n"
}

func dagNode(node string) string {
	return "nodes: {a: {service: s}, b: " + node + ", u: {service: s}}\n"
}

// shapeFields covers every field of a compiled flow.
var shapeFields = map[reflect.Type]map[string]same{
	reflect.TypeFor[flow.Plan](): {
		"Root": {why: "the nodes are"}, "Closing": {old: dagNode("{service: s}") + "finally: u\n",
			new: "nodes: {a: {service: s}, b: {service: s}, u: {service: t}}\nfinally: u\n"},
		"TimeoutMS": {why: limitsOfTries}, "Window": {why: limitsOfTries},
		"Keys": {why: limitsOfTries}, "Profile": {why: "a bundle of defaults: its nodes say what it meant"},
		"Result":  {old: "result: x\n" + graphOf("{service: s}"), new: "result: y\n" + graphOf("{service: s}")},
		"Finally": {old: "finally: b\n" + graphOf("{service: s}"), new: graphOf("{service: s}")},
		"FlowID":  {why: "not of the definition"}, "FlowSlug": {why: "not of the definition"},
	},
	reflect.TypeFor[flow.PlanScope](): {
		"Start": {old: "start: a\nnodes: {a: {service: s}, b: {service: s}}", new: "start: b\nnodes: {a: {service: s}, b: {service: s}}"},
		"Nodes": {old: "mode: dag\nnodes: {a: {service: s}}", new: "mode: dag\nnodes: {a: {service: s}, b: {service: s}}"},
		"Flat":  {why: follows}, "Pocketflow": {why: "the profile says it"}, "Dag": {why: "below"},
		"Code":     {old: "code: a", new: "start: b\nnodes: {b: {service: s}}"},
		"contents": {why: "not of the definition"},
		"Inputs": {old: graphOf("{kind: subflow, flow: {inputs: {a: int}, start: x, nodes: {x: " +
			"{service: s}}}}"), new: graphOf("{kind: subflow, flow: {inputs: {a: text}, start: " +
			"x, nodes: {x: {service: s}}}}")},
		"Result": {old: dagNode("{kind: branch, flow: {start: x, result: p, nodes: {x: " +
			"{service: s}}}}"), new: dagNode("{kind: branch, flow: {start: x, result: q, nodes: " +
			"{x: {service: s}}}}")},
	},
	reflect.TypeFor[flow.Dag](): {
		"List": {old: "mode: dag\nnodes: {a: {service: s}, b: {service: s}}",
			new: "mode: dag\nnodes: {b: {service: s}, a: {service: s}}"},
		"FailFast": {old: "on_error: fail_fast\n" + dagNode("{service: s}"), new: "on_error: continue\n" + dagNode("{service: s}")},
		"Output":   {why: follows}, "Leaves": {why: follows}, "RootMap": {why: follows},
	},
	reflect.TypeFor[flow.PlanNode](): {
		"Key": {why: "nodes are told apart by it"}, "Kind": {old: dagNode("{service: s}"),
			new: dagNode("{kind: timer, params: {delay_ms: 0}}")},
		"Exec": {why: "below"}, "Prep": {why: "below"}, "Post": {why: "below"},
		"Each": {why: "below"}, "Cases": {why: "below"}, "Dag": {why: "below"},
		"Retry": {why: limitsOfTries}, "TimeoutMS": {why: limitsOfTries},
		"Keys": {why: limitsOfTries}, "Single": {why: follows}, "Patient": {why: follows},
		"Params": {old: graphOf("{service: s}"), new: graphOf("{service: s, params: {x: 1}}")},
		"Edges": {old: graphOf("{service: s}") + "edges: [{from: a, action: x, to: b}]",
			new: graphOf("{service: s}") + "edges: [{from: a, action: y, to: b}]"},
		"Follow": {old: graphOf("{service: s}"), new: graphOf("{service: s, on_error: follow}")},
		"Strategy": {old: dagNode("{service: s, each: {count: 2, on_error: collect}}"),
			new: dagNode("{service: s, each: {count: 2, on_error: continue}}")},
		"Deferred": {old: graphOf("{service: s}"), new: graphOf("{service: s, deferred: true}")},
		"Coerce":   {old: graphOf("{kind: choice}"), new: "on_missing: coerce\n" + graphOf("{kind: choice}")},
		"Default":  {old: graphOf("{kind: choice, default_action: x}"), new: graphOf("{kind: choice, default_action: y}")},
		"Sub": {old: graphOf("{kind: subflow, subflow: {start: x, nodes: {x: {service: s}}}}"),
			new: graphOf("{kind: subflow, subflow: {start: x, nodes: {x: {service: t}}}}")},
		"Name": {old: dagNode("{service: s}"), new: dagNode("{service: s, name: b-2}")},
		"Out": {old: dagNode("{service: s, output_type: int}"),
			new: dagNode("{service: s, output_type: text}")},
		"Undo": {old: dagNode("{service: s, compensate: u}"),
			new: "nodes: {a: {service: s, compensate: u}, b: {service: s}, u: {service: s}}"},
	},
	reflect.TypeFor[flow.PlanDag](): {
		"Index": {why: "the order of the nodes is"}, "Dependents": {why: follows},
		"Sees": {why: follows}, "Run": {why: follows}, "Guards": {why: follows},
		"For": {why: follows}, "Entry": {why: follows}, "Has": {why: follows},
		"Not": {why: follows}, "Fixed": {why: follows}, "StartDelayMS": {why: limitsOfTries},
		"Takes": {old: dagNode("{kind: branch, prep: {service: p}, flow: {inputs: {a: int}, " +
			"nodes: {x: {service: s}}}}"), new: dagNode(
			"{kind: branch, prep: {service: p}, flow: {inputs: {a: text}, nodes: {x: {service: s}}}}")},
		"Deps": {old: dagNode("{service: s}"), new: dagNode("{service: s, depends_on: [a]}")},
		"Always": {old: dagNode("{service: s, depends_on: [a]}"),
			new: dagNode("{service: s, depends_on: [a], run_on: always}")},
		"Mode": {old: dagNode("{service: s, when: {expr: 'true'}}"),
			new: dagNode("{service: s, when: {expr: 'true'}, skip_mode: optional}")},
		"Exhausted": {old: dagNode("{service: s}"), new: dagNode("{service: s, on_exhausted: skip}")},
		"If":        {old: dagNode("{service: s, when: {if: {a: 1}}}"), new: dagNode("{service: s, when: {if: {a: 2}}}")},
		"IfNot":     {old: dagNode("{service: s, when: {if_not: {a: 1}}}"), new: dagNode("{service: s, when: {if_not: {a: 2}}}")},
		"Expr":      {old: dagNode("{service: s, when: {expr: 'run.n > 1'}}"), new: dagNode("{service: s, when: {expr: 'run.n > 2'}}")},
		"Shape":     {old: dagNode("{service: s, input_shape: deps}"), new: dagNode("{service: s, input_shape: merged}")},
		"Static": {old: dagNode("{service: s, input_shape: merged, input: {x: 1}}"),
			new: dagNode("{service: s, input_shape: merged, input: {x: 2}}")},
		"Bindings": {old: dagNode("{service: s, inputs: {x: {ref: $run.a}}}"),
			new: dagNode("{service: s, inputs: {x: {ref: $run.b}}}")},
		"Map": {old: dagNode("{service: s, prep: {input_key: $run.a}}"),
			new: dagNode("{service: s, prep: {input_key: $run.b}}")},
		"MapExpr": {old: dagNode("{service: s, prep: {expr: run.a}}"),
			new: dagNode("{service: s, prep: {expr: run.b}}")},
		"Items": {old: dagNode("{service: s, each: {items: $run.a}}"),
			new: dagNode("{service: s, each: {items: $run.b}}")},
		"Count": {old: dagNode("{service: s, each: {count: $run.a}}"),
			new: dagNode("{service: s, each: {count: $run.b}}")},
		"Repeats": {old: dagNode("{service: s, each: {count: 2}}"),
			new: dagNode("{service: s, each: {count: 3}}")},
	},
	reflect.TypeFor[flow.PlanPrep](): {
		"HasMap": {old: graphOf("{service: s}"), new: graphOf("{service: s, prep: {input_map: {}}}")}, "Ref": {why: follows},
		"Map": {old: graphOf("{service: s, prep: {input_map: {x: $params.x}}}"),
			new: graphOf("{service: s, prep: {input_map: {x: $params.y}}}")},
		"Key": {old: graphOf("{service: s, prep: {input_key: $params.x}}"), new: graphOf("{service: s, prep: {input_key: $params.y}}")},
	},
	reflect.TypeFor[flow.Post](): {
		"OutputKey":    {old: graphOf("{service: s}"), new: graphOf("{service: s, post: {output_key: x}}")},
		"OutputMap":    {old: graphOf("{service: s}"), new: graphOf("{service: s, post: {output_map: {x: y}}}")},
		"ActionStatic": {old: graphOf("{service: s}"), new: graphOf("{service: s, post: {action_static: x}}")},
		"ActionKey":    {old: graphOf("{service: s}"), new: graphOf("{service: s, post: {action_key: x}}")},
	},
	reflect.TypeFor[flow.Exec](): {
		"Type":    {old: dagNode("{service: s}"), new: dagNode("{service: s, route: queue}")},
		"Service": {old: dagNode("{service: s}"), new: dagNode("{service: t}")},
		"Func":    {old: dagNode("{func: f}"), new: dagNode("{func: g}")},
		"Script":  {old: dagNode("{script: {cmd: a}}"), new: dagNode("{script: {cmd: b}}")},
		"Program": {old: dagNode("{exec: {type: process, command: a}}"), new: dagNode("{exec: {type: process, command: b}}")},
		"Params": {old: graphOf(
			"{kind: parallel, parallel_execs: [{service: s, params: {x: 1}}]}"),
			new: graphOf("{kind: parallel, parallel_execs: [{service: s, params: {x: 2}}]}")},
		"Labels": {old: dagNode("{service: s, route: queue}"),
			new: dagNode("{service: s, route: queue, labels: [gpu]}")},
		"ByLoad": {why: limitsOfTries}, "MaxAttempts": {why: limitsOfTries},
		"TryDelayMS": {why: limitsOfTries}, "VisibilityMS": {why: limitsOfTries},
		"HeartbeatMS": {why: limitsOfTries}, "StartMS": {why: limitsOfTries},
		"FromClaim": {why: follows}, "Vars": {why: follows},
	},
	reflect.TypeFor[flow.Each](): {
		"Branches": {old: graphOf("{kind: parallel, parallel_services: [x, y]}"),
			new: graphOf("{kind: parallel, parallel_services: [x, z]}")},
		"Items": {old: graphOf("{kind: foreach, service: s}"),
			new: graphOf("{kind: foreach, service: s, foreach_execs: [{index: 1, exec_type: queue}]}")},
		"Window": {why: limitsOfTries},
	},
	reflect.TypeFor[flow.PlanCase](): {
		"Action": {old: graphOf("{kind: choice, choice_cases: [{action: x, expr: {gt: [1, 0]}}]}"),
			new: graphOf("{kind: choice, choice_cases: [{action: y, expr: {gt: [1, 0]}}]}")},
		"Text": {old: graphOf("{kind: choice, choice_cases: [{action: x, expr: {gt: [1, 0]}}]}"),
			new: graphOf("{kind: choice, choice_cases: [{action: x, expr: {gt: [2, 0]}}]}")},
		"Cond": {why: follows}, "CEL": {old: graphOf(
			"{kind: choice, choice_cases: [{action: x, expr: '1 > 0'}]}"),
			new: graphOf("{kind: choice, choice_cases: [{action: x, expr: '2 > 0'}]}")},
	},
}

// TestTheShapeKnowsEveryField ensures that a new field is not forgotten.
func TestTheShapeKnowsEveryField(t *testing.T) {
	for _, of := range []any{flow.Plan{}, flow.PlanScope{}, flow.Dag{}, flow.PlanNode{},
		flow.PlanDag{}, flow.PlanPrep{}, flow.Post{}, flow.Exec{}, flow.Each{}, flow.PlanCase{}} {
		typ := reflect.TypeOf(of)
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			s, known := shapeFields[typ][name]
			require.True(t, known, "%s.%s: say in shape.go whether it is a part of the shape, and here", typ, name)
			if s.why != "" {
				continue
			}
			was, is := flowtest.Plan(t, s.old), flowtest.Plan(t, s.new)
			require.NotEmpty(t, show.Differences(was, is), "%s.%s", typ, name)
			require.Empty(t, show.Differences(was, flowtest.Plan(t, s.old)), "%s.%s", typ, name)
		}
	}
	require.Equal(t, 2, reflect.TypeFor[flow.Branch]().NumField(), "a branch is told by its name and how it is carried out")
	require.Equal(t, 5, reflect.TypeFor[flow.PlanRef]().NumField(), "a reference is told by its text")
}
