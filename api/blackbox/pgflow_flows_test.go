package blackbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
)

func pgNoHandlerForDirect(c *client) {
	require.Contains(c, c.notRegistered("", "d: {route: direct, service: s}"), "direct")
}

func pgRefused(c *client) {
	for _, tt := range []struct {
		nodes []string
		rule  string // as the error names it
	}{
		{[]string{"output: {}"}, "nodes.output: the key output is reserved"},
		{[]string{"run: {}"}, "nodes.run: the key run is reserved"},
		{[]string{"1a: {}"}, "begins with a letter or _ and has up to 128 letters, digits and _"},
		{[]string{"a-b: {}"}, "begins with a letter or _ and has up to 128 letters, digits and _"},
		{[]string{"a/b: {}"}, "holds / or :"},
		{[]string{"'gate:b': {}"}, "holds / or :"},
		{[]string{strings.Repeat("a", 129) + ": {}"}, "begins with a letter or _ and has up to 128 letters, digits and _"},
		{[]string{"a: {depends_on: [b]}", "b: {depends_on: [a]}"}, "nodes wait for each other in a circle: a → b → a"},
		{[]string{"a: {depends_on: [a]}"}, "nodes.a.depends_on[0]: a node cannot wait for itself"},
		{[]string{"a: {depends_on: [b]}"}, `nodes.a.depends_on[0]: unknown node "b"`},
		{[]string{"a: {}", "b: {depends_on: [a, a]}"}, `nodes.b.depends_on[1]: "a" is there twice`},
		{[]string{"a: {}", "o: {kind: output}", "p: {kind: output}"}, "nodes.p: a scope has one output at most"},
		{[]string{"a: {}", "o: {kind: output, depends_on: [a]}"},
			"nodes.o.depends_on: has no effect on this output: an output waits for all leaves"},
		{[]string{"a: {}", "b: {}", "m: {kind: map, depends_on: [a, b]}"}, "nodes.m.depends_on: a map works on one list"},
		{[]string{"f: {kind: fanout}"}, "nodes.f.each.items: is missing"},
		{[]string{"a: {when: {if: [1]}}"}, "nodes.a.when.if: a pattern is an object"},
		{[]string{"a: {when: {if: {}}, skip_mode: nope}"}, `nodes.a.skip_mode: unknown word "nope"`},
		{[]string{"a: {when: {if: {}}, skip_mode: fail, whenUnmet: fail}"}, "nodes.a.whenUnmet: says the same as skip_mode"},
		{[]string{"a: {whenUnmet: skip}"}, "nodes.a.whenUnmet: has no effect on this executor: without a condition"},
		{[]string{"a: {}", "B: {kind: branch, flow: {nodes: {s: {depends_on: [a]}}}}"},
			`nodes.B.flow.nodes.s.depends_on[0]: unknown node "a"`},
	} {
		require.Contains(c, c.notRegistered("", tt.nodes...), tt.rule, "%v", tt.nodes)
	}
	twice := `{"profile":"pgflow","nodes":{"a":{},"a":{}}}`
	status, answer := c.call("POST", "/flows/"+strings.ReplaceAll(unique("twice"), "-", "_")+"/ensure", obj{"definition": raw(twice)})
	require.Equal(c, 400, status, "%v", answer)
	require.Contains(c, answer.(obj)["message"], "the key is there twice")
	for _, slug := range []string{"run", "output", "1a-B", "1flow", "test-slug", "a.b", strings.Repeat("a", 129)} {
		status, answer := c.call("POST", "/flows/"+slug+"/ensure", obj{"definition": pgDefinition(c, "", "a: {}")})
		require.Equal(c, 400, status, "%s: %v", slug, answer)
	}
}

// pgEnsure creates several versions of a flow.
func pgEnsure(c *client) {
	f := c.pgflow(nodeA, nodeB)
	ensure := func(body obj) obj {
		status, answer := c.call("POST", "/flows/"+f.slug+"/ensure", body)
		require.Equal(c, 200, status, "%v", answer)
		return answer.(obj)
	}
	same := ensure(obj{"definition": pgDefinition(c, "", nodeA, nodeB)})
	require.Equal(c, []any{"verified", 1.0, []any{}}, []any{same["status"], same["version"], same["differences"]})
	require.Equal(c, "verified", ensure(obj{"definition": pgDefinition(c, "", "a: {timeout: 5}", nodeB)})["status"])
	old := f.run(obj{})
	other := obj{"definition": pgDefinition(c, "", nodeA, "c: {depends_on: [a], "+once+"}"), "allow_data_loss": false}
	refused := ensure(other)
	require.Equal(c, []any{"mismatch", []any{"step b is gone", "step c is new"}}, []any{refused["status"], refused["differences"]})
	delete(other, "allow_data_loss")
	changed := ensure(other)
	require.Equal(c, []any{"recompiled", []any{"step b is gone", "step c is new"}}, []any{changed["status"], changed["differences"]})
	old.is("started", "b created")
	f.run(obj{}).is("started", "c created")
	for _, task := range f.all(2) {
		f.done(task, 1)
	}
	f.poll("b", "c")

	slug := strings.ReplaceAll(unique("named"), "-", "_")
	status, answer := c.call("POST", "/flows", obj{"slug": slug, "definition": "nodes:\n  a: {}\n"})
	require.Equal(c, []any{200, "compiled"}, []any{status, answer.(obj)["status"]})
}

