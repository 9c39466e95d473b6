package blackbox

import (
	"strings"

	"github.com/stretchr/testify/require"
)

func pgNoHandlerForDirect(c *client) {
	require.Contains(c, c.notRegistered("", "d: {route: direct, service: s}"), "direct")
}

func pgRefused(c *client) {
	for rule, nodes := range map[string][]string{
		"output is reserved":          {"output: {}"},
		"run is reserved":             {"run: {}"},
		"a digit first":               {"1a: {}"},
		"a dash":                      {"a-b: {}"},
		"a slash":                     {"a/b: {}"},
		"a colon":                     {"'gate:b': {}"},
		"129 characters":              {strings.Repeat("a", 129) + ": {}"},
		"a cycle":                     {"a: {depends_on: [b]}", "b: {depends_on: [a]}"},
		"itself":                      {"a: {depends_on: [a]}"},
		"an unknown dependency":       {"a: {depends_on: [b]}"},
		"the same one twice":          {"a: {}", "b: {depends_on: [a, a]}"},
		"two outputs":                 {"a: {}", "o: {kind: output}", "p: {kind: output}"},
		"output with deps":            {"a: {}", "o: {kind: output, depends_on: [a]}"},
		"a map of two":                {"a: {}", "b: {}", "m: {kind: map, depends_on: [a, b]}"},
		"fanout without items":        {"f: {kind: fanout}"},
		"a pattern that is no object": {"a: {when: {if: [1]}}"},
		"an unknown skip mode":        {"a: {skip_mode: nope}"},
		"both skip modes":             {"a: {when: {if: {}}, skip_mode: fail, whenUnmet: fail}"},
		"whenUnmet for nothing":       {"a: {whenUnmet: skip}"},
		"a dependency across scopes":  {"a: {}", "B: {kind: branch, flow: {nodes: {s: {depends_on: [a]}}}}"},
	} {
		require.NotEmpty(c, c.notRegistered("", nodes...), rule)
	}
	twice := `{"profile":"pgflow","nodes":{"a":{},"a":{}}}`
	status, answer := c.call("POST", "/flows/"+strings.ReplaceAll(unique("twice"), "-", "_")+"/ensure", obj{"definition": raw(twice)})
	require.Equal(c, 400, status, "%v", answer)
	for _, slug := range []string{"run", "1a-B", strings.Repeat("a", 129)} {
		status, answer := c.call("POST", "/flows/"+slug+"/ensure", obj{"definition": pgDefinition(c, "", "a: {}")})
		require.Equal(c, 400, status, "%s: %v", slug, answer)
	}
}

// pgEnsure follows a flow through its versions.
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

// pgOwnID starts a run under an id of the client's.
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
	for path, want := range map[string]string{"/flows/x": "DELETE,OPTIONS", "/runs/x": "GET,OPTIONS", "/runs/x/tasks/append": "POST,OPTIONS",
		"/flows": "GET,POST,OPTIONS"} {
		status, h, _ := c.send("OPTIONS", path, nil)
		require.Equal(c, 204, status)
		require.Equal(c, want, h.Get("Access-Control-Allow-Methods"), path)
	}
}

// pgSpellings holds ids and inputs that mean the same to being the same.
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
