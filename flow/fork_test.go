package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// planOf compiles a definition in the flow style of YAML.
func planOf(t require.TestingT, definition string) *flow.Plan {
	return flowtest.Plan(t, "# flow\n"+strings.ReplaceAll(definition, "\t", " "))
}

// history runs a definition to its end.
func history(t require.TestingT, definition, params string, hands func(flow.Job) flow.Report) *table {
	tb := newTable(t, planOf(t, definition))
	tb.hands = hands
	_, err := tb.do(flow.Start{Version: "v1", Params: json.RawMessage(params)})
	require.NoError(t, err)
	require.True(t, tb.drain())
	return tb
}

// until returns the events of the first rows.
func (tb *table) until(rows int) (events []flow.Event) {
	for _, row := range tb.rows[:rows] {
		list, err := flow.DecodeEvents(row)
		require.NoError(tb.t, err)
		events = append(events, list...)
	}
	return events
}

// forked returns a task that continues the history of another one.
func (tb *table) forked(t require.TestingT, plan *flow.Plan, from, params string) (*table, flow.ForkPlan) {
	fork, err := flow.PlanFork("task-1", tb.events, tb.state.Plan, plan, flow.ForkPoint{Node: from})
	require.NoError(t, err)
	next := newTable(t, plan)
	next.env, next.hands = tb.env, tb.hands
	next.env.Now += 1000
	if params == "" {
		params = string(tb.state.Params)
	}
	_, err = next.do(flow.Start{Version: "v2", Params: json.RawMessage(params), Fork: &fork.Fork})
	require.NoError(t, err)
	return next, fork
}

// did records the services of all jobs that are carried out from now on, in order.
func did(tb *table) *[]string {
	services, hands := []string{}, tb.hands
	tb.hands = func(j flow.Job) flow.Report {
		services = append(services, j.Exec.Service)
		return hands(j)
	}
	return &services
}

func stepsOf(list []flow.ForkStep) (texts []string) {
	for _, s := range list {
		text := s.Step()
		if s.Why != "" {
			text += " " + string(s.Why)
		}
		texts = append(texts, text)
	}
	return texts
}

const threeSteps = `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}},
	b: {service: list, post: {output_key: b}}, c: {service: boom, post: {output_key: c}}},
	edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]}`

func TestAForkKeepsEqualStepsAndRepeatsChangedOnes(t *testing.T) {
	for name, c := range map[string]struct {
		definition, from, params string
		keeps, again, runs       []string
		result                   string
	}{
		"the step that failed": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}},
				b: {service: list, post: {output_key: b}}, c: {service: yes, post: {output_key: c}}},
				edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]}`,
			keeps: []string{"a", "b"}, again: []string{"c changed"}, runs: []string{"yes"}, result: `{"a":3,"b":[1,{"x":2},null],"c":true}`,
		},
		"a step before": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}},
				b: {service: no, post: {output_key: b}}, c: {service: yes, post: {output_key: c}}},
				edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]}`,
			keeps: []string{"a"}, again: []string{"b changed", "c downstream"},
			runs: []string{"no", "yes"}, result: `{"a":3,"b":false,"c":true}`,
		},
		"another order": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}},
				b: {service: list, post: {output_key: b}}},
				edges: [{from: a, action: default, to: b}]}`,
			keeps: []string{"a", "b"}, again: []string{"c downstream"}, result: `{"a":3,"b":[1,{"x":2},null]}`,
		},
		"a step between": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}}, new: {service: no, post: {output_key: new}},
				b: {service: list, post: {output_key: b}}, c: {service: yes}},
				edges: [{from: a, action: default, to: new}, {from: new, action: default, to: b}, {from: b, action: default, to: c}]}`,
			keeps: []string{"a"}, again: []string{"b downstream", "c downstream"},
			runs: []string{"no", "list", "yes"}, result: `{"a":3,"new":false,"b":[1,{"x":2},null]}`,
		},
		"retries, and what to do about a failure": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, retry: {max_attempts: 5, delay: 1s}, prep: {input_key: $params.val}, post: {output_key: a}},
				b: {service: list, timeout_ms: 1000, post: {output_key: b}}, c: {service: boom, post: {output_key: c}}, d: {service: echo, prep: {input_key: $params.val}, post: {output_key: d}}},
				edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}, {from: c, action: error, to: d}]}`,
			keeps: []string{"a", "b"}, again: []string{"c failed"}, runs: []string{"boom", "echo"},
			result: `{"a":3,"b":[1,{"x":2},null],"d":3}`,
		},
		"from a node on, with other params": {
			definition: `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}, post: {output_key: a}},
				b: {service: list, post: {output_key: b}}, c: {service: echo, prep: {input_key: $params.val}, post: {output_key: c}}},
				edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]}`,
			from: "b", params: `{"val":7}`,
			keeps: []string{"a"}, again: []string{"b requested", "c downstream"},
			runs: []string{"list", "echo"}, result: `{"a":3,"b":[1,{"x":2},null],"c":7}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := history(t, threeSteps, `{"val":3}`, carryOut)
			require.Equal(t, flow.TaskFailed, before.state.Status)
			next, fork := before.forked(t, planOf(t, c.definition), c.from, c.params)
			require.Equal(t, c.keeps, stepsOf(fork.Keeps))
			require.Equal(t, c.again, stepsOf(fork.Again))
			require.Equal(t, "task-1", next.state.Origin)
			services := did(next)
			require.True(t, next.drain())
			require.Equal(t, flow.TaskCompleted, next.state.Status, next.state.Error)
			require.ElementsMatch(t, c.runs, *services)
			require.JSONEq(t, c.result, string(next.state.Result()))
		})
	}
}

