package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const order = `
start: reserve
on_error: fail
nodes:
  reserve: {exec_type: queue, service: reserve, prep: {input_key: $params.sku}, post: {output_key: reserved}}
  charge: {exec_type: queue, service: SERVICE, prep: {input_key: $params.amount}, post: {output_key: paid}}
edges:
  - {from: reserve, action: default, to: charge}
`

func TestATaskGoesOnInANewOneWithTheVersionThatMendsIt(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.unique("order")
		publish := func(service string) {
			s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(order, "SERVICE", service), "Content-Type", "application/yaml")
		}
		publish("chrge")
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"sku": "tea", "amount": 3}})["id"].(string)
		s.report("reserve", flow.Report{Output: []byte(`"shelf 4"`)})
		s.report("chrge", flow.Report{Error: "no such service", Fatal: true})
		s.ended(id, "failed")
		publish("charge")
		path := "/v1/tasks/" + id

		plan := s.call(200, "POST", path+"/fork", obj{"newest": true, "dry_run": true})
		require.Equal(s, []any{"reserve"}, values(obj{"items": plan["keeps"]}, "node"))
		require.Equal(s, []any{"changed"}, values(obj{"items": plan["again"]}, "why"))
		require.NotContains(s, plan, "id")
		require.Len(s, items(s.get("/v1/tasks?flow="+slug)), 1, "a dry run starts nothing")

		forked := s.call(201, "POST", path+"/fork", obj{"newest": true, "params": obj{"sku": "tea", "amount": 7}, "idempotency_key": "again"})
		next := forked["id"].(string)
		require.Equal(s, next, s.call(200, "POST", path+"/fork", obj{"newest": true, "params": obj{"sku": "tea", "amount": 7}, "idempotency_key": "again"})["id"])
		job := s.claim("charge").Job
		require.JSONEq(s, "7", string(job.Input))
		require.NoError(s, s.endJob(job.ID(), flow.Report{Output: []byte(`true`)}))
		task := s.ended(next, "completed")
		require.Equal(s, obj{"reserved": "shelf 4", "paid": true}, task["result"])
		require.Equal(s, []any{id, 2.0}, []any{task["forked_from"], task["version"]})
		require.Equal(s, []any{"reserve", "charge"}, values(s.get("/v1/tasks/"+next+"/runs"), "node"))
		require.Equal(s, "failed", s.get(path)["state"], "the other one stays as it was")

		s.refused(404, "body.version", "POST", path+"/fork", obj{"version": 9})
		s.refused(400, "body.newest", "POST", path+"/fork", obj{"version": 1, "newest": true})
		s.refused(400, "body.from", "POST", path+"/fork", obj{"from": "nowhere"})
		s.refused(409, "path.task", "POST", "/v1/tasks/"+next+"/fork", obj{"newest": true})
		s.refused(404, "path.task", "POST", "/v1/tasks/none/fork", obj{"newest": true})
	})
}
