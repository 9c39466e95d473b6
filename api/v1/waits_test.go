package v1_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTasksAreListedByWhatTheyWaitFor(t *testing.T) {
	onBothStores(t, func(s *server) {
		begin := func(definition string) (id string) {
			id = s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(definition)})["id"].(string)
			s.until("/v1/tasks/"+id, func(v obj) bool { return v["state"] == "running" })
			return id
		}
		asks := begin(`{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.go"}}}}`)
		naps := begin(`{"start":"a","nodes":{"a":{"kind":"timer","params":{"delay_ms":900000}}}}`)
		works := begin(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
		ids := func(query string) []any { return values(s.get("/v1/tasks?"+query), "id") }
		require.Equal(t, []any{asks}, ids("waiting_for=approval"))
		require.Equal(t, []any{naps}, ids("waiting_for=timer"))
		require.Equal(t, []any{naps, asks}, ids("waiting_for=approval,timer"))
		require.Equal(t, []any{asks, naps}, ids("waiting_for=approval&waiting_for=timer&sort=created"))
		require.Empty(t, ids("waiting_for=signal&waiting_for=manual"))
		require.Empty(t, ids("waiting_for=approval&state=completed"))
		require.Equal(t, 2.0, s.get("/v1/tasks/count?waiting_for=approval,timer")["count"])
		s.refused(400, "query.waiting_for", "GET", "/v1/tasks?waiting_for=godot", nil)

		row := s.get("/v1/tasks?waiting_for=approval")["items"].([]any)[0].(obj)
		require.Equal(t, []any{"approval"}, row["waiting_for"])
		wait := row["wait"].(obj)
		require.NotEmpty(t, wait["waiting_since"])
		delete(wait, "waiting_since")
		require.Equal(t, obj{"kind": "approval", "node": "a", "visit": 1.0, "key": "go"}, wait)
		require.NotContains(t, s.get("/v1/tasks?id_prefix=" + works)["items"].([]any)[0], "wait")

		s.call(200, "POST", "/v1/tasks/"+asks+"/signal", obj{"key": "go", "value": true, "sent_by": "approver"})
		s.ended(asks, "completed")
		require.Empty(t, ids("waiting_for=approval"))
		require.NotContains(t, s.get("/v1/tasks/"+asks), "waiting_for")
	})
}

func TestAQueuedJobShowsItsPositionAndEligibleWorkers(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q","labels":["gpu"]}}}`)
		wait := func(before float64) obj {
			id := s.call(201, "POST", "/v1/tasks", obj{"flow": flow})["id"].(string)
			var told obj
			s.until("/v1/tasks/"+id+"/waiting", func(v obj) bool {
				for _, w := range v["waits"].([]any) {
					told = w.(obj)
				}
				return told["ahead"] == before
			})
			return told
		}
		first := wait(0)
		require.Equal(t, "job", first["kind"])
		require.Equal(t, "q", first["service"])
		require.Equal(t, []any{"gpu"}, first["labels"])
		require.Equal(t, 0.0, first["workers"], "nobody could take it")

		s.call(200, "PUT", "/v1/workers/plain", obj{"services": []string{"q"}})
		s.call(200, "PUT", "/v1/workers/other", obj{"services": []string{"r"}, "labels": []string{"gpu"}})
		require.Equal(t, 0.0, wait(1)["workers"])
		s.call(200, "PUT", "/v1/workers/able", obj{"services": []string{"r", "q"}, "labels": []string{"fast", "gpu"}})
		require.Equal(t, 1.0, wait(2)["workers"])
	})
}

func TestAQueueCountsTheTasksThatAreListed(t *testing.T) {
	onBothStores(t, func(s *server) {
		wide := s.publish(`{"nodes":{"a":{"each":{"items":"$run.list"},"route":"queue","service":"q"}}}`)
		plain := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
		other := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"r"}}}`)
		begin := func(flow string) string {
			return s.call(201, "POST", "/v1/tasks", obj{"flow": flow, "params": obj{"list": []int{1, 2, 3}}})["id"].(string)
		}
		one, two := begin(wide), begin(plain)
		begin(other)
		queue := func() (found obj) {
			for _, q := range s.get("/v1/queues")["items"].([]any) {
				if q.(obj)["service"] == "q" {
					found = q.(obj)
				}
			}
			return found
		}
		require.Eventually(t, func() bool { return queue()["waiting"] == 4.0 }, deadline, 10*time.Millisecond)
		require.Equal(t, []any{2.0, 0.0}, []any{queue()["tasks"], queue()["workers"]})
		require.Equal(t, 2.0, s.get("/v1/tasks/count?queued=q")["count"])
		require.Equal(t, []any{two, one}, values(s.get("/v1/tasks?queued=q"), "id"))
		require.Equal(t, []any{one}, values(s.get("/v1/tasks?queued=q&sort=created&limit=1"), "id"))
		s.call(200, "PUT", "/v1/workers/w", obj{"services": []string{"q", "s", "q"}})
		require.Equal(t, 1.0, queue()["workers"])
		bulk := s.call(200, "POST", "/v1/tasks/bulk", obj{"action": "cancel", "filter": obj{"queued": "q"}, "dry_run": true})
		require.Equal(t, 2.0, bulk["tasks"])
	})
}
