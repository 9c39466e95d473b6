package blackbox

import (
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

func hasCompatibilityHeaders(c *client, h http.Header) {
	c.Helper()
	require.Equal(c, "*", h.Get("Access-Control-Allow-Origin"))
	require.Equal(c, "Content-Type, Authorization", h.Get("Access-Control-Allow-Headers"))
	require.Equal(c, "GET,POST,OPTIONS", h.Get("Access-Control-Allow-Methods"))
}

func optionsHasHeaders(c *client) {
	status, h, body := c.send("OPTIONS", "/flows", nil)
	require.Equal(c, 204, status)
	require.Empty(c, body)
	hasCompatibilityHeaders(c, h)
	for path, want := range map[string]int{"/flows": 200, "/tasks/get?id=nope": 404} {
		status, h, body = c.send("GET", path, nil)
		require.Equal(c, want, status)
		hasCompatibilityHeaders(c, h)
		require.Equal(c, "application/json", h.Get("Content-Type"))
		require.True(c, strings.HasSuffix(string(body), "}\n"))
	}
}

func unknownRoute(c *client) {
	status, h, body := c.send("GET", "/nope", nil)
	require.Equal(c, 404, status)
	require.Empty(c, h.Get("Access-Control-Allow-Origin"))
	require.Equal(c, "404 page not found\n", string(body))
	c.prefix = ""
	status, h, _ = c.send("GET", "/some/page", nil)
	require.Equal(c, 404, status)
	require.Equal(c, "application/problem+json", h.Get("Content-Type"))
	status, h, _ = c.send("GET", "/", nil)
	require.Equal(c, 200, status)
	require.Contains(c, h.Get("Content-Type"), "text/html")
}

func (c *client) listedFlow(id string) obj {
	c.Helper()
	for _, f := range objects(c, c.get("/flows?page_size=1000")["data"]) {
		if f["id"] == id {
			return f
		}
	}
	require.Fail(c, "the flow is not listed", id)
	return nil
}

func flowIsListed(c *client) {
	c.createAndFind(obj{"Name": "a", "Description": "d"})
}

func anyCase(c *client) {
	c.createAndFind(obj{"name": "a", "description": "d"})
	c.createAndFind(obj{"NAME": "a", "dEsCrIpTiOn": "d", "unknown": 1})
	f := c.createAndFind(obj{"Name": "a", "Description": "d"})
	def := `{"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":0}}}}`
	require.NotEmpty(c, c.post("/flows/version", obj{"flow_id": f, "version": "no number", "definition_json": def})["id"])
}

func (c *client) createAndFind(body obj) string {
	c.Helper()
	id := c.post("/flows", body)["id"].(string)
	require.True(c, strings.HasPrefix(id, "flow-"), id)
	f := c.listedFlow(id)
	require.Equal(c, "a", f["name"])
	require.Equal(c, "d", f["description"])
	require.Greater(c, f["created_at"], 1.7e9)
	require.Less(c, f["created_at"], 1e10, "seconds")
	return id
}

func pages(shared *client) {
	c := newClient(shared.T, startServer(shared.T, shared.kind))
	require.Equal(c, obj{"data": []any{}, "total": 0.0, "page": 1.0, "size": 10.0}, c.get("/flows"))
	for range 5 {
		c.post("/flows", obj{"Name": "f"})
	}
	p := c.get("/flows?page=2&page_size=2")
	require.Equal(c, []any{2.0, 2.0, 5.0}, []any{p["page"], p["size"], p["total"]})
	require.Len(c, p["data"], 2)
	p = c.get("/flows?page=-1&page_size=abc")
	require.Equal(c, []any{1.0, 10.0}, []any{p["page"], p["size"]})
	require.Len(c, p["data"], 5)
	require.Empty(c, c.get("/flows?page=9")["data"])
}

func wrongMethod(c *client) {
	c.refused(405, "method", "DELETE", "/flows", nil)
	c.refused(405, "method", "GET", "/tasks/cancel?id=x", nil)
	for _, route := range []string{"poll", "complete", "update_run", "heartbeat"} {
		c.refused(405, "method not allowed", "GET", "/queue/"+route, nil)
	}
}

// waitForever is a flow whose tasks wait for the signal go.
const waitForever = `{"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.go"},"post":{"output_key":"got"}}}}`

func definitionVerbatim(c *client) {
	text := "{ \"start\":\"x\",\n \"nodes\": {\"x\": " +
		"{\"kind\":\"timer\",\"params\":{\"n\":12345678901234567890, \"z\":1, \"a\":\"<&>\"}}} }"
	flow := c.post("/flows", obj{"Name": "f"})["id"].(string)
	id := c.version(flow, 1, text, "published")
	require.True(c, strings.HasPrefix(id, "ver-"), id)
	v := c.get("/flows/version/get?id=" + id)
	require.Equal(c, obj{"id": id, "flow_id": flow, "version": 1.0, "definition_json": text, "status": "published"}, v)
}

func definitionYAML(c *client) {
	flow := c.post("/flows", obj{"Name": "f"})["id"].(string)
	yaml := "start: x\nnodes:\n  x:\n    kind: timer\n    params: {delay_ms: 2, on: true}\n"
	id := c.post("/flows/version", obj{"FlowID": flow, "Version": 1, "DefinitionYAML": yaml, "DefinitionJSON": "ignored"})["id"].(string)
	require.JSONEq(c, `{"start":"x","nodes":{"x":{"kind":"timer","params":{"delay_ms":2,"on":true}}}}`,
		c.get("/flows/version/get?id=" + id)["definition_json"].(string))
	status, v := c.call("POST", "/flows/version", obj{"FlowID": flow, "Version": 2, "DefinitionYAML": "start: [x\nnodes"})
	require.Equal(c, 400, status)
	require.True(c, strings.HasPrefix(v.(obj)["error"].(string), "invalid yaml: "), v)
}

func versionErrors(c *client) {
	long := strings.Repeat("n", 1<<20)
	c.refused(400, "the name of the flow has 1048576 bytes, more than the limit of 256", "POST", "/flows", obj{"Name": long})
	c.refused(400, "the description has 1048576 bytes, more than the limit of 16384", "POST",
		"/flows", obj{"Name": "f", "Description": long})
	c.refused(400, "the worker's id has 1048576 bytes, more than the limit of 256", "POST",
		"/queue/poll", obj{"worker_id": long, "services": []string{"s"}})
	c.refused(400, "missing flow_id", "GET", "/flows/version", nil)
	c.refused(400, "missing id", "GET", "/flows/version/get", nil)
	c.refused(404, "not found", "GET", "/flows/version/get?id=ver-nope", nil)
	require.Empty(c, c.list("/flows/version?flow_id=nope"))
}

func versionChoice(c *client) {
	say := func(word string) string {
		return `{"start":"x","nodes":{"x":{"kind":"choice","default_action":"` + word + `"}}}`
	}
	flow := c.post("/flows", obj{"Name": "f"})["id"].(string)
	c.version(flow, 1, say("one"), "published")
	second := c.version(flow, 2, say("two"), "draft")
	third := c.version(flow, 3, say("three"), "published")
	list := c.list("/flows/version?flow_id=" + flow)
	require.Equal(c, []any{3.0, 2.0, 1.0}, values(list, "version"))
	c.refused(400, "version must be 1 or more, or absent for the newest one", "POST", "/tasks", obj{"FlowID": flow, "Version": -1})
	c.refused(404, "no such flow, or no such published version of it", "POST", "/tasks", obj{"FlowID": flow, "Version": 1 << 40})
	newest := c.post("/tasks", obj{"FlowID": flow, "Version": 0, "ParamsJSON": "{}"})["id"].(string)
	require.Equal(c, third, c.ends(newest, "completed")["flow_version_id"])
	drafted := c.ends(c.post("/tasks", obj{"FlowID": flow, "Version": 2})["id"].(string), "completed")
	require.Equal(c, second, drafted["flow_version_id"])
	require.Equal(c, "two", drafted["last_action"])
	both := c.post("/tasks", obj{"FlowID": flow, "FlowVersionID": second, "ParamsJSON": "{}"})["id"].(string)
	require.Equal(c, third, c.ends(both, "completed")["flow_version_id"])
}

func noStart(c *client) {
	flow := c.post("/flows", obj{"Name": "f"})["id"].(string)
	def := `{"nodes":{"x":{"kind":"timer","params":{"delay_ms":0}}}}`
	status, v := c.call("POST", "/flows/version", obj{"FlowID": flow, "Version": 1, "DefinitionJSON": def, "Status": "published"})
	if status == 200 {
		status, v = c.call("POST", "/tasks", obj{"FlowID": flow})
	}
	require.Equal(c, 400, status)
	require.Equal(c, obj{"error": "no start"}, v)
	status, v = c.call("POST", "/tasks", obj{"FlowID": "flow-nope"})
	require.Equal(c, 404, status)
	require.NotEmpty(c, v.(obj)["error"])
}
