package compile_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// nodeA compiles a node of a YAML flow with the pocketflow profile, which accepts fields without an
// effect.
func nodeA(t testing.TB, fields string) *flow.PlanNode {
	t.Helper()
	return flowtest.Plan(t, "profile: pocketflow\nstart: a\nnodes:\n  a: "+fields+"\n").Root.Nodes["a"]
}

func TestFieldsOfANodeAreKept(t *testing.T) {
	n := nodeA(t, `{service: s, exec_type: queue, params: {k: [1]}, max_retries: 2, wait_ms: 5, max_attempts: 3,
    attempt_delay_ms: 7, weighted_by_load: true, timeout_ms: 11, visibility_ms: 13, on_error: follow,
    prep: {input_map: {b: $params.x, a: plain}}, post: {output_key: o, output_map: {t: f}, action_key: k}}`)
	require.Equal(t, flow.KindExecutor, n.Kind)
	require.Equal(t, flow.Exec{Type: flow.ExecQueue, Service: "s", ByLoad: true, MaxAttempts: 3, TryDelayMS: 7, VisibilityMS: 13}, n.Exec)
	require.Equal(t, flow.Retry{Max: 2, WaitMS: 5, Units: true}, n.Retry)
	require.Equal(t, int64(11), n.TimeoutMS)
	require.True(t, n.Follow)
	require.Equal(t, `{"k":[1]}`, string(n.Params))
	require.Equal(t, flow.Post{OutputKey: "o", OutputMap: map[string]string{"t": "f"}, ActionKey: "k"}, n.Post)
	require.True(t, n.Prep.HasMap)
	require.Equal(t, []string{"a", "b"}, []string{n.Prep.Map[0].Key, n.Prep.Map[1].Key})
	require.Equal(t, "$params.x", n.Prep.Map[1].Ref.Text())
}

func TestExecTypeIsResolved(t *testing.T) {
	for name, tt := range map[string]struct {
		node string
		want flow.ExecType
	}{
		"nothing said":                       {"{service: s}", flow.ExecPush},
		"kind remote":                        {"{kind: remote, service: s}", flow.ExecPush},
		"exec_mode is an older name":         {"{service: s, exec_mode: queue}", flow.ExecQueue},
		"exec_type wins over exec_mode":      {"{service: s, exec_type: http, exec_mode: queue}", flow.ExecPush},
		"a script and nothing else":          {"{script: {code: x}}", flow.ExecScript},
		"a script whose type stands in func": {"{func: local_script, script: {cmd: x}}", flow.ExecScript},
		"a script beside a service":          {"{service: s, script: {cmd: x}}", flow.ExecPush},
		"an empty script counts as none":     {"{func: f, script: {language: python}}", flow.ExecFunc},
		"a local function":                   {"{exec_type: local_func, func: mul}", flow.ExecFunc},
		"choice_key is accepted and ignored": {"{service: s, choice_key: k}", flow.ExecPush},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeA(t, tt.node)
			require.Equal(t, tt.want, n.Exec.Type)
			require.Zero(t, n.Exec.MaxAttempts)
		})
	}
}