// pgEnsureAtOnce ensures the same flow many times concurrently: one request creates it, and one
// changes it.
func pgEnsureAtOnce(c *client) {
	slug := strings.ReplaceAll(unique("at-once"), "-", "_")
	ensureAll := func(definitions ...json.RawMessage) map[string]int {
		answers := make(chan obj, 24)
		var all sync.WaitGroup
		for i := range cap(answers) {
			all.Go(func() {
				_, _, body := c.send("POST", "/flows/"+slug+"/ensure", obj{"definition": definitions[i%len(definitions)]})
				var answer obj
				_ = json.Unmarshal(body, &answer)
				answers <- answer
			})
		}
		all.Wait()
		close(answers)
		statuses := map[string]int{}
		for a := range answers {
			statuses[fmt.Sprint(a["status"])]++
		}
		return statuses
	}
	first := pgDefinition(c, "", "a: {when: {if: {run: {x: 1, y: 2}}}}")
	// the same shape
	written := pgDefinition(c, "", "a: {timeout: 9, when: {if: {run: {y: 2.0, x: 1}}}}")
	require.Equal(c, map[string]int{"compiled": 1, "verified": 23}, ensureAll(first, written))
	require.Equal(c, map[string]int{"recompiled": 1, "verified": 23}, ensureAll(pgDefinition(c, "", nodeA, nodeB)))
}

// pgOwnID starts a run with an id chosen by the client.
func pgOwnID(c *client) {
	f := c.pgflow(nodeA)
	id := uuidOf(c)
	start := func(slug string, input any) (int, obj) {
		status, v := c.call("POST", "/flows/"+slug+"/runs", obj{"input": input, "run_id": id})
		return status, v.(obj)
	}
	status, first := start(f.slug, obj{"n": 1})
	require.Equal(c, 200, status)
	require.Equal(c, id, first["run"].(obj)["run_id"])
	f.work("a", 1)
	status, again := start(f.slug, raw(`{ "n": 1 }`))
	require.Equal(c, 200, status)
	require.Equal(c, "completed", again["run"].(obj)["status"])
	status, _ = start(f.slug, obj{"n": 2})
	require.Equal(c, 409, status)
	status, _ = start(c.pgflow(nodeA).slug, obj{"n": 1})
	require.Equal(c, 409, status)
	status, answer := c.call("POST", "/flows/"+f.slug+"/runs", obj{"run_id": "mine"})
	require.Equal(c, 400, status, "%v", answer)
	status, answer = c.call("GET", "/runs/"+uuidOf(c), nil)
	require.Equal(c, []any{404, "not_found"}, []any{status, answer.(obj)["error"]})
}

func pgMethods(c *client) {
	for path, want := range map[string]string{"/flows/x": "DELETE,OPTIONS",
		"/runs/x": "GET,OPTIONS", "/runs/x/tasks/append": "POST,OPTIONS",
		"/flows": "GET,POST,OPTIONS"} {
		status, h, _ := c.send("OPTIONS", path, nil)
		require.Equal(c, 204, status)
		require.Equal(c, want, h.Get("Access-Control-Allow-Methods"), path)
	}
}

// pgSpellings checks that equivalent ids and inputs are treated as equal.
func pgSpellings(c *client) {
	f := c.pgflow(nodeA)
	id := uuidOf(c)
	for _, body := range []obj{{"run_id": id}, {"run_id": id, "input": nil}, {"run_id": strings.ToUpper(id)}} {
		status, answer := c.call("POST", "/flows/"+f.slug+"/runs", body)
		require.Equal(c, 200, status, "%v: %v", body, answer)
		require.Equal(c, id, answer.(obj)["run"].(obj)["run_id"])
	}
	r := &pgRun{pgFlow: f, id: strings.ToUpper(id)}
	f.one("a")
	require.Equal(c, true, r.do("/tasks/complete", obj{"step": "a", "output": 1})["changed"])
	r.ended("completed", `{"a":1}`)
	require.Len(c, r.events(4), 4)
	require.Equal(c, id, c.get("/runs/" + r.id + "/wait")["run"].(obj)["run_id"])
}
