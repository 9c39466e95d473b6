package v1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slugs are those of a page of flows.
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
		newest := sum["newest"].([]any)
		require.Len(t, newest, 20)
		require.Equal(t, []any{ids[0], "canceled"}, []any{newest[0].(obj)["id"], newest[0].(obj)["state"]})
		next, err := time.Parse(time.RFC3339, sum["next"].(string))
		require.NoError(t, err)
		require.Less(t, time.Until(next), 61*time.Minute)
	})
}
