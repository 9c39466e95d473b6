package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestAForkIsComparedWithTheTaskItGoesOnFrom(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug, reserve, charge := s.unique("order"), s.unique("reserve"), s.unique("charge")
		s.call(201, "PUT", "/v1/flows/"+slug, strings.NewReplacer("SERVICE", charge,
			"service: reserve", "service: "+reserve).Replace(order), "Content-Type", "application/yaml")
		a := s.call(201, "POST", "/v1/tasks", obj{"flow": slug, "params": obj{"sku": "tea", "amount": 3}})["id"].(string)
		s.report(reserve, flow.Report{Output: []byte(`"shelf 4"`)})
		s.report(charge, flow.Report{Error: "declined", Fatal: true})
		s.ended(a, "failed")
		b := s.call(201, "POST", "/v1/tasks/"+a+"/fork", obj{"from": "charge"})["id"].(string)
		s.report(charge, flow.Report{Output: []byte(`true`)})
		s.ended(b, "completed")
		c := s.call(201, "POST", "/v1/tasks/"+a+"/rerun", nil)["id"].(string)
		s.report(reserve, flow.Report{Output: []byte(`"shelf 5"`)})

		told := s.get("/v1/tasks/" + a + "/compare/" + b)
		require.Equal(s, []any{1.0, 1.0, 0.0, 0.0, 1.0}, []any{told["same"], told["different"],
			told["only_in_task"], told["only_in_other"], told["first_difference"]})
		visits := told["visits"].([]any)
		require.Equal(s, []any{}, visits[0].(obj)["differences"])
		require.Equal(s, `"shelf 4"`, visits[0].(obj)["other"].(obj)["output"])
		require.Equal(s, []any{"state", "error", "output"}, visits[1].(obj)["differences"])
		require.Equal(s, "declined", visits[1].(obj)["task"].(obj)["error"])
		require.Equal(s, []any{"failed", "completed"}, []any{told["task"].(obj)["state"], told["other"].(obj)["state"]})

		s.claim(charge)
		told = s.get("/v1/tasks/" + b + "/compare/" + c)
		require.Equal(s, []any{"output"}, told["visits"].([]any)[0].(obj)["differences"])
		require.Equal(s, "started", told["visits"].([]any)[1].(obj)["other"].(obj)["state"], "one that goes on is told as far as it is")
		require.Equal(s, 2.0, s.get("/v1/tasks/" + b + "/compare/" + b)["same"])
		s.refused(404, "path.task", "GET", "/v1/tasks/none/compare/"+b, nil)
		s.refused(404, "path.other", "GET", "/v1/tasks/"+b+"/compare/none", nil)
	})
}

func TestBranchesAndSkippedNodesAreCompared(t *testing.T) {
	s := start(t)
	definition := "mode: dag\non_error: continue\nnodes:\n  a: {route: direct}\n  b: {route: direct, depends_on: [a]}\n"
	slug := s.unique("dag")
	s.call(201, "PUT", "/v1/flows/"+slug, definition, "Content-Type", "application/yaml")
	begin := func() string { return s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string) }
	one, other := begin(), begin()
	s.call(200, "POST", "/v1/tasks/"+one+"/complete", obj{"step": "a", "output": 1})
	s.call(200, "POST", "/v1/tasks/"+other+"/complete", obj{"step": "a", "error": "no"})
	s.ended(other, "failed")
	told := s.get("/v1/tasks/" + one + "/compare/" + other)
	require.Equal(t, 2.0, told["different"])
	require.Equal(t, "skipped", told["visits"].([]any)[1].(obj)["other"].(obj)["state"])
}
