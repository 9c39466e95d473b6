package blackbox

import (
	"github.com/stretchr/testify/require"
)

const onlyP = "when: {if: {run: {plan: p}}}, " + once

func pgSkippedOptional(c *client) {
	f := c.pgflow("s: {"+onlyP+", skip_mode: optional}", "c: {depends_on: [s], "+once+"}",
		"x: {"+once+"}", "t: {"+onlyP+", skip_mode: optional}", "j: {depends_on: [x, s, t], "+once+"}")
	r := f.run(obj{"plan": "q"})
	r.is("started", "s skipped condition_unmet", "t skipped condition_unmet", "c started", "j created")
	got := f.poll("c", "x")
	has(c.T, `{"run":{"plan":"q"}}`, got["c"]["input"])
	f.done(got["c"], 1)
	f.done(got["x"], 2)
	has(c.T, `{"run":{"plan":"q"},"x":2}`, f.one("j")["input"])
}

func pgSkippedPropagates(c *client) {
	f := c.pgflow("s: {"+onlyP+"}", "c: {depends_on: [s], "+once+"}", "d: {depends_on: [c], "+once+"}", "x: {"+once+"}")
	r := f.run(obj{"plan": "q"})
	r.is("started", "s skipped condition_unmet", "c skipped dependency_skipped", "d skipped dependency_skipped", "x started")
	f.work("x", 1)
	r.ended("completed", `{"x":1}`)
	all := c.pgflow("s: {" + onlyP + "}").run(obj{})
	all.ended("completed", `null`)
}

func pgSkippedFails(c *client) {
	f := c.pgflow("s: {"+onlyP+", skip_mode: fail}", "c: {depends_on: [s], "+once+"}")
	r := f.run(obj{"plan": "q"})
	run, steps := r.split(r.first)
	r.matches(run, steps, "failed", "s failed skipped", "c created")
}

// truths holds patterns and inputs, and whether they match.
var truths = []struct {
	pattern, input string
	holds          bool
}{
	{`{a: {b: 1}}`, `{"a":{"b":1,"c":2},"d":3}`, true},
	{`{a: {b: 1}}`, `{"a":{"b":2}}`, false},
	{`{a: {b: 1}}`, `{"a":1}`, false},
	{`{a: [1, 2]}`, `{"a":[2,3,1]}`, true},
	{`{a: [1, 1]}`, `{"a":[1]}`, true},
	{`{a: [1, 4]}`, `{"a":[1,2]}`, false},
	{`{a: [{b: 1}]}`, `{"a":[{"c":1},{"b":1,"d":2}]}`, true},
	{`{a: x}`, `{"a":["x"]}`, false},
	{`{a: []}`, `{"a":[1]}`, true},
	{`{a: []}`, `{"a":{}}`, false},
	{`{a: 1}`, `{"a":1.0}`, true},
	{`{a: 1}`, `{"a":"1"}`, false},
	{`{a: {}}`, `{"a":{"x":1}}`, true},
	{`{a: {}}`, `{"a":[1]}`, false},
	{`{a: null}`, `{"a":null}`, true},
	{`{a: null}`, `{}`, false},
	{`{a: 1}`, `{}`, false},
	{`{}`, `{"a":1}`, true},
	{`{a: 1}`, `[1]`, false},
}

func pgPatterns(c *client) {
	for _, tt := range truths {
		f := c.pgflow("y: {when: {if: {run: "+tt.pattern+"}}, "+once+"}", "n: {when: {if_not: {run: "+tt.pattern+"}}, "+once+"}")
		r := f.run(raw(tt.input))
		started, skipped := "y", "n"
		if !tt.holds {
			started, skipped = "n", "y"
		}
		run, steps := r.split(r.first)
		require.Equal(c, []any{"started", "skipped"},
			[]any{steps[started]["status"], steps[skipped]["status"]}, "%s in %s", tt.pattern, tt.input)
		require.Equal(c, "started", run["status"])
	}
	both := c.pgflow("s: {when: {if: {run: {a: 1}}, if_not: {run: {b: 1}}}, " + once + "}")
	for input, status := range map[string]string{`{"a":1}`: "started", `{"a":1,"b":1}`: "completed",
		`{"b":1}`: "completed", `{}`: "completed"} {
		require.Equal(c, status, both.run(raw(input)).first["run"].(obj)["status"], input)
	}
}

func pgFallback(c *client) {
	f := c.pgflow("s: {when: {if: {run: {go: true}}}, skip_mode: optional, "+once+"}",
		"fb: {depends_on: [s], when: {if_not: {s: {}}}, "+once+"}")
	f.run(obj{}).is("started", "s skipped condition_unmet", "fb started")
	f.one("fb")
	for output, want := range map[string]string{`{"x":1}`: "fb skipped condition_unmet", `5`: "fb started"} {
		r := f.run(obj{"go": true})
		f.done(f.one("s"), raw(output))
		r.is(map[bool]string{true: "completed", false: "started"}[output != `5`], want)
		if output == `5` {
			f.one("fb")
		}
	}
}

const branchB = "B: {kind: branch, depends_on: [a], skip_mode: optional, "

