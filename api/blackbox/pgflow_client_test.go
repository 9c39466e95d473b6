package blackbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

// pgFlow is a flow with names that no other check uses.
type pgFlow struct {
	*client
	slug string
}

// pgflow creates a flow from nodes, one line of YAML each.
func (c *client) pgflow(nodes ...string) *pgFlow {
	c.Helper()
	return c.pgflowWith("", nodes...)
}

// pgflowWith adds top-level lines before the nodes.
func (c *client) pgflowWith(head string, nodes ...string) *pgFlow {
	c.Helper()
	f := &pgFlow{client: c, slug: strings.ReplaceAll(unique("flow"), "-", "_")}
	status, v := c.call("POST", "/flows/"+f.slug+"/ensure", obj{"definition": pgDefinition(c, head, nodes...)})
	require.Equal(c, 200, status, "%v", v)
	require.Equal(c, "compiled", v.(obj)["status"])
	return f
}

// pgDefinition returns a definition as JSON.
func pgDefinition(t require.TestingT, head string, nodes ...string) json.RawMessage {
	text, err := definition.YAMLToJSON([]byte(head + "\nnodes:\n  " + strings.Join(nodes, "\n  ") + "\n"))
	require.NoError(t, err)
	return text
}

// notRegistered requires that a definition is rejected.
func (c *client) notRegistered(head string, nodes ...string) string {
	c.Helper()
	status, v := c.call("POST", "/flows/"+strings.ReplaceAll(unique("bad"), "-", "_")+"/ensure",
		obj{"definition": pgDefinition(c, head, nodes...)})
	require.Equal(c, 400, status, "%v %v", nodes, v)
	require.Equal(c, "invalid", v.(obj)["error"])
	return v.(obj)["message"].(string)
}

// pgRun is a run of a check.
type pgRun struct {
	*pgFlow
	id    string
	first obj // the answer to its start
}

func (f *pgFlow) run(input any) *pgRun {
	f.Helper()
	status, v := f.call("POST", "/flows/"+f.slug+"/runs", obj{"input": input})
	require.Equal(f, 200, status, "%v", v)
	answer := v.(obj)
	return &pgRun{f, answer["run"].(obj)["run_id"].(string), answer}
}

// ask sends a body to a route of the run.
func (r *pgRun) ask(path string, body any) (int, obj) {
	r.Helper()
	status, v := r.call("POST", "/runs/"+r.id+path, body)
	answer, _ := v.(obj)
	return status, answer
}

// do requires success.
func (r *pgRun) do(path string, body any) obj {
	r.Helper()
	status, answer := r.ask(path, body)
	require.Less(r, status, 300, "POST %s %v: %v", path, body, answer)
	return answer
}

// pollFor polls for tasks of the flow and waits for the first up to a time.
func (f *pgFlow) pollFor(wait time.Duration, limit int) []obj {
	f.Helper()
	status, v := f.call("POST", "/queue/poll", obj{"worker_id": "w", "flow": f.slug, "max": limit, "wait_ms": wait.Milliseconds()})
	if status == 204 {
		return nil
	}
	require.Equal(f, 200, status, "%v", v)
	return objects(f, v.(obj)["tasks"])
}

// poll requires exactly the tasks of these steps, in any order.
func (f *pgFlow) poll(steps ...string) map[string]obj {
	f.Helper()
	got := map[string]obj{}
	for len(got) < len(steps) {
		tasks := f.pollFor(deadline/2, 10)
		require.NotEmpty(f, tasks, "still waiting for tasks of %v, got %v", steps, got)
		for _, t := range tasks {
			got[t["step_slug"].(string)] = t
		}
	}
	for _, step := range steps {
		require.Contains(f, got, step)
	}
	require.Len(f, got, len(steps), "%v", got)
	f.nothing()
	return got
}

// nothing requires an empty queue.
func (f *pgFlow) nothing() {
	f.Helper()
	require.Empty(f, f.pollFor(0, 10))
}

// one claims the task of a step.
func (f *pgFlow) one(step string) obj {
	f.Helper()
	return f.poll(step)[step]
}