func TestAForkOfADagRepeatsChangedNodesAndTheirDependents(t *testing.T) {
	const before = `{mode: dag, nodes: {a: {service: list}, b: {service: list}, left: {service: yes, depends_on: [a]}, right: {service: no, depends_on: [b]},
		end: {service: boom, depends_on: [left, right]}}}`
	const after = `{mode: dag, nodes: {b: {service: yes}, a: {service: list}, left: {service: yes, depends_on: [a]}, right: {service: no, depends_on: [b]},
		more: {service: list, depends_on: [left]}, end: {service: yes, depends_on: [left, right]}}}`
	old := history(t, before, `{}`, carryOut)
	require.Equal(t, flow.TaskFailed, old.state.Status)
	next, fork := old.forked(t, planOf(t, after), "", "")
	require.ElementsMatch(t, []string{"a", "left"}, stepsOf(fork.Keeps))
	require.ElementsMatch(t, []string{"b changed", "right downstream", "end downstream"}, stepsOf(fork.Again))
	services := did(next)
	require.True(t, next.drain())
	require.Equal(t, flow.TaskCompleted, next.state.Status, next.state.Error)
	require.ElementsMatch(t, []string{"yes", "no", "list", "yes"}, *services)
}

func TestAForkKeepsSubflowStepsAndCompletedUnits(t *testing.T) {
	const before = `{start: sub, on_error: fail, nodes: {sub: {kind: subflow, post: {output_key: out}, subflow: {start: x, nodes: {x: {service: list, post: {output_key: x}}, y: {service: list}, z: {service: boom}},
		edges: [{from: x, action: default, to: y}, {from: y, action: default, to: z}]}}}}`
	const after = `{start: sub, on_error: fail, nodes: {sub: {kind: subflow, post: {output_key: out}, subflow: {start: x, nodes: {x: {service: list, post: {output_key: x}}, y: {service: no}, z: {service: yes}},
		edges: [{from: x, action: default, to: y}, {from: y, action: default, to: z}]}}}}`
	next, fork := history(t, before, `{}`, carryOut).forked(t, planOf(t, after), "", "")
	require.Equal(t, []string{"sub/x"}, stepsOf(fork.Keeps))
	require.Equal(t, []string{"sub/y changed", "sub/z downstream", "sub downstream"}, stepsOf(fork.Again))
	services := did(next)
	require.True(t, next.drain())
	require.Equal(t, []string{"no", "yes"}, *services)
	require.JSONEq(t, `{"out":{"x":[1,{"x":2},null]}}`, string(next.state.Result()))

	const each = `{start: each, on_error: fail, nodes: {each: {kind: foreach, service: odd, parallel_mode: concurrent, prep: {input_key: $params.list}}, more: {service: yes}},
		edges: [{from: each, action: default, to: more}]}`
	old := history(t, each, `{"list":[1,2,3,4]}`, carryOut)
	old.hands = func(j flow.Job) flow.Report {
		return flow.Report{Address: j.Address, Output: json.RawMessage(`"late"`)}
	}
	next, _ = old.forked(t, old.state.Plan, "", "")
	services = did(next)
	require.True(t, next.drain())
	require.Equal(t, []string{"odd", "odd", "yes"}, *services, "the two that failed, and what follows")
}

