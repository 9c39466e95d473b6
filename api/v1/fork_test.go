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

func TestAForkContinuesWithAFixedVersion(t *testing.T) {
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

		plan := s.call(200, "POST", path+"/fork", obj{"latest": true, "dry_run": true})
		require.Equal(s, []any{"reserve"}, values(obj{"items": plan["kept_steps"]}, "node"))
		require.Equal(s, []any{`"shelf 4"`}, values(obj{"items": plan["kept_steps"]}, "output"), "what is recorded is answered")
		require.Equal(s, []any{"changed"}, values(obj{"items": plan["rerun_steps"]}, "reason"))
		require.NotContains(s, plan, "id")
		told := plan["preview"].(obj)
		require.Equal(s, []any{"charge"}, values(obj{"items": told["steps"]}, "node"))
		require.Equal(s, []any{"called"}, values(obj{"items": told["steps"]}, "outcome"))
		require.Equal(s, []any{"charge"}, values(obj{"items": told["steps"]}, "service"))
		require.NotContains(s, told, "state", "nobody knows how it would end")
		require.Len(s, items(s.get("/v1/tasks?flow="+slug)), 1, "a dry run starts nothing")

		forked := s.call(201, "POST", path+"/fork",
			obj{"latest": true, "params": obj{"sku": "tea", "amount": 7}, "idempotency_key": "again"})
		next := forked["id"].(string)
		require.Equal(s, next, s.call(200, "POST", path+"/fork",
			obj{"latest": true, "params": obj{"sku": "tea", "amount": 7}, "idempotency_key": "again"})["id"])
		job := s.claim("charge").Job
		require.JSONEq(s, "7", string(job.Input))
		require.NoError(s, s.endJob(job.ID(), flow.Report{Output: []byte(`true`)}))
		task := s.ended(next, "completed")
		require.Equal(s, obj{"reserved": "shelf 4", "paid": true}, task["result"])
		require.Equal(s, []any{id, 2.0}, []any{task["forked_from"], task["version"]})
		require.Equal(s, []any{"reserve", "charge"}, values(s.get("/v1/tasks/"+next+"/runs"), "node"))
		require.Equal(s, "failed", s.get(path)["state"], "the other one stays as it was")

		moved := s.call(201, "POST", path+"/fork",
			obj{"latest": true, "shared": obj{"reserved": "shelf 9", "note": []int{1}}})["id"].(string)
		s.report("charge", flow.Report{Output: []byte(`true`)})
		require.Equal(s, obj{"reserved": "shelf 9", "note": []any{1.0}, "paid": true}, s.ended(moved, "completed")["result"])
		told = s.get("/v1/tasks/" + moved + "/events?type=signal_received")
		require.Equal(s, []any{"note", "reserved"}, values(told, "key"), "what was set is a part of its history")
		require.Equal(s, []any{"fork", "fork"}, values(told, "sent_by"))

		s.refused(400, "body.shared", "POST", path+"/fork", obj{"latest": true, "shared": obj{"_rt": 1}})
		s.refused(404, "body.version", "POST", path+"/fork", obj{"version": 9})
		s.refused(400, "body.latest", "POST", path+"/fork", obj{"version": 1, "latest": true})
		s.refused(400, "body.from", "POST", path+"/fork", obj{"from": "nowhere"})
		s.refused(409, "path.task", "POST", "/v1/tasks/"+next+"/fork", obj{"latest": true})
		s.refused(404, "path.task", "POST", "/v1/tasks/none/fork", obj{"latest": true})
	})
}

const declared = `
inputs: {amount: int, note: optional text}
start: charge
on_error: fail
nodes:
  charge: {exec_type: queue, service: SERVICE, prep: {input_key: $params.amount}}
`

