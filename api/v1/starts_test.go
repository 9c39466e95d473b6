package v1_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyTasksAreStartedAtOnce(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		var starts []any
		for i := range 300 {
			starts = append(starts, obj{"flow": slug, "params": obj{"n": i}, "labels": obj{"n": fmt.Sprint(i)}})
		}
		started := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts}))
		require.Len(s, started, 300)
		for i, item := range started {
			require.Equal(s, true, item["created"])
			require.NotContains(s, item, "problem")
			if i%50 == 0 {
				task := s.get("/v1/tasks/" + item["id"].(string))
				require.Equal(s, obj{"n": float64(i)}, task["params"], "each is in its place")
			}
		}
		require.Equal(s, 300.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
	})
}

func TestOfManyStartsEachIsRefusedByItself(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		started := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": []any{
			obj{"flow": slug},
			obj{"flow": "nobody's"},
			obj{"flow": slug, "params": []any{1}},
			obj{"flow": slug, "wait_ms": 5},
			obj{"flow": slug, "dry_run": true},
			obj{"flow": slug, "labels": obj{"a:b": "c"}},
			obj{"flow": slug},
		}}))
		var told []any
		for _, item := range started {
			if p, ok := item["problem"].(obj); ok {
				require.NotContains(s, item, "id")
				require.Contains(s, p["detail"], p["where"])
				told = append(told, fmt.Sprint(p["status"], " ", p["where"]))
			} else {
				told = append(told, item["created"])
			}
		}
		require.Equal(s, []any{true, "404 body.starts[1].flow", "400 body.starts[2].params", "400 body.starts[3].wait_ms", "400 body.starts[4].dry_run", "400 body.starts[5].labels", true}, told)
		require.Equal(s, 2.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
		s.refused(400, "body.starts", "POST", "/v1/tasks/starts", obj{"starts": []any{}})
	})
}

func TestManyStartsMayBeSentAgain(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		first := []any{obj{"flow": slug, "params": obj{"n": 0}}, obj{"flow": slug, "params": obj{"n": 1}, "idempotency_key": "mine"}}
		ids := func(starts []any, created ...any) (all []any) {
			for i, item := range items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": starts}, "Idempotency-Key", "once")) {
				require.Equal(s, created[i], item["created"])
				all = append(all, item["id"])
			}
			return all
		}
		made := ids(first, true, true)
		require.Equal(s, made, ids(append(first, obj{"flow": slug}), false, false, true)[:2])
		require.Equal(s, made[1], s.call(200, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"n": 1}, "idempotency_key": "mine"})["id"])
		require.Equal(s, 3.0, s.get("/v1/tasks/count?flow=" + slug)["count"])
		other := items(s.call(200, "POST", "/v1/tasks/starts", obj{"starts": []any{obj{"flow": slug, "params": obj{"n": 7}}}}, "Idempotency-Key", "once"))
		require.Equal(s, "body.starts[0].idempotency_key", other[0]["problem"].(obj)["where"])
	})
}