func TestAForkRepeatsUndoneSteps(t *testing.T) {
	const definition = `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.val}}, b: {service: list, compensate: undo}, c: {service: boom}, undo: {service: yes}},
		edges: [{from: a, action: default, to: b}, {from: b, action: default, to: c}]}`
	old := history(t, definition, `{"val":1}`, carryOut)
	next, fork := old.forked(t, old.state.Plan, "", "")
	require.Equal(t, []string{"a"}, stepsOf(fork.Keeps))
	require.Equal(t, []string{"b compensated", "c downstream"}, stepsOf(fork.Again))
	services := did(next)
	require.True(t, next.drain())
	require.Equal(t, []string{"list", "boom", "yes"}, *services)
}

func TestAForkRepeatsAllUnitsOfAPartlyUndoneStep(t *testing.T) {
	const definition = `{start: a, on_error: fail, nodes: {a: {service: echo, prep: {input_key: $params.list}, compensate: undo},
		f: {kind: foreach, failure_strategy: fail_fast, service: echo, prep: {input_key: $params.list}, compensate: undo},
		undo: {service: yes}}, edges: [{from: a, to: f}]}`
	old := history(t, definition, `{"list":[1,2,3,4]}`, func(j flow.Job) flow.Report {
		if j.Branch == "2" {
			return flow.Report{Address: j.Address, Error: "boom"}
		}
		return carryOut(j)
	})
	require.Equal(t, 3, undoneUnits(old))
	next, fork := old.forked(t, old.state.Plan, "", "")
	require.Empty(t, fork.Keeps)
	require.Equal(t, []string{"a compensated", "f downstream"}, stepsOf(fork.Again))
	require.True(t, next.drain())
	require.Equal(t, 3, undoneUnits(next), "its own alone")
}

func TestAForkRepeatsAnUndoneBranch(t *testing.T) {
	const definition = `{mode: dag, nodes: {a: {service: echo}, B: {kind: branch, depends_on: [a], compensate: undo, flow: {nodes: {x: {service: list}, y: {service: yes, depends_on: [x]}}}},
		z: {service: boom, depends_on: [B]}, undo: {service: "no"}}}`
	old := history(t, definition, `{}`, carryOut)
	next, fork := old.forked(t, old.state.Plan, "", "")
	require.Equal(t, []string{"a", "gate:B"}, stepsOf(fork.Keeps))
	require.Equal(t, []string{"B/x compensated", "B/y compensated", "B compensated", "z downstream"}, stepsOf(fork.Again))
	services := did(next)
	require.True(t, next.drain())
	require.Equal(t, []string{"list", "yes", "boom", "no"}, *services)
}

// undoneUnits returns the number of units that a task has undone.
func undoneUnits(tb *table) (count int) {
	for _, e := range tb.events {
		if e.Type == flow.StepEntered && strings.HasPrefix(e.Scope, "~") {
			count++
		}
	}
	return count
}

func TestImpossibleForksAreRejected(t *testing.T) {
	running := newTable(t, planOf(t, threeSteps))
	_, err := running.do(flow.Start{Params: json.RawMessage(`{"val":1}`)})
	require.NoError(t, err)
	failed := history(t, threeSteps, `{"val":3}`, carryOut)
	done := history(t, `{start: a, nodes: {a: {service: yes}, b: {service: yes}}, edges: `+
		`[{from: a, action: other, to: b}]}`, `{}`, carryOut)
	for text, c := range map[string]struct {
		tb         *table
		definition string
		from       string
	}{
		"the task is running: cancel it first":           {tb: running},
		"the task is completed":                          {tb: done},
		"the flow has no node nowhere":                   {tb: failed, from: "nowhere"},
		"the task was never at node b":                   {tb: done, from: "b"},
		"one version is a graph and the other one a dag": {tb: failed, definition: `{mode: dag, nodes: {a: {service: yes}}}`},
	} {
		plan := c.tb.state.Plan
		if c.definition != "" {
			plan = planOf(t, c.definition)
		}
		_, err := flow.PlanFork("task-1", c.tb.events, c.tb.state.Plan, plan, flow.ForkPoint{Node: c.from})
		require.ErrorContains(t, err, text)
		require.NotEmpty(t, flow.ErrorKindOf(err))
	}
}

