package blackbox

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"
)

// dag is a task in dag mode. The check itself is the worker: jobs of a service written @name wait
// in a queue that only this check uses.
type dag struct {
	*client
	id     string
	prefix string
}

// dag publishes a definition over /v1 and starts a task of it.
func (c *client) dag(definition string, input any) *dag {
	c.Helper()
	d := &dag{client: &client{T: c.T, server: c.server}, prefix: unique("dag") + "-"}
	slug := strings.TrimSuffix(d.prefix, "-")
	status, v := d.call("PUT", "/v1/flows/"+slug, strings.ReplaceAll(definition, "@", d.prefix))
	require.Contains(c, []int{200, 201}, status, "%v", v) // 200 if a repeated request came twice
	status, v = d.call("POST", "/v1/tasks", obj{"flow": slug, "input": input})
	require.Equal(c, 201, status, "%v", v)
	d.id = v.(obj)["id"].(string)
	return d
}

func (d *dag) path(what string) string { return "/v1/tasks/" + d.id + what }

// take claims a job of a service and returns its id and input.
func (d *dag) take(service string) (job string, input any) {
	d.Helper()
	q := (&client{T: d.T, server: d.server, prefix: "/api"}).claim(d.prefix + service)
	var in struct {
		Input any `json:"input"`
	}
	require.NoError(d, json.Unmarshal([]byte(q["input_json"].(string)), &in))
	return q["id"].(string), in.Input
}

// idle requires that no job of the services waits.
func (d *dag) idle(services ...string) {
	d.Helper()
	for _, s := range services {
		require.Nil(d, (&client{T: d.T, server: d.server, prefix: "/api"}).pollQueue(d.prefix+s), "a job of %s waits", s)
	}
}

func (d *dag) ok(job string, output any) {
	d.Helper()
	require.Equal(d, obj{"ok": "1"}, d.post("/api/queue/complete", obj{"queue_id": job, "result": output}))
}

func (d *dag) fail(job, text string) {
	d.Helper()
	require.Equal(d, obj{"ok": "1"}, d.post("/api/queue/complete", obj{"queue_id": job, "error": text}))
}

// does completes the next job of a service and requires its input.
func (d *dag) does(service string, input, output any) {
	d.Helper()
	job, got := d.take(service)
	require.Equal(d, fromJSON(d, jsonText(d, input)), got, "the input of %s", service)
	d.ok(job, output)
}

// fails fails the next job of a service.
func (d *dag) fails(service, text string) {
	d.Helper()
	job, _ := d.take(service)
	d.fail(job, text)
}

func fromJSON(t require.TestingT, text string) (v any) {
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// step reads one step of the task.
func (d *dag) step(slug string) obj {
	d.Helper()
	list := objects(d, d.get(d.path("/steps?step=" + url.QueryEscape(slug)))["items"])
	require.Len(d, list, 1, "step %s", slug)
	return list[0]
}

// steps requires the states of steps, given as slug, state, slug, state, ….
func (d *dag) steps(slugsAndStates ...string) {
	d.Helper()
	for i := 0; i < len(slugsAndStates); i += 2 {
		s := d.step(slugsAndStates[i])
		require.Equal(d, slugsAndStates[i+1], s["state"], "%v", s)
	}
}

// units reads the units of a step.
func (d *dag) units(slug string) []obj {
	d.Helper()
	return objects(d, d.get(d.path("/units?step=" + url.QueryEscape(slug)))["items"])
}

// neverRan requires that no attempt of a step was ever started.
func (d *dag) neverRan(slug string) {
	d.Helper()
	for _, r := range objects(d, d.get(d.path("/runs"))["items"]) {
		require.False(d, r["node"] == slug && r["kind"] == "attempt", "%v", r)
	}
}

// task reads the task.
func (d *dag) task() obj { d.Helper(); return d.get(d.path("")) }

// ended waits for the task's end and requires its state.
func (d *dag) ended(state string) obj {
	d.Helper()
	t := d.get(d.path(fmt.Sprintf("?wait_ms=%d", deadline.Milliseconds())))
	require.Equal(d, state, t["state"], "%v", t)
	return t
}