func pgGateSkipsTheBranch(c *client) {
	f := c.pgflow(nodeA, branchB+"when: {if: {a: {ok: true}}, cond: {service: cond}}, flow: {nodes: {s: {}, t: {depends_on: [s]}}}}",
		"after: {depends_on: [B], "+once+"}")
	r := f.run(obj{})
	f.work("a", obj{"ok": false})
	r.is("started", "gate:B skipped condition_unmet", "cond:B skipped dependency_skipped", "B/s skipped dependency_skipped",
		"B/t skipped dependency_skipped", "B skipped dependency_skipped", "after started")
	has(c.T, `{"run":{}}`, f.one("after")["input"])
}

func pgCond(c *client) {
	define := func() *pgFlow {
		return c.pgflow(nodeA, branchB+"when: {cond: {service: cond}}, "+once+
			", flow: {nodes: {s: {"+once+"}}}}", "after: {depends_on: [B], "+once+"}")
	}
	begin := func() (*pgRun, obj) {
		f := define()
		r := f.run(obj{})
		f.work("a", 1)
		task := f.one("cond:B")
		has(c.T, `{"run":{},"a":1}`, task["input"])
		return r, task
	}
	r, cond := begin()
	r.done(cond, true)
	r.is("started", "cond:B skipped condition_unmet", "B/s skipped dependency_skipped", "B skipped dependency_skipped", "after started")
	r, cond = begin()
	r.done(cond, false)
	r.is("started", "cond:B completed", "B/s started", "B created")
	r, cond = begin()
	r.done(cond, "x")
	r.is("failed", "cond:B failed condition_error")
	r, cond = begin()
	r.fail(cond, "no")
	r.is("failed", "cond:B failed condition_error")
}

func pgInlineBranch(c *client) {
	f := c.pgflow(nodeA, "B: {kind: branch, depends_on: [a], flow: {nodes: {s: {"+once+"}, t: {depends_on: [s], "+once+"}}}}")
	r := f.run(obj{"n": 1})
	f.work("a", 5)
	s := f.one("B/s")
	has(c.T, `{"run":{"n":1},"a":5}`, s["input"])
	f.done(s, 6)
	t := f.one("B/t")
	has(c.T, `{"run":{"n":1},"s":6}`, t["input"])
	f.done(t, 7)
	r.ended("completed", `{"B":{"t":7}}`)
}

func pgEmbedded(c *client) {
	inner := c.pgflow("first: {"+once+"}", "second: {depends_on: [first], "+once+"}")
	f := c.pgflow(nodeA, "B: {kind: branch, depends_on: [a], prep: {service: prep}, flow: "+inner.slug+"}")
	r := f.run(obj{"n": 1})
	f.work("a", 5)
	prep := f.one("prep:B")
	has(c.T, `{"run":{"n":1},"a":5}`, prep["input"])
	f.done(prep, obj{"k": 1})
	first := f.one("B/first")
	has(c.T, `{"run":{"k":1}}`, first["input"])
	f.done(first, 2)
	second := f.one("B/second")
	has(c.T, `{"run":{"k":1},"first":2}`, second["input"])
	f.done(second, 3)
	r.ended("completed", `{"B":{"second":3}}`)
}

func pgBranchNames(c *client) {
	inner := c.pgflow("x: {}")
	c.notRegistered("", "B: {kind: branch, flow: "+inner.slug+"}")
	f := c.pgflow("A: {kind: branch, flow: {nodes: {B: {kind: branch, when: {cond: {service: " +
		"c}}, prep: {service: p}, flow: {nodes: {f: {each: {items: {service: i}}}}}}}}}")
	_, steps := f.run(obj{}).states()
	for _, slug := range []string{"gate:A", "A/gate:B", "A/cond:B", "A/prep:B", "A/B/prep:f", "A/B/f", "A/B", "A"} {
		require.Contains(c, steps, slug)
	}
	require.Len(c, steps, 8)
	require.Equal(c, []any{nil, 0.0}, []any{steps["gate:A"]["route"], steps["gate:A"]["remaining_tasks"]}, "it has no task")
}

func pgBranchInOrder(c *client) {
	f := c.pgflow(nodeA, "B: {kind: branch, depends_on: [a], when: {if: {a: 1}, cond: {service: "+
		"c}}, prep: {service: p}, flow: {nodes: {f: {each: {items: {service: i}}}}}}")
	r := f.run(obj{})
	f.work("a", 1)
	for _, step := range []struct {
		slug   string
		result any
	}{{"cond:B", false}, {"prep:B", obj{"k": 1}}, {"B/prep:f", []int{1}}, {"B/f", "x"}} {
		f.work(step.slug, step.result) // also requires that nothing else is queued
	}
	r.ended("completed", `{"B":{"f":["x"]}}`)
}

func pgOutput(c *client) {
	f := c.pgflow("x: {"+once+"}", "y: {"+onlyP+", skip_mode: optional}", "out: {kind: output, service: out, "+once+"}")
	r := f.run(obj{"plan": "p"})
	got := f.poll("x", "y")
	f.done(got["x"], 1)
	f.done(got["y"], 2)
	out := f.one("output")
	has(c.T, `{"run":{"plan":"p"},"x":1,"y":2}`, out["input"])
	f.done(out, "ok")
	r.ended("completed", `"ok"`)
	r = f.run(obj{"plan": "q"})
	f.work("x", 1)
	out = f.one("output")
	has(c.T, `{"run":{"plan":"q"},"x":1}`, out["input"])
	f.done(out, "ok")
	r.ended("completed", `"ok"`)
}