// TestAForkOfABeginningContinuesFromThere cuts a history after each of its rows.
func TestAForkOfABeginningContinuesFromThere(t *testing.T) {
	tb := history(t, threeSteps, `{"val":3}`, carryOut)
	for n := range tb.rows {
		events := tb.until(n + 1)
		ends := 0
		for _, e := range events {
			if e.Type == flow.StepEnded && e.Error == "" {
				ends++
			}
		}
		fork, err := flow.PlanFork("task-1", events, tb.state.Plan, tb.state.Plan, flow.ForkPoint{Part: true})
		require.NoError(t, err)
		require.Len(t, fork.Keeps, ends)
		next := newTable(t, tb.state.Plan)
		next.env, next.hands = tb.env, tb.hands
		services := did(next)
		_, err = next.do(flow.Start{Version: "v2", Params: tb.state.Params, Fork: &fork.Fork})
		require.NoError(t, err)
		require.True(t, next.drain())
		require.Equal(t, tb.state.Status, next.state.Status)
		require.Equal(t, []string{"echo", "list", "boom"}[ends:], *services)
	}
}

// TestAnyForkComesToItsEnd forks random histories with the same definition and with another one.
// The new task keeps all promises. With the same definition and nothing undone, it ends like a
// retry of the task.
func TestAnyForkComesToItsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := flowtest.Rapid{T: rt}
		tb := newTable(rt, flowtest.Plan(rt, flowtest.RandomDefinition(d)))
		tb.env.Limits = flow.Limits{Steps: 60, Events: 20, Value: 1_000, Shared: 3_000, Levels: 6, Deliveries: 3, Depth: 2, Units: 6}
		_, err := tb.ask("r0", flow.Start{Version: "v", Params: paramsFor(tb.state.Plan)})
		require.NoError(rt, err)
		for i := range flowtest.Between(d, "commands", 0, 30) {
			tb.happen(d, i)
		}
		tb.crash("last", 0)
		require.True(rt, tb.drain(), "the task is stuck: %s", stateText(tb.state))
		plan, from := tb.state.Plan, ""
		if flowtest.Chance(d, 50) {
			plan = flowtest.Plan(rt, flowtest.RandomDefinition(d))
		}
		if flowtest.Chance(d, 50) {
			from = flowtest.OneOf(d, "from", "a", "b", "c")
		}
		events, at := tb.events, flow.ForkPoint{Node: from}
		if flowtest.Chance(d, 30) {
			events, at.Part = tb.until(flowtest.Between(d, "rows", 1, len(tb.rows))), true
		}
		fork, err := flow.PlanFork("task-1", events, tb.state.Plan, plan, at)
		if err != nil {
			require.NotEmpty(rt, flow.ErrorKindOf(err))
			return
		}
		next := newTable(rt, plan)
		next.env = tb.env
		sets := plan.Root.Mode() == flow.ModeGraph && flowtest.Chance(d, 30)
		if sets {
			fork.Shared = map[string]json.RawMessage{"set": json.RawMessage("[1]"), "a": json.RawMessage("7")}
		}
		_, err = next.do(flow.Start{Version: "v2", Params: paramsFor(plan), Fork: &fork.Fork})
		if err != nil {
			require.Equal(rt, flow.Invalid, flow.ErrorKindOf(err))
			return
		}
		require.True(rt, next.drain(), "the fork is stuck: %s", stateText(next.state))
		require.NoError(rt, orderedEvents(next.events))
		if sets {
			require.JSONEq(rt, "[1]", string(next.state.Root.Shared["set"]))
		}
		if sets || plan != tb.state.Plan || from != "" || at.Part || tb.state.Status != flow.TaskFailed || tb.state.Closing != nil {
			return
		}
		_, err = tb.do(flow.RetryTask{})
		require.NoError(rt, err)
		require.True(rt, tb.drain())
		require.Equal(rt, tb.state.Status, next.state.Status, "%s\n%s", stateText(tb.state), stateText(next.state))
		require.JSONEq(rt, string(tb.state.Result()), string(next.state.Result()))
	})
}

