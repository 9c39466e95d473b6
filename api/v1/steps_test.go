package v1_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const review = `
mode: dag
nodes:
  fetch: {exec_type: queue, service: fetch}
  list: {kind: fanout, route: direct, depends_on: [fetch], each: {items: $deps.fetch}}
  B:
    kind: branch
    depends_on: [list]
    when: {if: {run: {plan: premium}}}
    skip_mode: optional
    flow:
      nodes:
        sign: {route: direct}
  out: {depends_on: [B, list], exec_type: local_func, func: upper, params: {text: done}}
`

// reviewing starts a task of that flow and completes its step fetch.
func (s *server) reviewing(input obj) string {
	s.Helper()
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(review), "input": input})["id"].(string)
	job := s.claim("fetch").Job
	require.NoError(s, s.endJob(job.ID(), flow.Report{Output: []byte(`["a","b"]`)}))
	return id
}

func (s *server) steps(task, query string) map[string]obj {
	s.Helper()
	steps := map[string]obj{}
	for _, step := range items(s.get("/v1/tasks/" + task + "/steps?limit=500" + query)) {
		steps[step["node"].(string)] = step
	}
	return steps
}

func TestTheStepsOfADagAreListedFromBeginningToEnd(t *testing.T) {
	s := start(t)
	id := s.reviewing(obj{"plan": "basic"})
	require.Equal(t, []any{"fetch", "list", "gate:B", "B/sign", "B", "out"},
		values(s.get("/v1/tasks/"+id+"/steps"), "node"), "in the order of the definition")
	steps := s.steps(id, "")
	require.Equal(t, "completed", steps["fetch"]["state"])
	require.Equal(t, []any{"a", "b"}, steps["fetch"]["output"])
	require.Equal(t, "started", steps["list"]["state"])
	require.Equal(t, "direct", steps["list"]["route"])
	require.Equal(t, "manual", steps["list"]["wait"].(obj)["kind"])
	require.Equal(t, []any{"created", "B", []any{"list"}, 1.0},
		[]any{steps["gate:B"]["state"], steps["gate:B"]["generated_for"],
			steps["gate:B"]["waiting_for"], steps["gate:B"]["waiting_for_count"]})
	task := s.get("/v1/tasks/" + id)
	require.Equal(t, "dag", task["mode"])
	require.Equal(t, obj{"created": 4.0, "started": 1.0, "completed": 1.0, "failed": 0.0, "skipped": 0.0}, task["counts"])
	require.Len(t, task["active"], 1)

	units := s.call(200, "POST", "/v1/tasks/"+id+"/append", obj{"step": "list", "items": []any{"c", nil}}, "Request-Id", "more")["units"]
	require.Equal(t, []any{2.0, 3.0}, units)
	again := s.call(200, "POST", "/v1/tasks/"+id+"/append", obj{"step": "list", "items": []any{"c", nil}}, "Request-Id", "more")["units"]
	require.Equal(t, units, again)
	for unit, output := range []any{"A", obj{"b": 1}, nil} {
		done := s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": unit, "output": output})
		require.Equal(t, true, done["changed"])
	}
	require.Equal(t, false, s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": 1, "output": 7})["changed"])
	list := s.steps(id, "&step=list")["list"]
	require.Equal(t, obj{"total": 4.0, "appended": 2.0, "in_flight": 1.0, "retrying": 0.0, "done": 3.0, "failed": 0.0}, list["units"])
	page := s.get("/v1/tasks/" + id + "/units?step=list&limit=2")
	require.Equal(t, []any{"A", obj{"b": 1.0}}, values(page, "output"))
	page = s.get("/v1/tasks/" + id + "/units?step=list&limit=2&cursor=" + page["next"].(string))
	require.Equal(t, []any{"c", nil}, values(page, "input"))
	require.Equal(t, []any{"completed", "dispatched"}, values(page, "state"))
	require.Equal(t, []any{true, true}, values(page, "appended"))
	require.NotContains(t, page, "next")

	s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": 3})
	task = s.ended(id, "completed")
	require.Equal(t, obj{"out": "DONE"}, task["result"])
	steps = s.steps(id, "")
	require.Equal(t, []any{"skipped", "condition_unmet"}, []any{steps["gate:B"]["state"], steps["gate:B"]["reason"]})
	require.Equal(t, []any{"skipped", "optional"}, []any{steps["B"]["state"], steps["B"]["skip_mode"]})
	require.Equal(t, 4.0, steps["list"]["units"].(obj)["done"])
	require.Len(t, items(s.get("/v1/tasks/"+id+"/steps?state=skipped")), 3)
	require.Equal(t, []any{"A", obj{"b": 1.0}, nil, nil},
		values(s.get("/v1/tasks/"+id+"/units?step=list"), "output"), "also when it is over")
}

func TestStepsComeInPages(t *testing.T) {
	s := start(t)
	definition := "mode: dag\nnodes:\n"
	for i := range 30 {
		definition += fmt.Sprintf("  n%02d: {route: direct}\n", i)
	}
	id := s.task(definition)
	var seen []any
	for query := "?limit=7"; ; {
		page := s.get("/v1/tasks/" + id + "/steps" + query)
		seen = append(seen, values(page, "node")...)
		if page["next"] == nil {
			break
		}
		query = "?limit=7&cursor=" + page["next"].(string)
	}
	require.Len(t, seen, 30)
	require.Equal(t, "n00", seen[0])
	require.Equal(t, "n29", seen[29])
}

func TestTheStepsOfAGraphAreItsVisits(t *testing.T) {
	s := start(t)
	id := s.task(`
start: a
nodes:
  a: {kind: choice, default_action: go}
  inner:
    kind: subflow
    subflow:
      start: x
      nodes:
        x: {kind: choice, default_action: done}
        w: {kind: wait_event, params: {signal_key: $shared.ok}}
      edges: [{from: x, action: done, to: w}]
  end: {kind: wait_event, params: {signal_key: $shared.end}}
edges: [{from: a, action: go, to: inner}, {from: inner, action: default, to: end}]
`)
	path := "/v1/tasks/" + id
	s.until(path, func(v obj) bool { return len(v["active"].([]any)) == 2 })
	page := s.get(path + "/steps")
	require.Equal(t, []any{"a", "inner"}, values(page, "node"))
	require.Equal(t, []any{"completed", "started"}, values(page, "state"))
	require.Equal(t, "go", items(page)[0]["action"])
	below := items(page)[1]["inner_scope"].(string)
	require.Equal(t, "inner#1", below)
	require.Equal(t, []any{"completed", "started"}, values(s.get(path+"/steps?scope="+url.QueryEscape(below)), "state"))
	require.Equal(t, "graph", s.get(path)["mode"])
	require.NotContains(t, s.get(path), "counts")
	s.refused(404, "query.scope", "GET", path+"/steps?scope=inner", nil)
	s.refused(404, "query.step", "GET", path+"/units?step=nobody", nil)
	require.Empty(t, items(s.get(path+"/units?step=end")), "it has not begun")
}

func TestInvalidAppendsAndCompletionsAreRefused(t *testing.T) {
	s := start(t)
	id := s.reviewing(obj{"plan": "premium"})
	path := "/v1/tasks/" + id
	s.until(path+"/steps?step=list", func(v obj) bool { return items(v)[0]["state"] == "started" })
	one := []any{1}
	s.refused(404, "body.step", "POST", path+"/append", obj{"step": "nobody", "items": one})
	s.refused(404, "path.task", "POST", "/v1/tasks/none/append", obj{"step": "list", "items": one})
	s.refused(409, "body", "POST", path+"/append", obj{"step": "fetch", "items": one})
	s.refused(409, "body", "POST", path+"/append", obj{"step": "list", "items": one, "route": "queue"})
	s.refused(400, "body.items", "POST", path+"/append", obj{"step": "list", "items": []any{}})
	s.refused(400, "body", "POST", path+"/append", obj{"step": "list"})
	s.refused(400, "body", "POST", path+"/append", obj{"items": one})
	s.refused(404, "body.step", "POST", path+"/complete", obj{"step": "list", "unit": 7})
	s.refused(409, "body", "POST", path+"/complete", obj{"step": "fetch"})
	s.refused(409, "body", "POST", path+"/complete", obj{"step": "B/sign"})
	s.refused(400, "body.error", "POST", path+"/complete", obj{"step": "list", "output": 1, "error": "x"})
	s.refused(400, "body.force", "POST", path+"/cancel", obj{"force": true, "graceful": true})
	s.refused(409, "path.task", "POST", path+"/retry", nil)
	s.call(200, "POST", path+"/complete", obj{"step": "list", "error": "the paper is torn"})
	s.call(200, "POST", path+"/complete", obj{"step": "list", "unit": 1})
	task := s.ended(id, "failed")
	require.Contains(t, task["error"], "the paper is torn")
	s.refused(409, "body", "POST", path+"/append", obj{"step": "list", "items": one})
	require.Equal(t, "task_error", s.steps(id, "&step=list")["list"]["reason"])
}

func TestAStartTakesItsInputUnderEitherName(t *testing.T) {
	s := start(t)
	dag := s.publish(`{"mode":"dag","nodes":{"each":{"kind":"map","exec_type":"local_func","func":"upper"}}}`)
	for _, name := range []string{"input", "params"} {
		task := s.call(201, "POST", "/v1/tasks", obj{"flow": dag, name: []string{"a", "b"}, "wait_ms": 20000})["task"].(obj)
		require.Equal(t, obj{"each": []any{"A", "B"}}, task["result"])
	}
	s.refused(400, "body.input", "POST", "/v1/tasks", obj{"flow": dag, "input": 1, "params": obj{}})
	s.refused(400, "body.input", "POST", "/v1/tasks", obj{"flow": dag, "input": obj{"not": "a list"}})
	p := s.refused(400, "body.input", "POST", "/v1/tasks", obj{"flow": dag})
	require.Contains(t, p["message"], "must be an array")
	require.Contains(t, p["message"], "there is none")
	require.Contains(t, p["hint"], `"input": [`)
	graph := s.publish(atOnce)
	s.refused(400, "body.params", "POST", "/v1/tasks", obj{"flow": graph, "params": []int{1}})
	s.call(201, "POST", "/v1/tasks", obj{"flow": graph, "input": obj{"a": 1}})
}