func TestEdges(t *testing.T) {
	plan, problems := compile.Text([]byte(`
start: a
nodes: {a: {service: s, post: {action_key: next}}, b: {service: s}}
edges:
- {from: a, action: x, to: b}
- {from: a, action: x, to: a}
- {from: a, action: stop, to: ""}
- {from: a, action: error}
- {from: a, to: b}
`), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Equal(t, map[string]string{"x": "b", "stop": "", "error": "", "default": "b"}, plan.Root.Nodes["a"].Edges)
	require.Empty(t, plan.Root.Nodes["b"].Edges)
	require.Equal(t, "6:3: warning: edges[1]: node \"a\" has an edge for the action \"x\" "+
		"already: this one is never taken", problems[0].String())
	require.Len(t, problems, 1)
}

func TestAnEdgeWithoutAnActionIsTheOneForDefault(t *testing.T) {
	const graph = "start: a\nnodes: {a: {service: s}, b: {service: s}}\nedges: [{from: a, to: b}]\n"
	plan, problems := compile.Text([]byte(graph), flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, map[string]string{"default": "b"}, plan.Root.Nodes["a"].Edges)

	plan, problems = compile.Text([]byte("profile: pocketflow\n"+graph), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Contains(t, problems.Error(), "4:9: warning: edges[0]: an edge without an action is "+
		"never taken in the profile pocketflow: write action: default")
	require.Empty(t, plan.Root.Nodes["a"].Edges)

	const inner = "start: o\nnodes: {o: {kind: subflow, subflow: {start: a, nodes: {a: " +
		"{service: s}, b: {service: s}}, edges: [{from: a, to: b}]}}}"
	plan, problems = compile.Text([]byte(inner), flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, map[string]string{"default": "b"}, plan.Root.Nodes["o"].Sub.Nodes["a"].Edges)

	_, problems = compile.Text([]byte("start: a\nnodes: {a: {service: s}, b: {service: "+
		"s}}\nedges: [{from: a, action: default, to: b}, {from: a, to: a}]\n"), flow.Limits{})
	require.Contains(t, problems.Error(), `edges[1]: node "a" has an edge for the action "default" already: this one is never taken`)
}

func TestNegativeNumbersAreErrorsInBothModes(t *testing.T) {
	for _, field := range []string{"max_retries: -1", "wait_ms: -1", "max_attempts: -1",
		"attempt_delay_ms: -1", "timeout_ms: -1", "retry: {max_attempts: -1}", "max_retries: 2000000000"} {
		for _, mode := range []string{"mode: graph\nstart: a", "mode: dag"} {
			_, problems := compile.Text([]byte(mode+"\nnodes: {a: {service: s, "+field+"}}"), flow.Limits{})
			require.Error(t, problems.Err(), "%s: %s", mode, field)
		}
	}
	_, problems := compile.Text([]byte("start: t\nnodes: {t: {kind: timer, params: {delay_ms: -1}}}"), flow.Limits{})
	require.ErrorContains(t, problems.Err(), "must not be negative")
}

func TestParallelBranches(t *testing.T) {
	n := nodeA(t, `{kind: parallel, exec_type: local_func, func: mul, weighted_by_load: true, max_attempts: 2, max_retries: 9,
    parallel_services: [ignored], parallel_mode: concurrent, max_parallel: 3, failure_strategy: fail_fast,
    parallel_execs: [
      {service: x},
      {service: x, params: {mul: 3}, func: upper, prep: {input_key: k}},
      {service: y, exec_type: queue},
      {service: z, exec_type: local_script, script: {code: echo}},
      {service: w, script: {language: python}}]}`)
	base := flow.Exec{Type: flow.ExecFunc, Func: "mul", ByLoad: true, MaxAttempts: 2}
	with := func(change func(*flow.Exec)) flow.Exec {
		e := base
		change(&e)
		return e
	}
	require.Equal(t, &flow.Each{Window: 3, Branches: []flow.Branch{
		{Name: "x", Exec: with(func(e *flow.Exec) { e.Service = "x" })},
		{Name: "x", Exec: with(func(e *flow.Exec) { e.Service, e.Func, e.Params = "x", "upper", json.RawMessage(`{"mul":3}`) })},
		{Name: "y", Exec: with(func(e *flow.Exec) { e.Service, e.Type = "y", flow.ExecQueue })},
		{Name: "z", Exec: with(func(e *flow.Exec) { e.Service, e.Type, e.Script = "z", flow.ExecScript, &flow.Script{Code: "echo"} })},
		{Name: "w", Exec: with(func(e *flow.Exec) { e.Service = "w" })},
	}}, n.Each)
	require.Equal(t, base, n.Exec)
	require.Equal(t, flow.FailFast, n.Strategy)
	require.Zero(t, n.Retry)
}

func TestParallelServices(t *testing.T) {
	n := nodeA(t, `{kind: parallel, parallel_services: [x, y], max_parallel: 8}`)
	require.Equal(t, &flow.Each{Window: 1, Branches: []flow.Branch{
		{Name: "x", Exec: flow.Exec{Type: flow.ExecPush, Service: "x"}}, {Name: "y", Exec: flow.Exec{Type: flow.ExecPush, Service: "y"}},
	}}, n.Each)
	n = nodeA(t, `{kind: parallel, parallel_mode: concurrent, params: {services: $params.services}}`)
	require.Equal(t, &flow.Each{}, n.Each, "the branches come with the task")
}

func TestForeachItems(t *testing.T) {
	n := nodeA(t, `{kind: foreach, service: transform, params: {mul: 2}, parallel_mode: concurrent, foreach_execs: [
      {exec_type: local_func, func: mul, params: {mul: 5}, service: ignored},
      {index: 2, exec_type: local_script, script: {cmd: cat}},
      {index: 2, exec_type: queue}]}`)
	require.Equal(t, flow.Exec{Type: flow.ExecPush, Service: "transform"}, n.Exec)
	require.Equal(t, map[int]flow.Exec{
		0: {Type: flow.ExecFunc, Service: "transform", Func: "mul", Params: json.RawMessage(`{"mul":5}`)},
		2: {Type: flow.ExecScript, Service: "transform", Script: &flow.Script{Cmd: "cat"}},
	}, n.Each.Items)
	require.Zero(t, n.Each.Window)
}

func TestStrategies(t *testing.T) {
	for kind, words := range map[string]map[string]flow.Strategy{
		"kind: parallel, parallel_services: [s]": {"": flow.Collect, "collect_errors": flow.Collect,
			"retry": flow.Collect, "ignore_errors": flow.Continue, "continue": flow.Continue,
			"fail_fast": flow.FailFast},
		"kind: foreach, service: s": {"fail_fast": flow.FailFast, "nonsense": flow.Collect},
		"kind: subflow, subflow: {start: a, nodes: {a: {service: s}}}": {
			"": flow.Collect, "fail_fast": flow.Collect, "continue": flow.Continue,
			"ignore_errors": flow.Continue, "retry": flow.StrategyRetry},
		"kind: wait_event, params: {signal_key: $shared.x}": {"": flow.Collect,
			"continue": flow.Continue, "retry": flow.StrategyRetry, "fail_fast": flow.Collect},
		"service: s": {"retry": flow.Collect},
	} {
		for word, want := range words {
			require.Equal(t, want, nodeA(t, fmt.Sprintf("{%s, failure_strategy: %q}", kind, word)).Strategy, "%s %s", kind, word)
		}
	}
}

func TestSubflow(t *testing.T) {
	n := nodeA(t, `
    kind: subflow
    exec_type: local_func
    func: mul
    service: never inherited
    weighted_by_load: true
    failure_strategy: retry
    max_retries: 3
    wait_ms: 20
    subflow:
      start: x
      nodes:
        x: {params: {mul: 2, keep: 1}, prep: {input_key: $params.v}, max_retries: 4}
        y: {service: transform, exec_type: http}
        z: {kind: parallel, parallel_services: [p]}
        deep: {kind: subflow, subflow: {start: w, nodes: {w: {}}}}
        ends: {kind: subflow, subflow: {nodes: {}}}
        c: {kind: choice, choice_cases: [{action: go, expr: {eq: [1, 1]}}]}
      edges: [{from: x, action: default, to: y}]
    subflow_execs:
    - {node: x, params: {mul: 7, new: true}, func: upper}
    - {node: y, exec_type: queue, service: other}
    - {node: y, exec_type: local_func}
    - {node: nobody}
    - {node: z, func: log_result}`)
	g := n.Sub
	require.True(t, g.Flat)
	require.Equal(t, flow.Retry{Max: 2, WaitMS: 20}, n.Retry, "max_retries of a subflow counts all tries")
	require.Equal(t, flow.Exec{Type: flow.ExecFunc, Func: "upper"}, g.Nodes["x"].Exec)
	require.Equal(t, `{"mul":7,"keep":1,"new":true}`, string(g.Nodes["x"].Params))
	require.Equal(t, flow.Retry{Max: 4, Units: true}, g.Nodes["x"].Retry)
	require.Equal(t, map[string]string{"default": "y"}, g.Nodes["x"].Edges)
	require.Equal(t, flow.Exec{Type: flow.ExecQueue, Service: "other", Func: "mul"}, g.Nodes["y"].Exec)
	require.Equal(t, flow.Exec{Type: flow.ExecFunc, Service: "p", Func: "log_result"}, g.Nodes["z"].Each.Branches[0].Exec)
	require.Equal(t, flow.Exec{Type: flow.ExecFunc, Func: "mul"}, g.Nodes["deep"].Sub.Nodes["w"].Exec)
	require.Nil(t, g.Nodes["ends"].Sub, "a subflow without a start ends at once")
	require.Len(t, g.Nodes["c"].Cases, 1)
	require.Zero(t, nodeA(t, `{kind: subflow, failure_strategy: retry, subflow: {}}`).Retry, "0 is no retry")
}

func TestOnErrorOfANodeWinsOverTheFlow(t *testing.T) {
	g := flowtest.Plan(t, `
start: a
on_error: follow
timeout_ms: 9
result: r
nodes:
  a: {service: s}
  b: {service: s, on_error: fail}
  c: {kind: subflow, subflow: {start: d, nodes: {d: {service: s}}}}`)
	require.Equal(t, int64(9), g.TimeoutMS)
	require.Equal(t, "r", g.Root.Result)
	require.True(t, g.Root.Nodes["a"].Follow)
	require.False(t, g.Root.Nodes["b"].Follow)
	require.True(t, g.Root.Nodes["c"].Follow)
}

func TestByDefaultAFailedNodeIsNotFollowed(t *testing.T) {
	require.False(t, flowtest.Plan(t, "start: a\nnodes: {a: {service: s}}").Root.Nodes["a"].Follow)
	require.True(t, nodeA(t, `{service: s, on_error: follow}`).Follow)
}

func TestMeaninglessDefinitionsAreRejected(t *testing.T) {
	for name, tt := range map[string]struct {
		node string
		want string
	}{
		"unknown kind": {"{kind: loop}",
			`nodes.a.kind: unknown kind "loop": write executor, choice, parallel, subflow, ` +
				`timer, foreach, wait_event or approval`},
		"subflow without a subflow": {"{kind: subflow}", "nodes.a.subflow: is missing"},
		"unknown start inside":      {"{kind: subflow, subflow: {start: x}}", `nodes.a.subflow.start: unknown node "x"`},
		"unknown edge inside": {"{kind: subflow, subflow: {edges: [{from: x, action: y}]}}",
			`nodes.a.subflow.edges[0].from: unknown node "x"`},
		"unknown exec": {"{service: s, exec_type: ftp}",
			`nodes.a.exec_type: unsupported exec "ftp": write push, remote, queue, local_func, ` +
				`local_script or external`},
		"unknown exec of a branch": {"{kind: parallel, parallel_execs: [{service: s, " +
			"exec_mode: ftp}]}", `nodes.a.parallel_execs[0].exec_type: unsupported exec "ftp": ` +
			`write push, remote, queue, local_func, local_script or external`},
		"local_func without func": {"{exec_type: local_func}",
			"nodes.a.func: is missing: say which local function to call"},
		"local_script without it": {"{exec_type: local_script, script: {}}",
			"nodes.a.script: is missing: give it a cmd or code"},
		"an unknown stderr_mode": {"{script: {cmd: x, stderr_mode: none}}",
			`nodes.a.script.stderr_mode: unknown word "none": write log, or leave it out`},
		"a queue of nobody": {"{exec_type: queue}",
			"nodes.a.service: is missing: say whose queue the job waits in"},
		"unknown on_error": {"{service: s, on_error: ignore}",
			`nodes.a.on_error: unknown word "ignore": write follow or fail`},
		"a service that is no text": {`{service: "s\0"}`,
			"nodes.a.service: is not UTF-8 text, or holds the character U+0000: no store can keep it"},
		"a branch that is no text": {`{kind: parallel, parallel_services: [s, "\0"]}`,
			"nodes.a.parallel_services[1].service: is not UTF-8 text, or holds the character " +
				"U+0000: no store can keep it"},
		"a label that is no text": {`{service: s, labels: [x, "\0"]}`,
			"nodes.a.labels[1]: is not UTF-8 text, or holds the character U+0000: no store can keep it"},
		"labels without a bound": {`{service: s, labels: [` + strings.Repeat("x, ",
			1000) + `x]}`, "nodes.a.labels: has 1001 labels, more than the limit of 1000"},
		"negative tries": {"{service: s, retry: {max_attempts: -1}}", "nodes.a.retry.max_attempts: must not be negative"},
		"a word of PocketFlow": {"{service: s, exec_type: http}",
			"nodes.a.exec_type: http is a word of the profile pocketflow: write push"},
		"negative time": {"{service: s, timeout_ms: -1}", "nodes.a.timeout_ms: must not be negative"},
		"a time beyond all times": {fmt.Sprintf("{service: s, timeout_ms: %d}",
			math.MaxInt64), "nodes.a.timeout_ms: is too large: 9223372036854775807 ms"},
		"negative window": {"{kind: parallel, parallel_services: [s], parallel_mode: " +
			"concurrent, max_parallel: -1}", "nodes.a.max_parallel: must not be negative"},
		"negative item": {"{kind: foreach, service: s, prep: {input_key: " +
			"$params.l}, foreach_execs: [{index: -1}]}",
			"nodes.a.foreach_execs[0].index: must not be negative"},
		"output over _rt": {"{service: s, post: {output_key: _rt}}",
			"nodes.a.post.output_key: the key _rt is reserved"},
		"output_map over _rt": {"{service: s, post: {output_map: {_rt: x}}}",
			"nodes.a.post.output_map._rt: the key _rt is reserved"},
		"no approval key": {"{kind: approval}",
			"nodes.a.params.approval_key: is missing: write the key that a signal sets, such as decision"},
		"an empty key": {"{kind: wait_event, params: {signal_key: ''}}",
			"nodes.a.params.signal_key: is missing: write the key that a signal sets, such as decision"},
		"params as a key": {"{kind: approval, params: {approval_key: $params}}",
			`nodes.a.params.approval_key: "$params" is no reference: write the key that a ` +
				`signal sets, such as decision, or a reference to it, such as $params.key`},
		"all of shared": {"{kind: approval, params: {approval_key: $shared.}}",
			"nodes.a.params.approval_key: key is missing: name the key of shared that the signal sets"},
		"an element": {"{kind: approval, params: {approval_key: '[0]'}}",
			`nodes.a.params.approval_key: "[0]" is an element of a list, which no signal sets: write a key`},
		"an element in shared": {"{kind: wait_event, params: {signal_key: '$shared.a[0].b'}}",
			`nodes.a.params.signal_key: "$shared.a[0].b" is an element of a list, which no ` +
				`signal sets: write a key`},
		"a path with a gap": {"{kind: wait_event, params: {signal_key: a..b}}",
			`nodes.a.params.signal_key: key "a..b" has an empty part: dots stand between the keys of a path`},
		"the engine's key": {"{kind: wait_event, params: {signal_key: _rt}}",
			"nodes.a.params.signal_key: key _rt belongs to the engine: choose another one"},
		"a delay from nowhere": {"{kind: timer, params: {delay_ms: $later}}",
			`nodes.a.params.delay_ms: "$later" is no reference`},
		"no delay": {"{kind: timer}",
			"nodes.a.params.delay_ms: is missing, so the timer would end at once: write params: " +
				"{delay_ms: 5000}, or a reference such as $params.wait"},
		"a text as a delay": {`{kind: timer, params: {delay_ms: "5"}}`,
			"nodes.a.params.delay_ms: must be a number of milliseconds, is a string"},
		"a negative delay": {"{kind: timer, params: {delay_ms: -5}}",
			"nodes.a.params.delay_ms: must not be negative, is -5"},
		"a text as a timeout": {"{kind: wait_event, params: {signal_key: k, timeout_ms: soon}}",
			"nodes.a.params.timeout_ms: must be a number of milliseconds, is a string"},
		"a parallel of nothing": {"{kind: parallel}",
			"nodes.a.params.services: is missing: write parallel_services or parallel_execs, or " +
				"a reference to a list, such as $params.services"},
		"a branch that is a number": {"{kind: parallel, params: {services: [s, 5]}}",
			"nodes.a.params.services[1]: must be the name of a service, is a number"},
		"services that are no list": {"{kind: parallel, params: {services: s}}",
			"nodes.a.params.services: must be a list of services, or a reference to one such as " +
				"$params.services"},
		"a wait for a number": {"{kind: wait_event, params: {signal_key: 5}}",
			"nodes.a.params.signal_key: must be a string, is a number"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, problems := compile.Text([]byte("start: a\nnodes:\n  a: "+tt.node), flow.Limits{})
			require.Nil(t, plan)
			require.Len(t, problems, 1)
			require.Equal(t, tt.want, problems[0].Path+": "+problems[0].Msg)
		})
	}
}

func TestProbableMistakesAreWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		node string
		want string
	}{
		"a strange mode": {"{kind: parallel, parallel_services: [s], parallel_mode: fast}",
			`nodes.a.parallel_mode: unknown word "fast": units run one after the other; write ` +
				`concurrent or sequential`},
		"a strange ref": {"{service: s, prep: {input_key: $param.x}}",
			`nodes.a.prep.input_key: "$param.x" is no reference but a text: references begin ` +
				`with $params., $shared. or $input`},
	} {
		t.Run(name, func(t *testing.T) {
			plan, problems := compile.Text([]byte("start: a\nnodes:\n  a: "+tt.node), flow.Limits{})
			require.NotNil(t, plan)
			require.Len(t, problems, 1)
			require.Equal(t, definition.SeverityWarning, problems[0].Severity)
			require.Equal(t, tt.want, problems[0].Path+": "+problems[0].Msg)
		})
	}
}