func TestAForkFromAnApprovalAsksAgain(t *testing.T) {
	for mode, definition := range map[string]string{
		"graph": `{start: a, nodes: {a: {kind: approval, params: {approval_key: $shared.ok}}, ` +
			`b: {kind: timer, params: {delay_ms: 900000}}}, edges: [{from: a, action: approved, to: b}]}`,
		"dag": `{mode: dag, nodes: {a: {kind: approval, params: {approval_key: $shared.ok}}, ` +
			`b: {kind: timer, params: {delay_ms: 900000}, depends_on: [a]}}}`,
	} {
		tb := newTable(t, planOf(t, definition))
		_, err := tb.do(flow.Start{Version: "v1"})
		require.NoError(t, err)
		_, err = tb.do(flow.Answer{Address: tb.state.Approvals()[0].Address, Action: "approved", By: "ada"})
		require.NoError(t, err)
		require.Empty(t, tb.state.Approvals())
		_, err = tb.do(flow.Cancel{})
		require.NoError(t, err)
		next, _ := tb.forked(t, tb.state.Plan, "a", "")
		require.Len(t, next.state.Approvals(), 1, mode)
	}
}

func TestAForkRepeatsStepsWithOtherResults(t *testing.T) {
	const graph = `{start: a, on_error: fail, nodes: {a: %s, z: {service: boom}}, edges: [{from: a, action: default, to: z}]}`
	const dag = `{mode: dag, nodes: {%s, z: {service: boom, depends_on: [a]}}}`
	for name, c := range map[string]struct {
		flow, before, after string
		again               []string
		result              string
	}{
		"an output of another type": {dag, `a: {service: list}`,
			`a: {service: list, output_type: text}`, []string{"a changed", "z downstream"}, `null`},
		"a choice that takes what is missing for null": {graph,
			`{kind: subflow, post: {output_key: o}, flow: {on_missing: coerce, result: ` +
				`"$shared.o", start: c, nodes: {c: {kind: choice, choice_cases: [{action: no, ` +
				`expr: {eq: [$params.none, null]}}]}, n: {service: no, post: {output_key: o}}}, ` +
				`edges: [{from: c, action: no, to: n}]}}`,
			`{kind: subflow, post: {output_key: o}, flow: {on_missing: fail, result: ` +
				`"$shared.o", start: c, nodes: {c: {kind: choice, choice_cases: [{action: no, ` +
				`expr: {eq: [$params.none, null]}}]}, n: {service: no, post: {output_key: o}}}, ` +
				`edges: [{from: c, action: no, to: n}]}}`,
			[]string{"a/c changed", "a/n downstream", "a downstream", "z downstream"}, `{"o":null}`},
		"defaults of a flow inside": {graph,
			`{kind: subflow, post: {output_key: o}, flow: {inputs: {k: int = 1}, start: x, ` +
				`nodes: {x: {service: echo, prep: {input_key: $params.k}, post: {output_key: x}}}}}`,
			`{kind: subflow, post: {output_key: o}, flow: {inputs: {k: int = 2}, start: x, ` +
				`nodes: {x: {service: echo, prep: {input_key: $params.k}, post: {output_key: x}}}}}`,
			[]string{"a changed", "a/x downstream", "z downstream"}, `{"o":{"x":2}}`},
		"defaults of a branch": {dag, `a: {kind: branch, prep: {input_map: {j: $run.val}}, ` +
			`flow: {inputs: {j: int, k: int = 1}, nodes: {x: {service: echo}}}}`,
			`a: {kind: branch, prep: {input_map: {j: $run.val}}, flow: {inputs: {j: int, k: int ` +
				`= 2}, nodes: {x: {service: echo}}}}`, []string{"prep:a changed", "a/x downstream",
				"a downstream", "z downstream"}, `null`},
		"what an input is called": {"{input_shape: merged, " + dag[1:],
			`b: {service: list, name: one}, a: {service: echo, depends_on: [b]}`,
			`b: {service: list, name: two}, a: {service: echo, depends_on: [b]}`,
			[]string{"a changed", "z downstream"}, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			old := history(t, fmt.Sprintf(c.flow, c.before), `{"val":3}`, carryOut)
			next, fork := old.forked(t, planOf(t, fmt.Sprintf(c.flow, c.after)), "", "")
			require.ElementsMatch(t, c.again, stepsOf(fork.Again), "%s", old.state.Error)
			require.True(t, next.drain())
			require.JSONEq(t, c.result, string(next.state.Result()))
		})
	}
}

