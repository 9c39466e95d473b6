package v1_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAVersionIsPublishedOnce(t *testing.T) {
	s := start(t)
	first := s.call(201, "PUT", "/v1/flows/order", atOnce)
	require.Equal(t, true, first["created"])
	require.Equal(t, "order", first["flow"].(obj)["slug"])
	require.Equal(t, 1.0, first["version"].(obj)["number"])
	again := s.call(200, "PUT", "/v1/flows/order", atOnce)
	require.Equal(t, false, again["created"])
	require.Equal(t, first["version"], again["version"])
	require.Equal(t, first["flow"], again["flow"])
	second := s.call(201, "PUT", "/v1/flows/order", waits)
	require.Equal(t, 2.0, second["version"].(obj)["number"])
	back := s.call(201, "PUT", "/v1/flows/order", atOnce)
	require.Equal(t, 3.0, back["version"].(obj)["number"], "only the newest version counts")
}

// fickle is a store in which each flow is deleted right after a version of it was published.
type fickle struct{ persistence.Store }

func (f fickle) Version(ctx context.Context, id string) (*persistence.Version, error) {
	v, err := f.Store.Version(ctx, id)
	if err == nil {
		_, err = f.DeleteFlow(ctx, v.FlowID, 1)
	}
	return v, err
}

func TestPublishingToADeletedFlowIsReported(t *testing.T) {
	s := start(t, func(set *settings) {
		set.wrap = func(store persistence.Store) persistence.Store { return fickle{store} }
	})
	for where, path := range map[string]string{"path.flow": "/v1/flows/gone", "query.slug": "/v1/flows?slug=gone"} {
		method := "PUT"
		if where == "query.slug" {
			method = "POST"
		}
		told := s.refused(409, where, method, path, atOnce)
		require.Equal(t, []any{"the flow gone was deleted during the publication",
			"publish it again if you still need it"}, []any{told["message"], told["hint"]})
	}
}

const inYAML = `
name: Ship an Order!
start: x # a remark
nodes:
  x: {kind: timer, params: {delay_ms: 2}}
`

func TestADefinitionIsAcceptedInEveryForm(t *testing.T) {
	s := start(t)
	for name, tt := range map[string]struct {
		method, path, kind string
		body               any
	}{
		"the object itself": {"PUT", "/v1/flows/f1", "application/json",
			`{"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":2}}}}`},
		"YAML itself":           {"PUT", "/v1/flows/f2", "application/yaml", inYAML},
		"YAML by an older name": {"PUT", "/v1/flows/f3", "text/x-yaml; charset=utf-8", inYAML},
		"YAML as plain text":    {"PUT", "/v1/flows/f4", "text/plain", inYAML},
		"JSON that is told as YAML": {"PUT", "/v1/flows/f5", "application/yaml",
			`{"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":2}}}}`},
		"an object in a field": {"POST", "/v1/flows", "application/json",
			obj{"slug": "f6", "definition": obj{"start": "x",
				"nodes": obj{"x": obj{"kind": "timer", "params": obj{"delay_ms": 2}}}}}},
		"YAML in a field":             {"POST", "/v1/flows", "application/json", obj{"slug": "f7", "definition": inYAML}},
		"a slug in the query":         {"POST", "/v1/flows?slug=f8", "application/yaml", inYAML},
		"a slug made from the name":   {"POST", "/v1/flows", "application/yaml", inYAML},
		"a path and the same slug":    {"PUT", "/v1/flows/f9", "application/json", obj{"slug": "f9", "definition": inYAML}},
		"nothing said about its form": {"PUT", "/v1/flows/f10", "", inYAML},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.call(201, tt.method, tt.path, tt.body, "Content-Type", tt.kind)
			flow := answer["flow"].(obj)
			if strings.Contains(name, "made") {
				require.Equal(t, "ship-an-order", flow["slug"])
				require.Equal(t, "Ship an Order!", flow["name"])
			}
			v := s.get("/v1/flows/" + flow["slug"].(string) + "/versions/1")
			require.Equal(t, "x", v["definition"].(obj)["start"])
			require.Equal(t, 2.0, v["definition"].(obj)["nodes"].(obj)["x"].(obj)["params"].(obj)["delay_ms"])
		})
	}
}

