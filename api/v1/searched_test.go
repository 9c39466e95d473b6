package v1_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestASearchLooksAtSoManyTasksAtOnceAndGoesOn(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
		row, err := s.store.Task(s.Context(), s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string))
		require.NoError(s, err)
		now := s.engine.Now().UnixMilli()
		const many, batch = 20_500, 500 // 5 times as many as are looked at at once, and more
		for from := 0; from < many; from += batch {
			commits := make([]persistence.Commit, batch)
			for i := range commits {
				n := from + i
				failed := &persistence.Columns{Status: "failed", Cursor: "a", Error: "a: usual", EndedAt: now}
				if n == 100 || n == many-100 {
					failed.Error = "a: a Needle"
				}
				commits[i] = persistence.Commit{Task: fmt.Sprintf("t%05d", n), Seq: 1, At: now, Events: []byte("[]"), Columns: failed,
					Create: &persistence.Create{FlowID: row.FlowID, VersionID: row.VersionID, CreatedAt: now - many + int64(n)}}
			}
			results, err := s.store.Commit(s.Context(), s.engine.Incarnation(), commits)
			require.NoError(s, err)
			for _, err := range results {
				require.NoError(s, err)
			}
		}
		for _, search := range []string{"q=needle", "error=" + url.QueryEscape("a: a Needle")} {
			var found []string
			pages := 0
			for path := "/v1/tasks?" + search; path != ""; pages++ {
				page := s.get(path)
				for _, item := range page["items"].([]any) {
					found = append(found, item.(obj)["id"].(string))
				}
				next, more := page["next"].(string)
				require.Equal(s, more, page["searched_to"] != nil, "%s, page %d", search, pages)
				if path = ""; more {
					path = "/v1/tasks?" + search + "&cursor=" + url.QueryEscape(next)
				}
			}
			require.Equal(s, []string{"t20400", "t00100"}, found, search)
			require.Equal(s, 6, pages, search)
			count := s.get("/v1/tasks/count?" + search)
			require.EqualValues(s, 1, count["count"], search)
			require.Equal(s, false, count["exact"], search)
		}
		all := s.get("/v1/tasks?state=failed")
		require.NotContains(s, all, "searched_to", "an index has them")
	})
}