func TestAForkRunsNewNodesOfAnEndedSubflow(t *testing.T) {
	const graph = `{start: sub, nodes: {sub: {kind: subflow, post: {output_key: out}, subflow: ` +
		`{start: x, nodes: {x: {service: yes, post: {output_key: x}}%s}%s}}, z: {service: ` +
		`boom}}, edges: [{from: sub, action: default, to: z}]}`
	const dag = `{start: sub, nodes: {sub: {kind: subflow, flow: {mode: dag, nodes: {x: ` +
		`{service: yes}%s}}}, z: {service: boom}}, edges: [{from: sub, action: default, to: z}]}`
	for name, c := range map[string]struct{ before, after string }{
		"graph": {fmt.Sprintf(graph, "", ""),
			fmt.Sprintf(graph, ", y: {service: no, post: {output_key: y}}",
				", edges: [{from: x, action: default, to: y}]")},
		"dag": {fmt.Sprintf(dag, ""), fmt.Sprintf(dag, ", y: {service: no, depends_on: [x]}")},
	} {
		t.Run(name, func(t *testing.T) {
			next, fork := history(t, c.before, `{}`, carryOut).forked(t, planOf(t, c.after), "", "")
			require.Equal(t, []string{"sub/x"}, stepsOf(fork.Keeps))
			require.Equal(t, []string{"sub downstream", "z downstream"}, stepsOf(fork.Again))
			services := did(next)
			require.True(t, next.drain())
			require.Equal(t, []string{"no", "boom"}, *services)
		})
	}
}

func TestAForkWaitsAgainForTheSignalOfARepeatedStep(t *testing.T) {
	for mode, definition := range map[string]string{
		"graph": `{start: a, nodes: {a: {kind: wait_event, params: {signal_key: $shared.ok}}, ` +
			`b: {service: boom}}, on_error: fail, edges: [{from: a, action: default, to: b}]}`,
		"dag": `{mode: dag, nodes: {a: {kind: wait_event, params: {signal_key: $shared.ok}}, b: ` +
			`{service: boom, depends_on: [a]}}}`,
	} {
		tb := newTable(t, planOf(t, definition))
		_, err := tb.do(flow.Start{Version: "v1"})
		require.NoError(t, err)
		_, err = tb.do(flow.Signal{Key: "ok", Value: json.RawMessage(`1`)})
		require.NoError(t, err)
		tb.work()
		require.Equal(t, flow.TaskFailed, tb.state.Status)
		next, fork := tb.forked(t, tb.state.Plan, "a", "")
		require.Equal(t, []string{"a requested", "b downstream"}, stepsOf(fork.Again), mode)
		require.Equal(t, flow.StepStarted, next.stepsOf("")["a"].Status, mode)
	}
}

func TestUnitsAreKeptOnlyForEqualItems(t *testing.T) {
	for name, c := range map[string]struct{ definition, params, result string }{
		"graph": {`{start: each, on_error: fail, nodes: {each: {kind: foreach, ` +
			`service: odd, parallel_mode: concurrent, prep: {input_key: $params.list}, post: ` +
			`{output_key: o}}}}`, `{"list":[10,20]}`, `{"o":[10,20]}`},
		"dag": {`{mode: dag, nodes: {f: {kind: fanout, service: odd, each: {items: ` +
			`$run.list}}}}`, `{"list":[10,20]}`, `{"f":[10,20]}`},
		"dag in a graph": {`{start: s, on_error: fail, nodes: {s: {kind: subflow, post: ` +
			`{output_key: o}, flow: {mode: dag, nodes: {f: {kind: fanout, service: odd, each: ` +
			`{items: $run.list}}}}}}}`, `{"list":[10,20]}`, `{"o":{"f":[10,20]}}`},
		"dag, same list": {`{mode: dag, nodes: {f: {kind: fanout, service: odd, each: {items: ` +
			`$run.list}}}}`, `{"list":[1,2],"more":1}`, `{"f":["late",2]}`},
	} {
		t.Run(name, func(t *testing.T) {
			old := history(t, c.definition, `{"list":[1,2]}`, carryOut)
			require.Equal(t, flow.TaskFailed, old.state.Status)
			next, _ := old.forked(t, old.state.Plan, "", c.params)
			if name == "dag, same list" {
				next.hands = func(j flow.Job) flow.Report {
					return flow.Report{Address: j.Address, Output: json.RawMessage(`"late"`)}
				}
			}
			require.True(t, next.drain())
			require.JSONEq(t, c.result, string(next.state.Result()))
		})
	}
}