func TestADefinitionComesBackAsItWasSent(t *testing.T) {
	s := start(t)
	text := `"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":0,"z":12345678901234567890,"a":"<&>\u2028"}}}}`
	s.call(201, "PUT", "/v1/flows/f", "{"+text)
	kept := `{"profile":"troupe", ` + text
	require.Contains(t, string(s.send("GET", "/v1/flows/f/versions/latest", nil).body),
		`"definition":`+kept+"}", "with what it left unsaid")
	s.call(200, "PUT", "/v1/flows/f", kept)
	require.Contains(t, string(s.send("GET", "/v1/flows/f/versions/latest", nil).body), `"definition":`+kept+"}")
}

func TestAFailedStepFailsItsTaskUnlessItsFlowSaysOtherwise(t *testing.T) {
	const sell = `{"start":"charge","nodes":{"charge":{"exec_type":"queue","service":"charge"%s},"ship":{"exec_type":"queue","service":"ship"}},
		"edges":[{"from":"charge","action":"default","to":"ship"}%s]%s}`
	s := start(t)
	for name, tt := range map[string]struct{ node, edge, flow, state string }{
		"nothing is said":          {"", "", "", "failed"},
		"its flow says fail":       {"", "", `,"on_error":"fail"`, "failed"},
		"its node says fail":       {`,"on_error":"fail"`, "", `,"on_error":"follow"`, "failed"},
		"its flow says follow":     {"", "", `,"on_error":"follow"`, "completed"},
		"its node says follow":     {`,"on_error":"follow"`, "", "", "completed"},
		"an error edge handles it": {"", `,{"from":"charge","action":"error","to":"ship"}`, "", "completed"},
	} {
		t.Run(name, func(_ *testing.T) {
			id := s.task(fmt.Sprintf(sell, tt.node, tt.edge, tt.flow))
			s.report("charge", flow.Report{Error: "declined", Fatal: true})
			if tt.state == "completed" {
				s.report("ship", flow.Report{Output: []byte(`1`)})
			}
			s.ended(id, tt.state)
		})
	}
}

func TestABadDefinitionIsRefusedWithAllItsProblems(t *testing.T) {
	s := start(t)
	bad := "start: a\nnodes:\n  b: {kind: odd}\n  c: {service: s, retry: {max_attempts: -1}}\n"
	for _, path := range []string{"/v1/flows?slug=f", "/v1/flows"} {
		p := s.refused(400, "body", "POST", path, bad, "Content-Type", "application/yaml")
		require.Len(t, p["problems"], 3)
	}
	require.Empty(t, items(s.get("/v1/flows")), "nothing is kept")
	answer := s.call(200, "POST", "/v1/validate", bad, "Content-Type", "application/yaml")
	require.Equal(t, false, answer["valid"])
	require.Equal(t, []any{
		obj{"path": "start", "line": 1.0, "column": 8.0, "severity": "error", "message": `unknown node "a"`},
		obj{"path": "nodes.b.kind", "line": 3.0, "column": 13.0, "severity": "error",
			"message": answer["problems"].([]any)[1].(obj)["message"]},
		obj{"path": "nodes.c.retry.max_attempts", "line": 4.0, "column": 41.0, "severity": "error", "message": "must not be negative"},
	}, answer["problems"])
}

