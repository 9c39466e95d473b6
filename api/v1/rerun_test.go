package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestATaskIsDoneAgainFromTheBeginning(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug, service := s.unique("declared"), s.unique("charge")
		definition := strings.ReplaceAll(declared, "SERVICE", service)
		s.call(201, "PUT", "/v1/flows/"+slug, definition, "Content-Type", "application/yaml")
		first := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"amount": 3},
			"labels": obj{"customer": "7", "triggered_by": "schedule", "schedule": "nightly",
				"slot": "2026-01-31T02:30:00Z"}})["id"].(string)
		path := "/v1/tasks/" + first

		again := s.call(201, "POST", path+"/rerun", nil)
		next := again["id"].(string)
		require.Equal(s, []any{first, 1.0, true}, []any{again["forked_from"], again["version"], again["created"]})
		task := s.get("/v1/tasks/" + next)
		require.Equal(s, []any{obj{"amount": 3.0}, obj{"customer": "7"}, first}, []any{task["params"], task["labels"], task["forked_from"]})
		s.report(service, flow.Report{Output: []byte("1")})
		s.report(service, flow.Report{Output: []byte("2")})
		s.ended(first, "completed")
		s.ended(next, "completed")
		require.Equal(s, []any{"charge"}, values(s.get("/v1/tasks/"+next+"/runs"), "node"), "nothing of the other one's history is shared")

		dry := s.call(200, "POST", path+"/rerun", obj{"dry_run": true})
		require.NotContains(s, dry, "id")
		foreseen := dry["preview"].(obj)
		require.Equal(s, []any{"recorded"}, values(obj{"items": foreseen["steps"]}, "outcome"), "it was done with the same input")
		require.Contains(s, []any{"1", "2"}, values(obj{"items": foreseen["steps"]}, "output")[0])
		require.Equal(s, "completed", foreseen["state"])
		other := s.call(200, "POST", path+"/rerun", obj{"dry_run": true, "params": obj{"amount": 4}})["preview"].(obj)
		require.Equal(s, []any{"called"}, values(obj{"items": other["steps"]}, "outcome"))
		require.Len(s, items(s.get("/v1/tasks?flow="+slug)), 2, "nothing was started")

		s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(definition, "note: optional",
			"tip: optional"), "Content-Type", "application/yaml")
		ask := obj{"latest": true, "params": obj{"amount": 9, "tip": "x"}, "idempotency_key": "again"}
		third := s.call(201, "POST", path+"/rerun", ask)
		require.Equal(s, 2.0, third["version"])
		require.Equal(s, third["id"], s.call(200, "POST", path+"/rerun", ask)["id"])
		s.refused(409, "body.idempotency_key", "POST", path+"/fork",
			obj{"latest": true, "from": "charge", "params": obj{"amount": 9, "tip": "x"},
				"idempotency_key": "again"})
		require.Equal(s, 9.0, s.get("/v1/tasks/" + third["id"].(string))["params"].(obj)["amount"])

		s.refused(422, "body.params", "POST", path+"/rerun", obj{"params": obj{"amuont": 1}})
		s.refused(404, "body.version", "POST", path+"/rerun", obj{"version": 9})
		s.refused(400, "body.latest", "POST", path+"/rerun", obj{"version": 1, "latest": true})
		s.refused(404, "path.task", "POST", "/v1/tasks/none/rerun", obj{})
	})
}

func TestATaskIsDoneAgainWithItsOwnOfSeveralVersionsWithOneNumber(t *testing.T) {
	s := start(t)
	id := s.call(200, "POST", "/api/flows", obj{"Name": "twice"})["id"]
	for _, action := range []string{"one", "two"} {
		v := s.call(200, "POST", "/api/flows/version", obj{"FlowID": id, "Version": 1, "Status": "published",
			"DefinitionJSON": `{"start":"x","nodes":{"x":{"kind":"choice","default_action":"` + action + `"}}}`})["id"]
		task := s.call(200, "POST", "/api/tasks", obj{"FlowVersionID": v})["id"].(string)
		for path, ask := range map[string]obj{"/rerun": {}, "/fork": {"from": "x"}} {
			s.ended(task, "completed")
			next := s.call(201, "POST", "/v1/tasks/"+task+path, ask)["id"].(string)
			require.Equal(t, action, s.ended(next, "completed")["last_action"], path)
		}
	}
}
