package v1_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/persistence"
)

func TestStatisticsOfAFlowIncludeItsNodes(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(
			`{"start":"pay","on_error":"fail","nodes":{"pay":{"exec_type":"queue","service":"bank","retry":{"max_attempts":2}},"ship":{"exec_type":"queue","service":"post"}},
			"edges":[{"from":"pay","action":"default","to":"ship"}]}`)
		begin := func() string { return s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string) }
		carryOut := func(service, failure string) {
			job := s.claim(service).Job
			require.NoError(t, s.endJob(job.ID(), flow.Report{Error: failure}))
		}
		first := begin()
		carryOut("bank", "")
		carryOut("post", "")
		s.ended(first, "completed")
		second := begin()
		carryOut("bank", "card refused")
		carryOut("bank", "card refused")
		s.ended(second, "failed")
		begin() // not ended

		path := "/v1/flows/" + slug + "/stats"
		require.Eventually(t, func() bool { return s.get(path)["tasks"].(obj)["started"] == 3. }, 20*time.Second, 20*time.Millisecond)
		st := s.get(path + "?version=1&window=1h")
		tasks := st["tasks"].(obj)
		require.Equal(t, []any{slug, 3., 1., 1., 0., second}, []any{st["flow"], tasks["started"],
			tasks["completed"], tasks["failed"], tasks["canceled"], tasks["last_failed"]})
		for _, state := range []string{"completed", "failed"} { // the counts equal those of lists
			q := url.Values{"flow": {slug}, "state": {state}, "ended_from": {st["since"].(string)}}
			require.Len(t, items(s.get("/v1/tasks?"+q.Encode())), int(tasks[state].(float64)), state)
		}
		nodes := st["nodes"].([]any)
		require.Len(t, nodes, 2)
		pay, ship := nodes[0].(obj), nodes[1].(obj)
		require.Equal(t, []any{"pay", 2., 1., 1., 2., second},
			[]any{pay["key"], pay["count"], pay["failed"], pay["retried"], pay["units"], pay["last_failed"]})
		require.Equal(t, []any{"ship", 1., 0., 0., 1., nil}, []any{ship["key"], ship["count"],
			ship["failed"], ship["retried"], ship["units"], ship["last_failed"]})
		require.LessOrEqual(t, pay["duration"].(obj)["p50_ms"], pay["duration"].(obj)["p95_ms"])
		require.Contains(t, pay, "wait", "somebody has to claim its attempts")
		s.refused(404, "path.flow", "GET", "/v1/flows/none/stats", nil)
		s.refused(404, "query.version", "GET", path+"?version=2", nil)
		s.refused(400, "query.from", "GET", path+"?from=2999-01-01T00:00:00Z", nil)
		s.refused(400, "query.from", "GET", path+"?from=2020-01-01T00:00:00Z", nil)
	})
}

// counted adds tasks of a flow that completed at a time, and visits of a node, to the flow's
// statistics.
func (s *server) counted(flowID, version string, at time.Time, ms ...int64) {
	s.Helper()
	var tasks, node stats.Counts
	for _, d := range ms {
		tasks.Began++
		tasks.End(flow.TaskCompleted, "task", at.UnixMilli(), d)
		node.Tally(&flow.Tally{What: flow.TallyCompleted, N: 1, MS: d}, "task", at.UnixMilli())
	}
	var rows []persistence.StatsRow
	for _, width := range []int64{persistence.StatsMinute, persistence.StatsHour} {
		bucket := at.UnixMilli() - at.UnixMilli()%width
		add := func(key stats.Key, c stats.Counts) {
			rows = append(rows, persistence.StatsRow{StatsSpot: persistence.StatsSpot{Key: key, Width: width, Bucket: bucket}, Counts: c})
		}
		add(stats.Key{}, tasks)
		add(stats.Key{Flow: flowID, Version: version}, tasks)
		add(stats.Key{Flow: flowID, Version: version, Node: "a"}, node)
	}
	require.NoError(s, s.store.AddStats(s.Context(), rows))
}

func TestASeriesHasEachTaskInItsTime(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`)
		id := s.get("/v1/flows/" + slug)["id"].(string)
		version := s.get("/v1/flows/" + slug + "/versions/1")["id"].(string)
		now := time.Now()
		s.counted(id, version, now.Add(-2*time.Minute), 10, 20)
		s.counted(id, version, now.Add(-5*time.Hour), 30)
		s.counted(id, version, now.Add(-5*24*time.Hour), 40)
		s.counted("another", "v", now.Add(-2*time.Minute), 99)

		sum := func(query, what string) (n float64) {
			for _, p := range s.get("/v1/stats?" + query)["points"].([]any) {
				n += p.(obj)[what].(float64)
			}
			return n
		}
		for query, want := range map[string]float64{"window=1h": 3, "": 4, "window=7d": 5,
			"step=5m": 4, "step=1h": 4, "step=6h&window=7d": 5,
			"window=1h&flow=" + slug: 2, "window=7d&flow=" + slug + "&node=a": 4, "flow=" + slug + "&node=b": 0} {
			require.Equal(t, want, sum(query, "completed"), query)
		}
		require.Equal(t, 2., sum("window=1h&flow="+slug, "started"))
		hour := s.get("/v1/stats?window=1h")
		require.Equal(t, 60_000., hour["step_ms"])
		require.Contains(t, []int{60, 61}, len(hour["points"].([]any)), "a minute may be cut in two")

		whole := func(query string) obj { return s.get("/v1/flows/" + slug + "/stats?" + query)["tasks"].(obj) }
		require.Equal(t, 2., whole("window=1h")["completed"])
		require.Equal(t, 3., whole("window=24h&version=1")["completed"])
		week := whole("window=7d")
		require.Equal(t, []any{4., 40.}, []any{week["completed"], week["duration"].(obj)["max_ms"]})
		from, to := now.Add(-6*time.Hour).UTC().Format(time.RFC3339), now.Add(-4*time.Hour).UTC().Format(time.RFC3339)
		require.Equal(t, 1., whole("from=" + from + "&to=" + to)["completed"])
		trend := s.get("/v1/flows/" + slug + "/stats?window=1h")["nodes"].([]any)[0].(obj)["p95_trend_ms"].([]any)
		require.Len(t, trend, 12)
		require.Equal(t, 20., trend[11])

		s.refused(404, "query.flow", "GET", "/v1/stats?flow=none", nil)
		s.refused(400, "query.flow", "GET", "/v1/stats?node=a", nil)
		s.refused(400, "query.step", "GET", "/v1/stats?step=1m&window=7d", nil)
	})
}
