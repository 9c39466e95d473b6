package v1_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestEventsAreReadBackwards(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.reviewing(obj{"plan": "basic"})
		for _, key := range []string{"one", "two", "three"} {
			s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": key, "value": 1})
		}
		path := "/v1/tasks/" + id + "/events?"
		all := values(s.get(path+"limit=500"), "id")
		slices.Reverse(all)
		var got []any
		for query := "order=desc&limit=3"; query != ""; {
			page := s.get(path + query)
			got, query = append(got, values(page, "id")...), ""
			if next, more := page["next"]; more {
				query = "order=desc&limit=3&before=" + next.(string)
			}
		}
		require.Equal(t, all, got)
		require.Equal(t, []any{"three", "two", "one"}, values(s.get(path+"order=desc&type=signal_received"), "key"))
		require.Equal(t, []any{"two"}, values(s.get(path+"q=TWO"), "key"))
		require.Equal(t, []any{"fetch"}, distinct(values(s.get(path+"node=fetch"), "node")))
		page := s.get(path + "type=signal_received&limit=2")
		require.Equal(t, []any{"one", "two"}, values(page, "key"))
		require.Equal(t, []any{"three"}, values(s.get(path+"type=signal_received&limit=2&after="+page["next"].(string)), "key"))
		s.refused(400, "query.after", "GET", path+"order=desc&after=1", nil)
		s.refused(400, "query.before", "GET", path+"before=1", nil)
		s.refused(404, "path.task", "GET", "/v1/tasks/no/events?order=desc", nil)
	})
}

func distinct(list []any) (all []any) {
	for _, v := range list {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func TestRunsArePicked(t *testing.T) {
	s := start(t)
	id := s.reviewing(obj{"plan": "basic"})
	path := "/v1/tasks/" + id + "/runs?"
	require.Equal(t, []any{"fetch"}, values(s.get(path+"node=fetch"), "node"))
	require.Equal(t, []any{"list", "list"}, values(s.get(path+"state=running"), "node"))
	page := s.get(path + "node=list&limit=1")
	require.Len(t, page["items"], 1)
	next := s.get(path + "node=list&limit=1&cursor=" + page["next"].(string))
	require.Equal(t, []any{1.0}, values(next, "unit"))
	require.Equal(t, []any{1.0}, values(s.get(path+"node=list&unit=1"), "unit"))
	require.Empty(t, s.get(path + "scope=no%231")["items"])
	require.Len(t, s.get(path + "scope=/")["items"], 3)
}

func TestStatesOfUnitsAreRunLengthEncoded(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": s.publish(review), "input": obj{}})["id"].(string)
		job := s.claim("fetch").Job
		require.NoError(t, s.endJob(job.ID(), flow.Report{Output: []byte(`[1,2,3,4,5]`)}))
		s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": 1, "output": 1})
		s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": 2, "output": 1})
		path := "/v1/tasks/" + id + "/units/states?step=list"
		states := s.get(path)
		require.Equal(t, 5.0, states["total"])
		require.Equal(t, []any{obj{"count": 1.0, "state": "dispatched"},
			obj{"count": 2.0, "state": "completed"}, obj{"count": 2.0, "state": "dispatched"}},
			states["runs"])
		require.Equal(t, []any{3.0, 4.0}, values(s.get("/v1/tasks/"+id+"/units?step=list&from=3"), "unit"))
		for _, unit := range []int{0, 3, 4} {
			s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "list", "unit": unit, "output": 1})
		}
		s.ended(id, "completed")
		for range 2 { // the second time from the cache
			require.Equal(t, []any{obj{"count": 5.0, "state": "completed"}}, s.get(path)["runs"])
			require.Equal(t, []any{obj{"count": 5.0, "state": "completed"}}, s.get(path + "&visit=1")["runs"])
		}
		s.refused(404, "query.step", "GET", "/v1/tasks/"+id+"/units/states?step=no", nil)
	})
}
