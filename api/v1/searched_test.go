package v1_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestASearchReadsALimitedNumberOfTasksPerPage(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
		row, err := s.store.Task(s.Context(), s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string))
		require.NoError(s, err)
		now := s.engine.Now().UnixMilli()
		const many, batch = 20_500, 500 // more than 5 times the tasks that one request searches
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
				if n < 3000 {
					commits[i].Create.Labels = map[string]string{"batch": "first"}
				}
			}
			s.commit(commits...)
		}
		for _, search := range []string{"q=needle", "error=" + url.QueryEscape("a: a Needle")} {
			found, pages := s.searched("/v1/tasks?"+search, "id")
			require.Equal(s, []any{"t20400", "t00100"}, found, search)
			require.Equal(s, 7, pages, search)
			count := s.get("/v1/tasks/count?" + search)
			require.EqualValues(s, 1, count["count"], search)
			require.Equal(s, false, count["exact"], search)
		}
		for _, filter := range []string{"", "&flow=" + slug} {
			require.Equal(s, obj{"count": 10_001.0, "exact": false,
				"groups": []any{obj{"key": "failed", "count": 10_000.0, "truncated": true},
					obj{"key": "running", "count": 1.0}}},
				s.get("/v1/tasks/count?group_by=state"+filter), "a state of few is counted beside one of very many")
		}
		require.Equal(s, []any{3000.0, true}, s.count("label=batch:first"))
		require.Equal(s, []any{1000.0, false}, s.count("label=batch:first&state=failed"),
			"those of a label that are something else, too, are looked at one by one")
		require.Equal(s, []any{1000.0, false}, s.count("group_by=state&label=batch:first&flow="+slug))
		dry := s.call(200, "POST", "/v1/tasks/bulk", obj{"action": "retry", "dry_run": true, "filter": obj{"q": "needle"}})
		require.Equal(s, []any{1.0, false}, []any{dry["tasks"], dry["exact"]}, "a command looks at no more")
		first := s.call(200, "POST", "/v1/tasks/bulk", obj{"action": "pause", "filter": obj{"q": "needle", "state": []string{"failed"}}})
		require.Equal(s, []any{1.0, s.get("/v1/tasks?state=failed&q=needle")["next"]}, []any{first["tasks"], first["next"]})
		all := s.get("/v1/tasks?state=failed")
		require.NotContains(s, all, "searched_until", "an index has them")
	})
}

// count returns how many tasks a query counts, and whether the count is exact.
func (s *server) count(query string) []any {
	s.Helper()
	answer := s.get("/v1/tasks/count?" + query)
	return []any{answer["count"], answer["exact"]}
}

// commit stores rows like a member.
func (s *server) commit(rows ...persistence.Commit) {
	s.Helper()
	results, err := s.store.Commit(s.Context(), s.engine.Incarnation(), rows)
	require.NoError(s, err)
	for _, err := range results {
		require.NoError(s, err)
	}
}

// searched reads all pages of a search. Each page may be empty.
func (s *server) searched(path, field string) (found []any, pages int) {
	for from := path; from != ""; pages++ {
		page := s.get(from)
		found = append(found, values(page, field)...)
		next, more := page["next"].(string)
		require.Equal(s, more, page["searched_until"] != nil, "%s, page %d", path, pages)
		if from = ""; more {
			from = path + "&cursor=" + url.QueryEscape(next)
		}
	}
	return found, pages
}

func TestASearchReadsALimitedNumberOfApprovalsPerPage(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
		row, err := s.store.Task(s.Context(), s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string))
		require.NoError(s, err)
		const many, batch = 9_000, 500 // more than twice the tasks that one request searches
		for from := 0; from < many; from += batch {
			c := persistence.Commit{Task: fmt.Sprintf("t%05d", from), Seq: 1, At: 1,
				Events: []byte("[]"), Columns: &persistence.Columns{Status: "completed", EndedAt: 1},
				Create: &persistence.Create{FlowID: row.FlowID, VersionID: row.VersionID, CreatedAt: 1}}
			for n := from; n < from+batch; n++ {
				a := flow.Approval{Address: flow.Address{Node: fmt.Sprint(n), Visit: 1},
					Title: "usual", Since: int64(1 + n/3), EndedAt: 5, State: flow.ApprovalAnswered}
				if n == 100 || n == many-100 {
					a.Title = "a Needle"
				}
				c.Approvals = append(c.Approvals, persistence.ApprovalRow{Approval: a, Task: c.Task, FlowID: row.FlowID})
			}
			s.commit(c)
		}
		for _, search := range []string{"q=needle", "q=needle&flow=" + slug} {
			found, pages := s.searched("/v1/approvals?state=answered&"+search, "node")
			require.Equal(s, []any{"8900", "100"}, found, search)
			require.Equal(s, 4, pages, search)
		}
		require.NotContains(s, s.get("/v1/approvals?state=answered"), "searched_until", "an index has them")
		require.Equal(s, []any{"100"}, values(s.get("/v1/approvals?state=answered&q=needle&task=t00000"), "node"))
	})
}
