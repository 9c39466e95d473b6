package blackbox

import (
	"github.com/stretchr/testify/require"
)

// pgRefusals checks that refusals name the fault and its place.
func pgRefusals(c *client) {
	f := c.pgflow(nodeA, "d: {route: direct}", "g: {kind: map, route: direct}")
	r := f.run([]int{1})
	refused := func(status int, text, method, path string, body any) {
		c.Helper()
		got, v := c.call(method, path, body)
		require.Equal(c, status, got, "%s %s %v: %v", method, path, body, v)
		answer, _ := v.(obj)
		require.NotEmpty(c, answer["error"])
		require.Contains(c, answer["message"], text, "%s %s %v", method, path, body)
	}
	run := "/runs/" + r.id
	for _, what := range []string{"complete", "fail", "complete_direct", "append"} {
		refused(404, `has no step "nobody"`, "POST", run+"/tasks/"+what, obj{"step": "nobody", "item": 1})
		refused(404, "there is no run", "POST", "/runs/none/tasks/"+what, obj{"step": "a", "item": 1})
	}
	refused(404, `step "a" has no task 9`, "POST", run+"/tasks/complete", obj{"step": "a", "task_index": 9})
	refused(404, `step "a" has no task -1`, "POST", run+"/tasks/complete", obj{"step": "a", "task_index": -1})
	refused(404, `step "g" has no task 5`, "POST", run+"/tasks/complete_direct", obj{"step": "g", "task_index": 5})
	refused(409, `step "d" has the route direct`, "POST", run+"/tasks/complete", obj{"step": "d"})
	refused(409, `step "a" has the route queue`, "POST", run+"/tasks/complete_direct", obj{"step": "a"})

	for _, body := range []string{`[1]`, `"x"`, `5`} {
		refused(400, "the body must be a JSON object", "POST", "/flows/"+f.slug+"/runs", raw(body))
	}
	refused(400, "step must be a text, is a number", "POST", run+"/tasks/complete", obj{"step": 5})
	refused(400, "task_index must be a whole number, is a string", "POST", run+"/tasks/complete", obj{"step": "a", "task_index": "x"})
	refused(400, "items must be a list, is a string", "POST", run+"/tasks/append", obj{"step": "g", "items": "x"})
	refused(400, "allow_data_loss must be true or false, is a string", "POST", "/flows/x/ensure", obj{"allow_data_loss": "x"})

	for _, wrong := range []any{"# a note\nnodes:\n  a: {depends_on: [b]}\n", "{\n\"nodes\":{\n  \"a\":{\"depends_on\":[\"b\"]}}}"} {
		refused(400, ": nodes.a.depends_on[0]: unknown node \"b\"", "POST", "/flows/x/ensure", obj{"definition": wrong})
		refused(400, "3:", "POST", "/flows", obj{"slug": "x", "definition": wrong})
	}
	refused(400, "timeout_ms", "GET", run+"/wait?timeout_ms=soon", nil)
	refused(404, "there is no flow", "POST", "/queue/poll", obj{"worker_id": "w", "flow": "nobody"})
	refused(400, "flow or services", "POST", "/queue/poll", obj{"worker_id": "w", "max": 5})
	refused(400, "max", "POST", "/queue/poll", obj{"worker_id": "w", "flow": f.slug, "max": "x"})
	refused(404, "no job has the id", "POST", "/queue/heartbeat", obj{"id": "none"})
	refused(400, "extend", "POST", "/queue/heartbeat", obj{"id": "none", "extend": -1})
	refused(404, "no job has the id", "POST", "/queue/complete", obj{"id": "none"})
}