func TestTimersOfPocketFlowAreWarnings(t *testing.T) {
	for params, want := range map[string]string{
		`{}`: `is missing, so the timer ends at once unless the task brings it: ` +
			`write params: {delay_ms: 5000}, or a reference such as $params.wait`,
		`{delay_ms: later}`: `must be a number, is a string: it counts as 0`,
		`{delay_ms: -5}`:    `must not be negative, is -5`,
	} {
		plan, problems := compile.Text([]byte(
			"profile: pocketflow\nstart: a\nnodes:\n  a: {kind: timer, params: "+params+"}"), flow.Limits{})
		require.NotNil(t, plan, params)
		require.Equal(t, "nodes.a.params.delay_ms: "+want, problems[0].Path+": "+problems[0].Msg)
		require.Equal(t, definition.SeverityWarning, problems[0].Severity)
	}
}

func TestKeysOfNodes(t *testing.T) {
	for key, ok := range map[string]bool{
		"a": true, "größe/1#2": true, " ": true, "": false, "a\nb": false, "\x00": false,
		strings.Repeat("k", 256): true, strings.Repeat("k", 257): false, "\xff": false,
	} {
		_, problems := compile.Definition(&definition.Definition{Start: key,
			Nodes: map[string]*definition.Node{key: {Service: "s"}}}, flow.Limits{})
		require.Equal(t, ok, problems.Err() == nil, "%q", key)
	}
}

