package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestStatisticsOfAFlowTellWhatItsNodesDid(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"pay","on_error":"fail","nodes":{"pay":{"exec_type":"queue","service":"bank","max_retries":1},"ship":{"exec_type":"queue","service":"post"}},
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
		begin() // goes on, so it is not counted

		st := s.get("/v1/flows/" + slug + "/stats")
		require.Equal(t, []any{slug, "24h", 2., 2.}, []any{st["flow"], st["window"], st["sampled"], st["of"]})
		for _, n := range st["states"].([]any) {
			state := n.(obj)
			require.Len(t, items(s.get("/v1/tasks?"+state["query"].(string))), int(state["count"].(float64)), state)
		}
		nodes := st["nodes"].([]any)
		require.Len(t, nodes, 2)
		pay, ship := nodes[0].(obj), nodes[1].(obj)
		require.Equal(t, []any{"pay", 2., 1., 1., second}, []any{pay["key"], pay["visits"], pay["failures"], pay["retries"], pay["last_failed"]})
		require.Equal(t, []any{"ship", 1., 0., 0., nil}, []any{ship["key"], ship["visits"], ship["failures"], ship["retries"], ship["last_failed"]})
		require.LessOrEqual(t, pay["duration"].(obj)["p50_ms"], pay["duration"].(obj)["p95_ms"])
		require.Equal(t, 0., s.get("/v1/flows/" + slug + "/stats?version=2&window=1h")["of"])
		s.refused(404, "path.flow", "GET", "/v1/flows/none/stats", nil)
	})
}