func TestADryRunRefusesWhatTheForkWould(t *testing.T) {
	s := start(t)
	slug, service := s.unique("declared"), s.unique("charge")
	definition := strings.ReplaceAll(declared, "SERVICE", service)
	s.call(201, "PUT", "/v1/flows/"+slug, definition, "Content-Type", "application/yaml")
	path := "/v1/tasks/" + s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"amount": 3}})["id"].(string)
	s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(definition, "note: optional", "note:"), "Content-Type", "application/yaml")
	s.report(service, flow.Report{Error: "declined", Fatal: true})
	s.ended(strings.TrimPrefix(path, "/v1/tasks/"), "failed")
	for name, c := range map[string]struct {
		fork   obj
		status int
		where  string
		what   string
	}{
		"params that are not what is declared": {obj{"params": obj{"amuont": 3}}, 422,
			"body.params", "the params do not match the inputs that the flow declares"},
		"those of the task in a stricter version": {obj{"latest": true}, 422, "body.params",
			"the params do not match the inputs that the flow declares"},
		"params of another kind": {obj{"params": []any{1}}, 400, "body.params",
			"params must be a JSON object"},
		"params that are too large": {obj{"params": obj{"amount": 3,
			"note": strings.Repeat("x", 1<<20)}}, 422, "body.params",
			"params has 1048598 bytes, more than the limit of 1048576; keep large data " +
				"elsewhere and pass a reference"},
		"a node that is not there": {obj{"from": "nowhere"}, 400, "body.from",
			"the flow has no node nowhere to go on from"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, dry := range []bool{true, false} {
				c.fork["dry_run"] = dry
				p := s.refused(c.status, c.where, "POST", path+"/fork", c.fork)
				require.Equal(t, c.what, p["message"])
			}
		})
	}
	p := s.refused(422, "body.params", "POST", path+"/fork", obj{"latest": true, "dry_run": true})
	require.Equal(t, []any{obj{"field": "$params.note", "message": "is missing: text was declared"}}, p["errors"])
	require.Equal(t, "GET /v1/flows/"+slug+" returns the inputs of the flow", p["hint"])
	require.Len(t, items(s.get("/v1/tasks?flow="+slug)), 1, "nothing was started")
}

func TestAForkOfATooLongHistoryIsRefused(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug, service := s.unique("long"), s.unique("charge")
		s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(declared, "SERVICE", service), "Content-Type", "application/yaml")
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"amount": 3}})["id"].(string)
		s.report(service, flow.Report{Error: "declined", Fatal: true})
		s.ended(id, "failed")
		path, mebibyte := "/v1/tasks/"+id, strings.Repeat("x", 1<<20-2)
		for range flow.MaxFork>>20 - 1 {
			s.call(200, "POST", path+"/signal", obj{"key": "note", "value": mebibyte})
		}
		forked := s.call(201, "POST", path+"/fork", obj{"from": "charge"})
		require.Equal(s, 3.0, s.get("/v1/tasks/" + forked["id"].(string))["params"].(obj)["amount"],
			"what is within the bound is taken over")
		s.call(200, "POST", path+"/signal", obj{"key": "note", "value": mebibyte})
		for _, dry := range []bool{true, false} {
			p := s.refused(422, "path.task", "POST", path+"/fork", obj{"from": "charge", "dry_run": dry})
			require.Contains(s, p["message"], "has more than the 16777216 bytes that a fork may have: start a new task")
		}
	})
}

func TestAForkContinuesFromAnyRow(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.unique("order")
		s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(order, "SERVICE", "charge"), "Content-Type", "application/yaml")
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"sku": "tea", "amount": 3}})["id"].(string)
		path := "/v1/tasks/" + id
		s.report("reserve", flow.Report{Output: []byte(`"shelf 4"`)})
		first := s.claim("charge").Job // the task continues and waits for it
		ends := items(s.get(path + "/events?type=step_ended"))
		require.Len(s, ends, 1)
		row := ends[0]["seq"]

		plan := s.call(200, "POST", path+"/fork", obj{"at_seq": row, "dry_run": true})
		require.Equal(s, []any{"reserve"}, values(obj{"items": plan["kept_steps"]}, "node"))
		forked := s.call(201, "POST", path+"/fork", obj{"at_seq": row, "params": obj{"sku": "tea", "amount": 8}})
		second := s.claim("charge").Job
		require.JSONEq(s, "8", string(second.Input))
		require.NoError(s, s.endJob(second.ID(), flow.Report{Output: []byte(`"late"`)}))
		require.Equal(s, obj{"reserved": "shelf 4", "paid": "late"}, s.ended(forked["id"].(string), "completed")["result"])
		require.NoError(s, s.endJob(first.ID(), flow.Report{Output: []byte(`true`)}))
		require.Equal(s, obj{"reserved": "shelf 4", "paid": true}, s.ended(id, "completed")["result"], "the other one goes its own way")

		require.Equal(s, []any{0.0, 1.0}, func() []any {
			plan := s.call(200, "POST", path+"/fork", obj{"at_seq": 1, "dry_run": true})
			return []any{plan["kept_count"], plan["rerun_count"]}
		}(), "also when it has completed")
		s.refused(400, "body.at_seq", "POST", path+"/fork", obj{"at_seq": 1, "from": "charge"})
		s.refused(400, "body.at_seq", "POST", path+"/fork", obj{"at_seq": 900})
	})
}