func TestNestingIsBounded(t *testing.T) {
	nested := func(levels int) *definition.Definition {
		n := &definition.Node{Service: "s"}
		for range levels {
			n = &definition.Node{Kind: "subflow", Subflow: &definition.Subflow{Start: "a", Nodes: map[string]*definition.Node{"a": n}}}
		}
		return &definition.Definition{Start: "a", Nodes: map[string]*definition.Node{"a": n}}
	}
	_, problems := compile.Definition(nested(3), flow.Limits{Depth: 3})
	require.NoError(t, problems.Err())
	_, problems = compile.Definition(nested(4), flow.Limits{Depth: 3})
	require.Len(t, problems, 1)
	require.Equal(t, "nodes.a.subflow.nodes.a.subflow.nodes.a.subflow.nodes.a.subflow", problems[0].Path)
	require.Equal(t, "scopes are nested deeper than 3", problems[0].Msg)
}

func TestHandMadeDefinitions(t *testing.T) {
	_, problems := compile.Definition(&definition.Definition{}, flow.Limits{})
	require.Equal(t, definition.Problems{{Path: "start", Severity: definition.SeverityError, Msg: "no start"}}, problems)
	_, problems = compile.Definition(&definition.Definition{Start: "a",
		Nodes: map[string]*definition.Node{"a": {Service: "s", Params: json.RawMessage("{")}}}, flow.Limits{})
	require.EqualError(t, problems, "nodes.a.params: is not valid JSON")
}

