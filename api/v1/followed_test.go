package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const sellAnyway = `
start: charge
on_error: follow
nodes:
  charge: {exec_type: queue, service: charge}
  ship: {exec_type: queue, service: ship}
edges: [{from: charge, action: default, to: ship}]
`

func TestATaskListsTheErrorsAfterWhichItWentOn(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(sellAnyway)
		s.report("charge", flow.Report{Error: "declined", Fatal: true})
		running := s.until("/v1/tasks/"+id, func(v obj) bool { return v["node"] == "ship" })
		require.Equal(s, 1.0, running["ignored_errors"])
		s.report("ship", flow.Report{Output: []byte(`1`)})

		task := s.ended(id, "completed")
		require.Equal(s, 1.0, task["ignored_errors"])
		list := task["ignored_error_details"].([]any)
		require.Len(s, list, 1)
		told := list[0].(obj)
		require.NotEmpty(s, told["at"])
		delete(told, "at")
		require.Equal(s, obj{"node": "charge", "count": 1.0, "visit": 1.0, "error": "declined"}, told)
		require.Equal(s, []any{1.0}, values(s.get("/v1/tasks?state=completed"), "ignored_errors"), "a list tells how many")
		require.Contains(s, values(s.get("/v1/tasks/"+id+"/events"), "reason"), "ignored")
		require.Contains(s, string(s.send("GET", "/v1/tasks/"+id+"/stream", nil).body), `"state":"completed","ignored_errors":1`)

		clean := s.ended(s.task(atOnce), "completed")
		require.NotContains(s, clean, "ignored_errors")
		require.NotContains(s, clean, "ignored_error_details")
	})
}
