package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADryRunOfAStartPredictsTheTask(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"choose","nodes":{
			"choose":{"kind":"choice","choice_cases":[{"action":"ask","expr":{"gt":["$params.amount",100]}}],"default_action":"pay"},
			"ask":{"kind":"approval","params":{"approval_key":"$shared.ok"}},
			"pay":{"exec_type":"queue","service":"till"}},
			"edges":[{"from":"choose","action":"ask","to":"ask"},{"from":"choose","action":"pay","to":"pay"}]}`)
		for amount, want := range map[float64][]any{3: {"choose decided pay", "pay called till"},
			300: {"choose decided ask", "ask waits "}} {
			dry := s.call(200, "POST", "/v1/tasks",
				obj{"flow": slug, "params": obj{"amount": amount}, "dry_run": true,
					"idempotency_key": "once"})
			require.NotContains(s, dry, "id")
			require.Equal(s, false, dry["created"])
			var told []any
			for _, step := range dry["preview"].(obj)["steps"].([]any) {
				st := step.(obj)
				told = append(told, strings.Join([]string{st["node"].(string), st["outcome"].(string),
					orEmpty(st["next"]) + orEmpty(st["service"])}, " "))
			}
			require.Equal(s, want, told)
			require.NotContains(s, dry["preview"], "state", "it depends on somebody")
		}
		require.Empty(s, items(s.get("/v1/tasks?flow="+slug)), "nothing was started")
		s.refused(400, "body.wait_ms", "POST", "/v1/tasks", obj{"flow": slug, "dry_run": true, "wait_ms": 5})
		s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"amount": 3}, "idempotency_key": "once"})
	})
}

func TestADryRunOfAStartRefusesWhatTheStartWould(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.unique("declared")
		s.call(201, "PUT", "/v1/flows/"+slug, strings.ReplaceAll(declared, "SERVICE",
			s.unique("charge")), "Content-Type", "application/yaml")
		for _, dry := range []bool{true, false} {
			s.refused(422, "body.params", "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"amount": "much"}, "dry_run": dry})
		}
	})
}
