package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestTasksAreSearchedSortedAndCounted(t *testing.T) {
	onBothStores(t, func(s *server) {
		one, two := s.publish(
			`{"start":"a","on_error":"fail","nodes":{"a":{"exec_type":"queue","service":"q"}}}`),
			s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"other"}}}`)
		begin := func(slug, team string) string {
			return s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "labels": obj{"team": team}})["id"].(string)
		}
		first := begin(one, "blue")
		job := s.claim("q").Job
		require.NoError(t, s.endJob(job.ID(), flow.Report{Error: "Card refused"}))
		s.ended(first, "failed")
		second, third := begin(one, "red"), begin(two, "blue")
		ids := func(query string) []any { return values(s.get("/v1/tasks?"+query), "id") }
		require.Equal(t, []any{third, second, first}, ids(""))
		require.Equal(t, []any{first, second, third}, ids("sort=created"))
		require.Equal(t, []any{first}, ids("sort=-ended"))
		require.Equal(t, []any{first}, ids("q=card"))
		require.Equal(t, []any{third, first}, ids("q=blue"))
		require.Equal(t, []any{second}, ids("q="+second))
		require.Equal(t, []any{third, second, first}, ids("flow="+one+"&flow="+two))
		require.Equal(t, []any{second, first}, ids("flow="+one+"&version=1"))
		require.Empty(t, ids("version=2"))
		require.Equal(t, []any{first}, ids("ended_from=2001-01-01T00:00:00Z"))
		require.Empty(t, ids("ended_to=2001-01-01T00:00:00Z"))
		require.Equal(t, []any{first}, ids("duration_max=1000000"))
		page := s.get("/v1/tasks?sort=created&limit=2")
		require.Equal(t, []any{third}, ids("sort=created&limit=2&cursor="+page["next"].(string)))

		require.Equal(t, obj{"count": 3.0, "exact": true, "groups": []any{}}, s.get("/v1/tasks/count"))
		require.Equal(t, []any{obj{"key": "blue", "count": 2.0}, obj{"key": "red", "count": 1.0}},
			s.get("/v1/tasks/count?group_by=label:team")["groups"])
		groups := s.get("/v1/tasks/count?group_by=flow&q=blue")["groups"].([]any)
		require.ElementsMatch(t, []any{one, two}, []any{groups[0].(obj)["key"], groups[1].(obj)["key"]})
		require.Equal(t, "failed", s.get("/v1/tasks/count?group_by=state")["groups"].([]any)[0].(obj)["key"])
		s.refused(400, "query.group_by", "GET", "/v1/tasks/count?group_by=color", nil)
	})
}
