package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARepeatedBulkRerunStartsEachTaskOnce(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(
			`{"start":"nap","nodes":{"nap":{"kind":"timer","params":{"delay_ms":1}},"say":{"kind":"timer","params":{"delay_ms":1}}},"edges":[{"from":"nap","action":"default","to":"say"}]}`)
		var olds []any
		for range 3 {
			id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "labels": obj{"part": "old"}})["id"].(string)
			s.ended(id, "completed")
			olds = append([]any{id}, olds...)
		}
		all := obj{"flow": []string{slug}}
		s.refused(400, "body.filter.created_to", "POST", "/v1/tasks/bulk", obj{"action": "rerun", "filter": all})
		s.refused(400, "body.from", "POST", "/v1/tasks/bulk", obj{"action": "rerun", "from": "say", "ids": olds})
		s.refused(400, "body.version", "POST", "/v1/tasks/bulk", obj{"action": "retry", "latest": true, "ids": olds})
		all["created_to"] = s.get("/v1/info")["store_time"]
		for action, more := range map[string]obj{"rerun": {}, "fork": {"from": "say"}} {
			body := obj{"action": action, "filter": all, "limit": 2}
			for name, value := range more {
				body[name] = value
			}
			bulk := func() obj { return s.call(200, "POST", "/v1/tasks/bulk", body, "Request-Id", "mine-"+action) }
			done := bulk()
			require.Equal(s, []any{2.0, 2.0, 0.0, 0.0}, bulkOf(done))
			started := obj{"items": done["started"]}
			require.Equal(s, olds[:2], values(started, "task"))
			for i, id := range values(started, "id") {
				task := s.ended(id.(string), "completed")
				require.Equal(s, olds[i], task["forked_from"])
			}
			again := bulk()
			require.Equal(s, []any{2.0, 0.0, 2.0, 0.0}, bulkOf(again),
				"the same request starts nothing twice, and picks nothing that it has started")
			require.Equal(s, done["started"], again["started"])
			body["cursor"] = done["next"]
			require.Equal(s, olds[2:], values(obj{"items": bulk()["started"]}, "task"))
		}
		require.Len(s, s.get("/v1/tasks?flow=" + slug)["items"], 9)
	})
}