func TestYAMLThatLooksLikeJSONIsReported(t *testing.T) {
	s := start(t)
	const text = "{start: x, nodes: {x: {kind: timer, params: {delay_ms: 0}}}}\n"
	for _, kind := range []string{"application/yaml", "application/json", ""} {
		p := s.refused(400, "body", "PUT", "/v1/flows/f", text, "Content-Type", kind)
		require.Contains(t, items(obj{"items": p["problems"]})[0]["message"], "begins with { is read as JSON")
	}
	answer := s.call(200, "POST", "/v1/validate", text, "Content-Type", "application/yaml")
	require.Contains(t, answer["problems"].([]any)[0].(obj)["message"], `put a line "---" before YAML`)
	s.call(201, "PUT", "/v1/flows/f", "---\n"+text, "Content-Type", "application/yaml")
}

func TestValidationKeepsNothing(t *testing.T) {
	s := start(t)
	require.Equal(t, obj{"valid": true, "problems": []any{}}, s.call(200, "POST", "/v1/validate", atOnce))
	warned := s.call(200, "POST", "/v1/validate", `{"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":0},"dalay":1}}}`)
	require.Equal(t, true, warned["valid"])
	require.Equal(t, "warning", warned["problems"].([]any)[0].(obj)["severity"])
	require.Empty(t, items(s.get("/v1/flows")))
}

func TestPublishingIsRefusedWithAReason(t *testing.T) {
	s := start(t)
	for name, tt := range map[string]struct {
		status       int
		where        string
		method, path string
		body         any
		kind         string
	}{
		"a slug that is none":           {400, "path.flow", "PUT", "/v1/flows/Order", atOnce, ""},
		"a slug in the query":           {400, "query.slug", "POST", "/v1/flows?slug=-x", atOnce, ""},
		"no slug and no name":           {400, "query.slug", "POST", "/v1/flows", atOnce, ""},
		"two slugs":                     {400, "body.slug", "PUT", "/v1/flows/a", obj{"slug": "b", "definition": inYAML}, ""},
		"an unknown field":              {400, "body", "PUT", "/v1/flows/a", obj{"slog": "b", "definition": inYAML}, ""},
		"a list":                        {400, "body", "PUT", "/v1/flows/a", `[]`, ""},
		"broken JSON":                   {400, "body", "PUT", "/v1/flows/a", `{"start":`, ""},
		"nothing":                       {400, "", "PUT", "/v1/flows/a", "", ""},
		"a picture":                     {400, "header.Content-Type", "PUT", "/v1/flows/a", atOnce, "image/png"},
		"an unknown query parameter":    {400, "query.name", "PUT", "/v1/flows/a?name=x", atOnce, ""},
		"a definition that is a number": {400, "body", "PUT", "/v1/flows/a", obj{"definition": 7}, ""},
	} {
		t.Run(name, func(_ *testing.T) {
			if tt.kind == "" {
				tt.kind = "application/json"
			}
			s.refused(tt.status, tt.where, tt.method, tt.path, tt.body, "Content-Type", tt.kind)
		})
	}
}

func TestFlowsAreListedWhileTheyArePublished(t *testing.T) {
	s := start(t)
	for i := range 5 {
		s.call(201, "PUT", fmt.Sprintf("/v1/flows/f%d", i), atOnce)
	}
	first := s.get("/v1/flows?limit=2")
	require.Equal(t, []any{"f4", "f3"}, values(first, "slug"))
	s.call(201, "PUT", "/v1/flows/new", atOnce)
	second := s.get("/v1/flows?limit=2&cursor=" + first["next"].(string))
	require.Equal(t, []any{"f2", "f1"}, values(second, "slug"))
	last := s.get("/v1/flows?limit=2&cursor=" + second["next"].(string))
	require.Equal(t, []any{"f0"}, values(last, "slug"))
	require.NotContains(t, last, "next")
	require.Equal(t, "f3", s.get("/v1/flows/f3")["slug"])
	s.refused(404, "path.flow", "GET", "/v1/flows/nope", nil)
	s.refused(400, "query.cursor", "GET", "/v1/flows?cursor=nope", nil)
}

