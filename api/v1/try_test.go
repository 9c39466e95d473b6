package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// tryable has a schedule, which trying it must not set.
const tryable = `
name: Weigh
mode: dag
inputs: {amount: integer}
schedule: {cron: "0 3 * * *", params: {amount: 1}}
nodes:
  weigh: {exec_type: queue, service: SERVICE}
  pack: {exec_type: queue, service: SERVICE, depends_on: [weigh]}
`

func TestADefinitionIsTriedWithoutBeingPublished(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug, service := s.unique("weigh"), s.unique("scales")
		definition := strings.ReplaceAll(tryable, "SERVICE", service)
		before := s.get("/v1/flows")
		ask := obj{"definition": definition, "slug": slug, "params": obj{"amount": 3},
			"labels": obj{"by": "ada"}, "idempotency_key": s.unique("key")}
		made := s.call(201, "POST", "/v1/try", ask)
		again := s.call(200, "POST", "/v1/try", ask)
		require.Equal(s, []any{made["id"], made["flow"], false}, []any{again["id"], again["flow"], again["created"]})
		id, of := made["id"].(string), made["flow"].(string)
		require.Contains(s, of, "try-"+slug)

		task := s.get("/v1/tasks/" + id)
		require.Equal(s, []any{of, 1.0, obj{"by": "ada", "troupe": "try"}}, []any{task["flow"], task["version"], task["labels"]})
		require.Len(s, s.get("/v1/flows/" + of + "/versions/1/graph")["nodes"], 2)
		require.Equal(s, []any{id}, values(s.get("/v1/tasks?label=troupe:try&flow="+of), "id"))
		for range 2 {
			s.report(service, flow.Report{Output: []byte(`1`)})
		}
		s.ended(id, "completed")

		require.Equal(s, before, s.get("/v1/flows"), "no list has it")
		require.Equal(s, true, s.get("/v1/flows/" + of)["trial"])
		s.refused(404, "path.flow", "GET", "/v1/flows/"+slug, nil)
		s.refused(404, "body.version", "POST", "/v1/tasks", obj{"flow": of})
		require.NotContains(s, values(s.get("/v1/schedules"), "name"), slug)
		rerun := s.call(201, "POST", "/v1/tasks/"+id+"/rerun", nil)
		require.Equal(s, 1.0, rerun["version"], "another one of what was tried")

		ask["definition"] = strings.ReplaceAll(definition, "pack", "wrap")
		s.refused(409, "body.idempotency_key", "POST", "/v1/try", ask)
		ask["definition"], ask["params"] = definition, obj{"amount": 4}
		s.refused(409, "body.idempotency_key", "POST", "/v1/try", ask)
	})
}

func TestATryIsRefusedAsAPublicationIs(t *testing.T) {
	s := start(t)
	bad := "start: a\nnodes:\n  b: {kind: odd}\n  c: {service: s, retry: {max_attempts: -1}}\n"
	p := s.refused(400, "body.definition", "POST", "/v1/try", obj{"definition": bad})
	require.Equal(t, s.refused(400, "body", "PUT", "/v1/flows/f", bad, "Content-Type", "application/yaml")["problems"], p["problems"])
	s.refused(422, "body.params", "POST", "/v1/try", obj{"definition": tryable, "params": obj{"amuont": 3}})
	s.refused(400, "body.slug", "POST", "/v1/try", obj{"definition": tryable, "slug": "No Slug"})
	s.refused(400, "body.labels", "POST", "/v1/try", obj{"definition": tryable, "labels": obj{"troupe": "mine"}})
	s.refused(400, "body.labels", "POST", "/v1/try", obj{"definition": tryable, "labels": obj{"a:b": "mine"}})
	s.refused(400, "body.idempotency_key", "POST", "/v1/try", obj{"definition": tryable, "idempotency_key": "a"}, "Idempotency-Key", "b")
	object := s.call(201, "POST", "/v1/try",
		obj{"definition": obj{"start": "x", "nodes": obj{"x": obj{"kind": "timer",
			"params": obj{"delay_ms": 2}}}}}, "Idempotency-Key", "c")
	require.Contains(t, object["flow"], "try-flow-")
	s.ended(object["id"].(string), "completed")
}

func TestOfTwoPublicationsAfterTheSameVersionOneSucceeds(t *testing.T) {
	onBothStores(t, func(s *server) {
		path := "/v1/flows/" + s.unique("order") + "?after="
		s.refused(409, "query.after", "PUT", path+"1", atOnce)
		s.call(201, "PUT", path+"0", atOnce)
		s.refused(409, "query.after", "PUT", path+"0", waits)
		s.call(201, "PUT", path+"1", waits)
		s.call(200, "PUT", path+"1", waits) // a retry
	})
}
