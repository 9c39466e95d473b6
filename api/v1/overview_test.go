package v1_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestEveryNumberOfAnOverviewIsThatOfTheListItLeadsTo(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"pay1","on_error":"fail","nodes":{"pay1":{"exec_type":"queue","service":"bank"}}}`)
		begin := func() string { return s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string) }
		for _, failure := range []string{"card 17 refused", "card 4 refused", "no answer", ""} {
			task := begin()
			job := s.claim("bank").Job
			require.NoError(t, s.endJob(job.ID(), flow.Report{Error: failure}))
			s.ended(task, map[bool]string{true: "completed", false: "failed"}[failure == ""])
		}
		s.call(200, "POST", "/v1/tasks/"+begin()+"/pause", nil)
		s.failedLongAgo("old")
		s.call(200, "PUT", "/v1/workers/w1", obj{"services": []string{"bank", "other"}})
		o := s.get("/v1/overview")

		listed := func(of any) float64 {
			n := of.(obj)
			require.Len(t, items(s.get("/v1/tasks?"+n["query"].(string))), int(n["count"].(float64)), n)
			counted := s.get("/v1/tasks/count?" + n["query"].(string))
			require.Equal(t, n["count"], counted["count"], n)
			if n["exact"] != nil {
				require.Equal(t, n["exact"], counted["exact"])
			}
			return n["count"].(float64)
		}
		states := obj{}
		for _, n := range o["states"].([]any) {
			states[n.(obj)["state"].(string)] = listed(n)
		}
		require.Equal(t, obj{"pending": 0., "running": 1., "canceling": 0., "paused": 1.,
			"completed": 1., "failed": 4., "canceled": 0.}, states)
		for _, window := range o["recent"].([]any) {
			w := window.(obj)
			require.Equal(t, []float64{5, 1, 3}, []float64{listed(w["started"]), listed(w["completed"]), listed(w["failed"])}, w)
		}
		failing := o["recent_failures"].(obj)
		require.EqualValues(t, 3, failing["tasks"])
		groups := failing["groups"].([]any)
		require.Len(t, groups, 2)
		require.EqualValues(t, 2, listed(groups[0]))
		require.Equal(t, []any{slug, "pay1", "pay1: card # refused"},
			[]any{groups[0].(obj)["flow"], groups[0].(obj)["node"], groups[0].(obj)["error"]})
		require.EqualValues(t, 1, listed(groups[1]))

		queue := o["queues"].([]any)[0].(obj)
		require.Equal(t, items(s.get("/v1/queues"))[0]["oldest_at"], queue["oldest_at"])
		require.Equal(t, []any{"bank", 1., 1.}, []any{queue["service"], queue["waiting"], queue["workers"]})
		require.Len(t, items(s.get("/v1/jobs?service=bank")), 1)
		require.Len(t, items(s.get("/v1/workers?state=online")), int(o["workers"].(obj)["online"].(float64)))
		require.Equal(t, obj{"alive": 1., "draining": 0., "overdue": 0., "unowned": 512.}, o["members"])
	})
}

// failedLongAgo stores a task that failed in the last century.
func (s *server) failedLongAgo(id string) {
	s.Helper()
	v, err := s.store.Task(s.Context(), items(s.get("/v1/tasks"))[0]["id"].(string))
	require.NoError(s, err)
	at := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	results, err := s.store.Commit(s.Context(), s.engine.Incarnation(),
		[]persistence.Commit{{Task: id, Seq: 1, At: at, Events: []byte("[]"),
			Create:  &persistence.Create{FlowID: v.FlowID, VersionID: v.VersionID, CreatedAt: at},
			Columns: &persistence.Columns{Status: "failed", Error: "pay1: card 17 refused", EndedAt: at}}})
	require.NoError(s, err)
	require.NoError(s, results[0])
}

func TestManyFailuresAreGroupedFromTheNewest(t *testing.T) {
	s := start(t)
	slug := s.publish(`{"start":"a","nodes":{"a":{"exec_type":"queue","service":"q"}}}`)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	row, err := s.store.Task(t.Context(), id)
	require.NoError(t, err)
	now := s.engine.Now().UnixMilli()
	var batch []persistence.Commit
	for i := range 600 { // three in each millisecond
		at := now - 1000 + int64(i/3)
		batch = append(batch, persistence.Commit{Task: fmt.Sprintf("f%03d", i), Seq: 1, At: at, Events: []byte("[]"),
			Create:  &persistence.Create{FlowID: row.FlowID, VersionID: row.VersionID, CreatedAt: at},
			Columns: &persistence.Columns{Status: "failed", Error: fmt.Sprintf("a: no %d", i), EndedAt: at}})
	}
	results, err := s.store.Commit(t.Context(), s.engine.Incarnation(), batch)
	require.NoError(t, err)
	for _, err := range results {
		require.NoError(t, err)
	}
	failing := s.get("/v1/overview")["recent_failures"].(obj)
	require.EqualValues(t, 498, failing["tasks"], "of the millisecond that would be cut none is in it")
	group := failing["groups"].([]any)[0].(obj)
	require.EqualValues(t, 498, group["count"])
	require.EqualValues(t, 498, s.get("/v1/tasks/count?" + group["query"].(string))["count"])
	require.Equal(t, "f599", group["latest_task"])
}

func TestTheOverviewListsFlowsThatHaveBecomeSlow(t *testing.T) {
	onBothStores(t, func(s *server) {
		const definition = `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x"}}}`
		slow, steady := s.publish(definition), s.publish(definition)
		now := time.Now()
		for range 10 {
			s.counted(s.get("/v1/flows/" + slow)["id"].(string), "v", now.Add(-48*time.Hour), 12_000)
			s.counted(s.get("/v1/flows/" + slow)["id"].(string), "v", now.Add(-time.Hour), 41_000)
			s.counted(s.get("/v1/flows/" + steady)["id"].(string), "w", now.Add(-48*time.Hour), 12_000)
			s.counted(s.get("/v1/flows/" + steady)["id"].(string), "w", now.Add(-time.Hour), 13_000)
		}
		told := s.get("/v1/overview")["slower_flows"].([]any)
		require.Len(t, told, 1)
		require.Equal(t, slow, told[0].(obj)["flow"])
		require.InEpsilon(t, 41_000, told[0].(obj)["p99_ms"], 0.09)
		require.InEpsilon(t, 12_000, told[0].(obj)["before_ms"], 0.09)
	})
}