func TestVersionsAreListedWhileTheyArePublished(t *testing.T) {
	s := start(t)
	version := func(n int) {
		s.call(201, "PUT", "/v1/flows/f", strings.Replace(atOnce, "done", fmt.Sprint("done", n), 1))
	}
	for n := range 3 {
		version(n)
	}
	first := s.get("/v1/flows/f/versions?limit=2")
	require.Equal(t, []any{3.0, 2.0}, values(first, "number"))
	version(3)
	second := s.get("/v1/flows/f/versions?limit=2&cursor=" + first["next"].(string))
	require.Equal(t, []any{1.0}, values(second, "number"))
	require.NotContains(t, second, "next")
	require.Equal(t, 4.0, s.get("/v1/flows/f/versions/latest")["number"])
	require.Equal(t, 2.0, s.get("/v1/flows/f/versions/2")["number"])
	s.refused(404, "path.version", "GET", "/v1/flows/f/versions/9", nil)
	s.refused(400, "path.version", "GET", "/v1/flows/f/versions/new", nil)
	s.refused(404, "path.flow", "GET", "/v1/flows/nope/versions", nil)
	s.refused(404, "path.flow", "GET", "/v1/flows/nope/versions/1", nil)
}

func TestFlowsWithoutSlugAreAddressedByID(t *testing.T) {
	s := start(t)
	id := s.call(200, "POST", "/api/flows", obj{"Name": "old"})["id"].(string)
	s.call(200, "POST", "/api/flows/version", obj{"FlowID": id, "Version": 1, "Status": "published", "DefinitionJSON": atOnce})
	require.Equal(t, "old", s.get("/v1/flows/" + id)["name"])
	require.Equal(t, id, s.get("/v1/flows/" + id + "/versions/1")["flow"])
	task := s.call(201, "POST", "/v1/tasks", obj{"flow": id})["id"].(string)
	require.Equal(t, id, s.ended(task, "completed")["flow"])
	require.Equal(t, []any{task}, values(s.get("/v1/tasks?flow="+id), "id"))
}

func TestAFlowIsEmbeddedByItsName(t *testing.T) {
	s := start(t)
	yaml := []string{"Content-Type", "application/yaml"}
	inner := func(text string) {
		s.call(201, "PUT", "/v1/flows/inner",
			obj{"mode": "dag", "nodes": obj{"up": obj{"exec_type": "local_func", "func": "upper",
				"params": obj{"text": text}}}})
	}
	outer := "mode: dag\nnodes:\n  get: {route: direct}\n  B:\n    kind: branch\n    " +
		"depends_on: [get]\n    prep: {service: make, exec_type: queue}\n    flow: inner\n"
	p := s.refused(400, "body", "PUT", "/v1/flows/outer", outer, yaml...)
	require.Equal(t, obj{"path": "nodes.B.flow", "line": 8.0, "column": 11.0, "severity": "error",
		"message": `unknown flow "inner": publish it first`}, p["problems"].([]any)[0])
	require.Equal(t, false, s.call(200, "POST", "/v1/validate", outer, yaml...)["valid"])

	inner("one")
	require.Equal(t, true, s.call(200, "POST", "/v1/validate", outer, yaml...)["valid"])
	s.call(201, "PUT", "/v1/flows/outer", outer, yaml...)
	inner("two")
	nodes := s.get("/v1/flows/outer/versions/latest")["definition"].(obj)["nodes"].(obj)
	embedded := nodes["B"].(obj)["flow"].(obj)
	require.Equal(t, "inner", embedded["embedded"])
	require.Equal(t, obj{"text": "one"}, embedded["nodes"].(obj)["up"].(obj)["params"], "a version is what it was when it was published")
	s.call(201, "PUT", "/v1/flows/outer", outer, yaml...)
	nodes = s.get("/v1/flows/outer/versions/latest")["definition"].(obj)["nodes"].(obj)
	require.Equal(t, obj{"text": "two"}, nodes["B"].(obj)["flow"].(obj)["nodes"].(obj)["up"].(obj)["params"], "published anew it takes the newest one")
	s.call(200, "PUT", "/v1/flows/outer", outer, yaml...)

	id := s.call(201, "POST", "/v1/tasks", obj{"flow": "outer"})["id"].(string)
	s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "get"})
	s.report("make", flow.Report{Output: []byte(`{"k":1}`)})
	require.Equal(t, obj{"B": obj{"up": "TWO"}}, s.ended(id, "completed")["result"])

	p = s.refused(400, "body", "PUT", "/v1/flows/inner", strings.Replace(outer, "flow: inner", "flow: outer", 1), yaml...)
	require.Equal(t, "a flow cannot embed itself: inner → outer → inner", p["problems"].([]any)[0].(obj)["message"])
	for name, way := range map[string]string{"outer": "inner → outer → inner", "inner": "inner → inner"} {
		got := s.send("POST", "/api/flows/version", obj{"FlowID": s.get("/v1/flows/inner")["id"], "Version": 7, "Status": "published",
			"DefinitionYAML": "start: s\nnodes: {s: {kind: subflow, flow: " + name + "}}\n"})
		require.Equal(t, 400, got.status, "by the graph routes, too: %s", got.body)
		require.Contains(t, string(got.body), "a flow cannot embed itself: "+way)
	}

	graph := s.call(200, "POST", "/api/flows", obj{"Name": "old"})["id"].(string)
	sent := obj{"FlowID": graph, "Version": 1, "Status": "published",
		"DefinitionYAML": "start: s\nnodes: {s: {kind: subflow, flow: inner}}\n"}
	s.call(200, "POST", "/api/flows/version", sent)
	id = s.call(201, "POST", "/v1/tasks", obj{"flow": graph})["id"].(string)
	s.ended(id, "completed")
}