// The files in testdata/topics are sent by clients of the graph routes, one for each topic.
func TestEveryTopicCompiles(t *testing.T) {
	files, err := filepath.Glob("../../flow/testdata/topics/*")
	require.NoError(t, err)
	require.Len(t, files, 17)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			// in the form in which the routes publish it
			text = append([]byte("profile: pocketflow\n"), text...)
			fromYAML, problems := compile.Text(text, flow.Limits{})
			require.NoError(t, problems.Err())
			asJSON, err := definition.YAMLToJSON(text)
			require.NoError(t, err)
			fromJSON, problems := compile.Text(asJSON, flow.Limits{})
			require.NoError(t, problems.Err())
			require.Equal(t, planJSON(t, fromYAML), planJSON(t, fromJSON))
		})
	}
}

// planJSON returns a plan as JSON. Params are decoded first, because the order of their keys may
// differ.
func planJSON(t *testing.T, p *flow.Plan) string {
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	text, err = json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func FuzzText(f *testing.F) {
	files, err := filepath.Glob("../../flow/testdata/topics/*")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
		if asJSON, err := definition.YAMLToJSON(text); err == nil {
			f.Add(asJSON)
		}
	}
	f.Add([]byte("start: &a [*a]\nnodes: {<<: [{x: 1}], ? {a: b} : c, 1: 0x1F, d: 2001-01-01, e: !!bool yes}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := definition.Parse(text)
		if d == nil {
			require.Error(t, err)
			return
		}
		plan, problems := compile.Definition(d, flow.Limits{})
		require.Equal(t, plan == nil, problems.Err() != nil)
		require.NotNil(t, compile.Lower(d, flow.Limits{}), "lowering refuses nothing")
		for _, p := range problems {
			if p.Path != "" {
				require.Positive(t, p.Line, p.String())
				require.Positive(t, p.Column, p.String())
			}
		}
		if asJSON, err := definition.YAMLToJSON(text); err == nil {
			require.True(t, json.Valid(asJSON), "%s", asJSON)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	text := flowtest.Chain(1000)
	asJSON, err := definition.YAMLToJSON(text)
	require.NoError(b, err)
	d, err := definition.Parse(text)
	require.NoError(b, err)
	for name, run := range map[string]func() error{
		"yaml":    func() error { _, p := compile.Text(text, flow.Limits{}); return p.Err() },
		"json":    func() error { _, p := compile.Text(asJSON, flow.Limits{}); return p.Err() },
		"compile": func() error { _, p := compile.Definition(d, flow.Limits{}); return p.Err() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, run())
			}
		})
	}
}

