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

func TestABulkRerunIsAnsweredUnderOverload(t *testing.T) {
	for action, more := range map[string]obj{"rerun": {}, "fork": {"from": "nap"}} {
		t.Run(action, func(t *testing.T) {
			o := &overloaded{}
			o.starts.Store(6)
			s := start(t, overload(o))
			slug := s.publish(`{"start":"nap","nodes":{"nap":{"kind":"timer","params":{"delay_ms":1}}}}`)
			var olds []any
			for range 6 {
				id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
				s.ended(id, "completed")
				olds = append(olds, id)
			}
			body := obj{"action": action, "ids": olds}
			for name, value := range more {
				body[name] = value
			}
			bulk := func() obj { return s.call(200, "POST", "/v1/tasks/bulk", body, "Request-Id", "mine") }
			o.starts.Store(2)
			done := bulk()
			began := len(done["started"].([]any))
			require.LessOrEqual(s, began, 2)
			require.Equal(s, []any{6.0, float64(began), 0.0, float64(6 - began)}, bulkOf(done))
			for i, f := range done["failures"].([]any) {
				failure := f.(obj)
				require.Equal(s, olds[began+i], failure["task"])
				require.Equal(s, "busy", failure["code"])
				why := "there was no time left for this task: send the same request again"
				if i == 0 && o.asked.Load() > int64(6+began) { // the start that waited
					why = "the engine did not answer in time"
				}
				require.Equal(s, why, failure["message"])
			}
			o.starts.Store(100)
			again := bulk()
			for tries := 0; again["failed"] != 0.0 && tries < 100; tries++ { // the machine is slow
				again = bulk()
			}
			require.Len(s, again["started"], 6)
			require.GreaterOrEqual(s, again["unchanged"], float64(began), "nothing is started twice")
			require.EqualValues(s, 12, s.get("/v1/tasks/count?flow=" + slug)["count"])
		})
	}
}