func TestAFlowIsDeleted(t *testing.T) {
	s := start(t)
	slug := s.publish(waits)
	require.Equal(t, obj{"flow": slug, "tasks": 0.0}, s.call(200, "DELETE", "/v1/flows/"+slug, nil))
	s.refused(404, "path.flow", "DELETE", "/v1/flows/"+slug, nil)

	s.call(201, "PUT", "/v1/flows/"+slug, waits)
	task := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	s.refused(409, "query.tasks", "DELETE", "/v1/flows/"+slug, nil)
	require.Equal(t, slug, s.get("/v1/flows/" + slug)["slug"])
	require.Equal(t, obj{"flow": slug, "tasks": 1.0}, s.call(200, "DELETE", "/v1/flows/"+slug+"?tasks=true", nil))
	s.refused(404, "path.task", "GET", "/v1/tasks/"+task, nil)
	s.refused(404, "body.flow", "POST", "/v1/tasks", obj{"flow": slug})
}

// commits is a store that counts writes.
type commits struct {
	persistence.Store
	count *atomic.Int64
}

func (c commits) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	c.count.Add(1)
	return c.Store.Commit(ctx, incarnation, batch)
}

func TestTheTasksOfAFlowThatIsDeletedAreCanceledTogether(t *testing.T) {
	var count atomic.Int64
	s := start(t, func(set *settings) {
		set.wrap = func(store persistence.Store) persistence.Store { return commits{store, &count} }
	})
	const tasks = 100
	slug, starts := s.publish(waits), []obj{}
	for range tasks {
		starts = append(starts, obj{"flow": slug})
	}
	s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts})
	s.until("/v1/tasks/count?state=running&waiting_for=signal", func(c obj) bool { return c["count"] == float64(tasks) })
	before := count.Load()
	require.Equal(t, obj{"flow": slug, "tasks": float64(tasks)}, s.call(200, "DELETE", "/v1/flows/"+slug+"?tasks=true", nil))
	require.Less(t, count.Load()-before, int64(tasks/2))
}