func TestADurationHasAUnitUnlessTheProfileSaysSeconds(t *testing.T) {
	const text = `
mode: dag
timeout: 60
defaults: {timeout: 5}
nodes:
  a: {service: s, timeout: 1, start_delay: 2, retry: {max_attempts: 2, delay: 3}}
  b: {service: s}
`
	_, problems := compile.Text([]byte(text), flow.Limits{})
	require.Len(t, problems, 5)
	for _, p := range problems {
		require.Equal(t, "a number has no unit here: write for example 30s or 250ms", p.Msg)
	}
	plan, problems := compile.Text([]byte("profile: ork"+text), flow.Limits{})
	require.Empty(t, problems)
	require.EqualValues(t, 60_000, plan.TimeoutMS)
	require.EqualValues(t, 2_000, plan.Root.Nodes["a"].Dag.StartDelayMS)
}

func TestAScriptInADagMayTakeAsLongAsItsNode(t *testing.T) {
	plan, problems := compile.Text([]byte(`
mode: dag
nodes:
  plain: {script: {cmd: x}}
  long: {script: {cmd: x}, timeout: 1m}
  own: {script: {cmd: x, timeout_ms: 5}, timeout: 1m}
`), flow.Limits{})
	require.Empty(t, problems)
	for key, ms := range map[string]int64{"plain": 0, "long": 60_000, "own": 5} {
		require.Equal(t, ms, plan.Root.Nodes[key].Exec.Script.TimeoutMS, key)
	}
}
