package v1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATimelineGoesOnWithItsTask(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.reviewing(obj{"plan": "basic"})
		path := "/v1/tasks/" + id + "/timeline"
		before := s.get(path)
		require.Equal(t, -1.0, before["ended_ms"])
		lanes := before["lanes"].([]any)
		require.Equal(t, []any{"fetch", "completed", "list", "running"},
			[]any{lanes[0].(obj)["node"], lanes[0].(obj)["state"], lanes[1].(obj)["node"],
				lanes[1].(obj)["state"]})
		require.Equal(t, "manual", lanes[1].(obj)["waits"].([]any)[0].(obj)["kind"])
		for unit := range 2 {
			s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": unit, "output": unit})
		}
		done := s.ended(id, "completed")
		after := s.get(path)
		require.Greater(t, after["seq"], before["seq"])
		require.GreaterOrEqual(t, after["ended_ms"], 0.0)
		lane := after["lanes"].([]any)[1].(obj)
		require.Equal(t, "completed", lane["state"])
		require.Len(t, lane["attempts"], 2)
		require.Contains(t, after["critical"], 1.0)
		require.Equal(t, after, s.get(path), "whoever asks is told the same")

		ended, err := time.Parse(time.RFC3339, done["ended_at"].(string))
		require.NoError(t, err)
		require.Empty(t, s.get(path + "?from=" + ended.Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z"))["lanes"])
		s.refused(404, "path.task", "GET", "/v1/tasks/no/timeline", nil)
		s.refused(404, "query.scope", "GET", path+"?scope=no%231", nil)
		s.refused(400, "query.bins", "GET", path+"?bins=2001", nil)
		s.refused(400, "query.to", "GET", path+"?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", nil)
	})
}

func TestAScopeInsideHasATimelineOfItsOwn(t *testing.T) {
	s := start(t)
	id := s.task(`
start: order
nodes:
  order: {kind: subflow, flow: {start: pay, nodes: {pay: {exec_type: queue, service: pay}}}}
`)
	s.until("/v1/tasks/"+id+"/waiting", func(v obj) bool { return len(v["waits"].([]any)) > 0 })
	root := s.get("/v1/tasks/" + id + "/timeline")
	require.Equal(t, true, root["lanes"].([]any)[0].(obj)["has_inner_scope"])
	inside := s.get("/v1/tasks/" + id + "/timeline?scope=order%231&bins=7")["lanes"].([]any)[0].(obj)
	require.Equal(t, []any{"pay", "worker"}, []any{inside["node"], inside["waits"].([]any)[0].(obj)["kind"]})
}

func TestADigestIsReadAsItWas(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.reviewing(obj{"plan": "basic"})
		path := "/v1/tasks/" + id + "/digest"
		before := s.get(path)
		for unit := range 2 {
			s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": unit, "output": unit})
		}
		s.ended(id, "completed")
		now := s.get(path)
		require.NotEqual(t, before["scopes"], now["scopes"])
		then := s.get(fmt.Sprintf("%s?at_seq=%v", path, before["seq"]))
		for _, name := range []string{"seq", "state", "scopes", "base"} {
			require.Equal(t, before[name], then[name], name)
		}
		require.NotContains(t, then, "ended_at")
		require.Equal(t, now, s.get(fmt.Sprintf("%s?at_seq=%v", path, now["seq"])))
		require.Equal(t, now, s.get(path+"?at_seq=999999"), "later than the last row it is as it is")
		first := s.get(path + "?at_seq=1")
		require.Equal(t, 1.0, first["seq"])
		s.refused(404, "path.task", "GET", "/v1/tasks/no/digest?at_seq=1", nil)
	})
}
