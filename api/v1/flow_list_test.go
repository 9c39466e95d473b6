package v1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// slugs returns the slugs of a page of flows.
func slugs(page obj) (list []string) {
	for _, f := range items(page) {
		list = append(list, f["slug"].(string))
	}
	return list
}

func TestFlowsAreFoundAndSortedPageByPage(t *testing.T) {
	onBothStores(t, func(s *server) {
		for _, slug := range []string{"b-one", "c-two", "a-one", "d-one"} {
			s.call(201, "PUT", "/v1/flows/"+slug, obj{"start": "x", "nodes": obj{"x": obj{"exec_type": "queue", "service": "x"}}})
		}
		for query, want := range map[string][]string{
			"sort=name":       {"a-one", "b-one", "c-two", "d-one"},
			"q=ONE":           {"d-one", "a-one", "b-one"},
			"q=one&sort=name": {"a-one", "b-one", "d-one"},
			"sort=-created":   {"d-one", "a-one", "c-two", "b-one"},
			"q=nothing":       nil,
			"q=C-T&sort=name": {"c-two"},
		} {
			var found []string
			for next := ""; ; {
				page := s.get(fmt.Sprintf("/v1/flows?%s&limit=2&cursor=%s", query, next))
				found = append(found, slugs(page)...)
				if next, _ = page["next"].(string); next == "" {
					break
				}
			}
			require.Equal(t, want, found, query)
		}
	})
}

func TestFlowsThatAreDeletedMeanwhileMoveNoOthers(t *testing.T) {
	onBothStores(t, func(s *server) {
		made := []int64{1, 2, 3, 3, 3, 4, 5, 6}
		for i, at := range made {
			require.NoError(s, s.store.CreateFlow(s.Context(),
				persistence.Flow{ID: fmt.Sprint("flow-", i), Slug: fmt.Sprint("f", i), Name: "f",
					CreatedAt: at}))
		}
		page := s.get("/v1/flows?limit=4")
		require.Equal(s, []string{"f7", "f6", "f5", "f4"}, slugs(page))
		s.call(200, "DELETE", "/v1/flows/f0", nil)
		next := "/v1/flows?limit=4&cursor=" + page["next"].(string)
		require.Equal(s, []string{"f3", "f2", "f1"}, slugs(s.get(next)), "one that had yet to be told is gone")
		s.call(200, "DELETE", "/v1/flows/f7", nil)
		require.Equal(s, []string{"f3", "f2", "f1"}, slugs(s.get(next)), "one that was told is gone")
		s.call(200, "DELETE", "/v1/flows/f4", nil)
		require.Equal(s, []string{"f3", "f2", "f1"}, slugs(s.get(next)), "the one that was told last is gone")
		require.Equal(s, []string{"f3", "f2", "f1"}, slugs(s.get(next+"&q=f")))
	})
}

func TestASummaryTellsHowAFlowGoes(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`)
		f := s.get("/v1/flows/" + slug)
		require.NotContains(t, f, "summary")
		s.counted(f["id"].(string), "v", time.Now().Add(-3*time.Hour), 10, 20, 30)
		s.counted(f["id"].(string), "w", time.Now().Add(-4*time.Hour), 40)
		s.counted(f["id"].(string), "w", time.Now().Add(-48*time.Hour), 50)
		var ids []string
		for range 21 {
			ids = append([]string{s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)}, ids...)
		}
		s.call(200, "POST", "/v1/tasks/"+ids[0]+"/cancel", obj{})
		s.ended(ids[0], "canceled")
		s.call(201, "PUT", "/v1/schedules/late", obj{"flow": slug, "every": "10h"})
		s.call(201, "PUT", "/v1/schedules/soon", obj{"flow": slug, "every": "1h"})

		sum := items(s.get("/v1/flows?with=summary"))[0]["summary"].(obj)
		tasks := sum["tasks"].(obj)
		require.Equal(t, []any{4., 0., 40.}, []any{tasks["completed"], tasks["failed"], tasks["duration"].(obj)["max_ms"]})
		newest := sum["latest_tasks"].([]any)
		require.Len(t, newest, 20)
		require.Equal(t, []any{ids[0], "canceled"}, []any{newest[0].(obj)["id"], newest[0].(obj)["state"]})
		next, err := time.Parse(time.RFC3339, sum["next_at"].(string))
		require.NoError(t, err)
		require.Less(t, time.Until(next), 61*time.Minute)
	})
}
