package v1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const sellTwice = `
mode: dag
on_error: continue
nodes:
  charge: {exec_type: queue, service: charge}
  ship: {exec_type: queue, service: ship, depends_on: [charge]}
  mail: {route: direct, depends_on: [ship]}
`

// report completes the next job of a service, or fails it if the report has an error.
func (s *server) report(service string, r flow.Report) {
	s.Helper()
	job := s.claim(service).Job
	require.NoError(s, s.endJob(job.ID(), r))
}

func TestAFailedTaskIsRetriedFromItsFailure(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(sellTwice)
		path := "/v1/tasks/" + id
		s.report("charge", flow.Report{Output: []byte(`"paid"`)})
		s.report("ship", flow.Report{Error: "no truck", Fatal: true})
		s.ended(id, "failed")
		require.Equal(s, []any{"task_error"}, values(s.get(path+"/steps?state=failed"), "reason"))

		task := s.call(200, "POST", path+"/retry", nil, "Request-Id", "again")
		require.Equal(s, "running", task["state"])
		require.NotContains(s, task, "ended_at")
		require.NotContains(s, task, "error")
		s.call(200, "POST", path+"/retry", nil, "Request-Id", "again")
		s.refused(409, "path.task", "POST", path+"/retry", nil)
		require.Equal(s, []any{id}, values(s.get("/v1/tasks?state=running"), "id"), "it is listed as running")
		n, err := s.store.DeleteEnded(s.Context(), 1<<60, 10)
		require.NoError(s, err)
		require.Zero(s, n, "retention leaves it alone")

		s.report("ship", flow.Report{Output: []byte(`"gone"`)})
		waiting := s.until(path+"/waiting", func(v obj) bool {
			waits := v["waits"].([]any)
			return len(waits) == 1 && waits[0].(obj)["kind"] == "manual"
		})
		require.Equal(s, "mail", waiting["waits"].([]any)[0].(obj)["node"])
		s.call(200, "POST", path+"/complete", obj{"step": "mail", "output": "sent"})
		require.Equal(s, obj{"mail": "sent"}, s.ended(id, "completed")["result"])
		steps := s.steps(id, "")
		require.Equal(s, []any{1.0, 2.0, 2.0}, []any{steps["charge"]["visit"], steps["ship"]["visit"], steps["mail"]["visit"]},
			"what completed is not done again; what could not run runs the second time")
		runs := items(s.get(path + "/runs"))
		require.Equal(s, []any{"charge", "ship", "mail", "ship", "mail"}, values(s.get(path+"/runs"), "node"))
		require.Equal(s, []any{"skipped", "dependency_failed"}, []any{runs[2]["state"], runs[2]["reason"]})
	})
}

func TestAStreamOpenedAfterARetryGoesOnPastTheFirstEnd(t *testing.T) {
	s := start(t)
	id := s.task(sellTwice)
	s.report("charge", flow.Report{Error: "no money", Fatal: true})
	s.ended(id, "failed")
	s.call(200, "POST", "/v1/tasks/"+id+"/retry", nil)
	stream := s.stream(id, "")
	s.report("charge", flow.Report{})
	s.report("ship", flow.Report{})
	s.call(200, "POST", "/v1/tasks/"+id+"/complete", obj{"step": "mail"})
	var types []any
	for m := stream.next(); m.kind != "end"; m = stream.next() {
		types = append(types, m.data["type"])
	}
	require.Contains(t, types, "task_retried")
	require.Equal(t, "task_ended", types[len(types)-1])
}

const apart = `
mode: dag
on_error: continue
nodes:
  a: {route: direct}
  b: {route: direct}
  after_a: {route: direct, depends_on: [a]}
  after_b: {route: direct, depends_on: [b]}
`

func TestOneStepIsRetried(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(apart)
		path := "/v1/tasks/" + id
		for _, step := range []string{"a", "b"} {
			s.call(200, "POST", path+"/complete", obj{"step": step, "error": "no"})
		}
		s.ended(id, "failed")
		s.refused(404, "body.step", "POST", path+"/retry", obj{"step": "nobody"})
		s.refused(404, "path.task", "POST", "/v1/tasks/none/retry", obj{"step": "a"})
		require.Equal(s, "running", s.call(200, "POST", path+"/retry", obj{"step": "a"})["state"])
		s.call(200, "POST", path+"/complete", obj{"step": "a", "output": 1})
		s.call(200, "POST", path+"/complete", obj{"step": "after_a", "output": 2})
		s.ended(id, "failed")
		steps := s.steps(id, "")
		require.Equal(s, []any{"completed", "completed", "failed", "skipped"},
			[]any{steps["a"]["state"], steps["after_a"]["state"], steps["b"]["state"], steps["after_b"]["state"]})
		s.refused(409, "body", "POST", path+"/retry", obj{"step": "a"})
	})
}

func TestAStepIsHeld(t *testing.T) {
	onBothStores(t, func(s *server) {
		id := s.task(apart)
		path := "/v1/tasks/" + id
		s.refused(404, "body.step", "POST", path+"/hold", obj{"step": "nobody"})
		s.refused(404, "path.task", "POST", "/v1/tasks/none/hold", obj{"step": "a"})
		s.refused(409, "body", "POST", path+"/hold", obj{"step": "a"})
		s.refused(409, "body", "POST", path+"/release", obj{"step": "after_a"})
		s.call(200, "POST", path+"/hold", obj{"step": "after_a"}, "Request-Id", "once")
		s.call(200, "POST", path+"/hold", obj{"step": "after_a"}, "Request-Id", "once")
		require.Equal(s, true, s.steps(id, "")["after_a"]["held"])
		s.call(200, "POST", path+"/complete", obj{"step": "a", "output": 1})
		s.call(200, "POST", path+"/complete", obj{"step": "b", "output": 1})
		s.call(200, "POST", path+"/complete", obj{"step": "after_b", "output": 1})
		require.Equal(s, "created", s.steps(id, "")["after_a"]["state"])
		s.call(200, "POST", path+"/release", obj{"step": "after_a"})
		s.call(200, "POST", path+"/complete", obj{"step": "after_a", "output": 1})
		s.ended(id, "completed")
		s.refused(409, "body", "POST", path+"/hold", obj{"step": "a"})
	})
}