func TestStrictMakesWarningsErrors(t *testing.T) {
	s := start(t)
	warned := obj{"start": "x", "nodes": obj{"x": obj{"kind": "timer", "params": obj{"delay_ms": 0}, "dalay": 1}}}
	p := s.refused(400, "body", "PUT", "/v1/flows/f?strict=true", warned)
	require.Equal(t, "error", p["problems"].([]any)[0].(obj)["severity"])
	s.refused(400, "body", "POST", "/v1/flows?slug=f&strict=true", warned)
	s.refused(400, "body", "PUT", "/v1/flows/f", obj{"definition": warned, "strict": true})
	s.refused(400, "body", "POST", "/v1/flows", obj{"slug": "f", "definition": warned, "strict": true})
	s.refused(400, "body.strict", "PUT", "/v1/flows/f", obj{"definition": warned, "strict": "yes"})
	require.Equal(t, false, s.call(200, "POST", "/v1/validate", obj{"definition": warned, "strict": true})["valid"])
	s.refused(400, "body.definition", "POST", "/v1/try", obj{"slug": "f", "definition": warned, "strict": true})
	s.refused(400, "body.definition", "POST", "/v1/try?strict=true", obj{"slug": "f", "definition": warned})
	require.Equal(t, false, s.call(200, "POST", "/v1/validate?strict=true", warned)["valid"])
	require.Empty(t, items(s.get("/v1/flows")), "nothing is kept")
	require.Len(t, s.call(201, "PUT", "/v1/flows/f", warned)["warnings"], 1)
	require.Len(t, s.call(200, "PUT", "/v1/flows/f", warned)["warnings"], 1, "the same version has the same warnings")
	require.Len(t, s.call(201, "POST", "/v1/flows", obj{"slug": "g", "definition": warned})["warnings"], 1)
	require.Len(t, s.call(201, "POST", "/v1/try", obj{"slug": "f", "definition": warned})["warnings"], 1)
}

func TestEachPublicationReportsADefaultThatNoNodeObeys(t *testing.T) {
	s := start(t)
	const text = "mode: dag\ndefaults: {timeout: 5s}\nnodes: {a: {service: s, timeout: 1s}}\n"
	const header, yaml = "Content-Type", "application/yaml"
	for _, route := range [][2]string{{"PUT", "/v1/flows/f?"}, {"POST", "/v1/flows?slug=g&"}} {
		p := s.refused(400, "body", route[0], route[1]+"strict=true", text, header, yaml)
		require.Equal(t, "defaults.timeout", p["problems"].([]any)[0].(obj)["path"])
		warnings := s.call(201, route[0], route[1], text, header, yaml)["warnings"].([]any)
		require.Len(t, warnings, 1)
		warning := warnings[0].(obj)
		require.Equal(t, []any{"warning", "defaults.timeout", 2.0, 21.0}, []any{warning["severity"], warning["path"],
			warning["line"], warning["column"]})
		require.Contains(t, warning["message"], "has no effect: no node without its own has attempts that can be late")
	}
	s.refused(400, "body.definition", "POST", "/v1/try", obj{"slug": "h", "definition": text, "strict": true})
	require.Len(t, s.call(201, "POST", "/v1/try", obj{"slug": "h", "definition": text})["warnings"], 1)
	checked := s.call(200, "POST", "/v1/validate", text, header, yaml)
	require.Equal(t, true, checked["valid"])
	require.Len(t, checked["problems"], 1)
	require.Equal(t, false, s.call(200, "POST", "/v1/validate?strict=true", text, header, yaml)["valid"])
}

func TestADuplicateKeyIsReportedWithItsPlace(t *testing.T) {
	s := start(t)
	const text = "start: a\nnodes:\n  a: {kind: timer, params: {delay_ms: 0}}\nstart: b\n"
	want := []any{obj{"path": "start", "line": 4.0, "column": 1.0, "severity": "error",
		"message": "the key is there twice, first in line 1"}}
	require.Equal(t, want, s.refused(400, "body", "PUT", "/v1/flows/f", text, "Content-Type", "application/yaml")["problems"])
	require.Equal(t, want, s.call(200, "POST", "/v1/validate", text, "Content-Type", "application/yaml")["problems"])
}