// all claims n tasks.
func (f *pgFlow) all(n int) []obj {
	f.Helper()
	got := []obj{}
	for len(got) < n {
		tasks := f.pollFor(deadline/2, 100)
		require.NotEmpty(f, tasks, "%d tasks of %d", len(got), n)
		got = append(got, tasks...)
	}
	require.Len(f, got, n)
	return got
}

// units claims n tasks of a step and returns them by index.
func (f *pgFlow) units(step string, n int) []obj {
	f.Helper()
	got := make([]obj, n)
	for _, t := range f.all(n) {
		require.Equal(f, step, t["step_slug"])
		i := int(t["task_index"].(float64))
		require.Nil(f, got[i])
		got[i] = t
	}
	return got
}

func (c *client) done(task obj, result any) obj {
	c.Helper()
	return c.post("/queue/complete", obj{"id": task["id"], "result": result})
}

func (c *client) fail(task obj, text string) obj {
	c.Helper()
	return c.post("/queue/complete", obj{"id": task["id"], "error": text})
}

// work completes the next task of a step.
func (f *pgFlow) work(step string, result any) {
	f.Helper()
	require.Equal(f, true, f.done(f.one(step), result)["changed"])
}

// states returns the states of a run and its steps, by slug.
func (r *pgRun) states() (run obj, steps map[string]obj) {
	r.Helper()
	return r.split(r.get("/runs/" + url.PathEscape(r.id) + "?view=states"))
}

func (r *pgRun) split(answer obj) (run obj, steps map[string]obj) {
	steps = map[string]obj{}
	for _, s := range objects(r, answer["steps"]) {
		steps[s["step_slug"].(string)] = s
	}
	return answer["run"].(obj), steps
}

// tasks returns the tasks of a step.
func (r *pgRun) tasks(step string) []obj {
	r.Helper()
	_, steps := r.split(r.get("/runs/" + r.id + "?view=states&tasks=true"))
	require.Contains(r, steps, step)
	if steps[step]["tasks"] == nil {
		return nil
	}
	return objects(r, steps[step]["tasks"])
}

// told returns the events of a kind in the run's history, as in /v1.
func (r *pgRun) told(kind string) []obj {
	r.Helper()
	v1 := &client{T: r.T, server: r.server}
	return slices.DeleteFunc(objects(r, v1.get("/v1/tasks/" + r.id + "/events")["items"]), func(e obj) bool { return e["type"] != kind })
}

// between returns the duration between two times of the engine.
func (c *client) between(from, to any) time.Duration {
	c.Helper()
	a, err := time.Parse(time.RFC3339, from.(string))
	require.NoError(c, err)
	b, err := time.Parse(time.RFC3339, to.(string))
	require.NoError(c, err)
	return b.Sub(a)
}

// is requires the status of the run and of steps, each as "step status" or "step status reason".
func (r *pgRun) is(status string, steps ...string) {
	r.Helper()
	run, states := r.states()
	r.matches(run, states, status, steps...)
}

func (r *pgRun) matches(run obj, states map[string]obj, status string, steps ...string) {
	r.Helper()
	require.Equal(r, status, run["status"], "%v\n%v", run, states)
	for _, want := range steps {
		slug, _, _ := strings.Cut(want, " ")
		s := states[slug]
		got := fmt.Sprintf("%s %s", slug, s["status"])
		for _, why := range []string{"failure_reason", "skip_reason"} {
			if reason, ok := s[why].(string); ok {
				got += " " + reason
			}
		}
		require.Equal(r, want, got, "%v", states)
	}
}

// ended requires the run's final status and output.
func (r *pgRun) ended(status, output string) {
	r.Helper()
	run, states := r.states()
	require.Equal(r, status, run["status"], "%v\n%v", run, states)
	has(r.T, output, run["output"])
}

// has requires a value to equal JSON.
func has(t *testing.T, want string, value any) {
	t.Helper()
	got, err := json.Marshal(value)
	require.NoError(t, err)
	require.JSONEq(t, want, string(got))
}
