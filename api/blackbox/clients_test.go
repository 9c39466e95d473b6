package blackbox

import (
	"time"

	"github.com/stretchr/testify/require"
)

// twoBranches is the first flow in the dialect's readme: a router and two branches.
const twoBranches = `{"start":"A","nodes":{
	"A":{"kind":"executor","service":"route","params":{"action":"goB"},"post":{"action_key":"action"}},
	"B":{"kind":"executor","service":"transform","params":{"op":"upper"},"prep":{"input_key":"$params.text"},"post":{"output_key":"result"}},
	"C":{"kind":"executor","service":"transform","params":{"op":"lower"},"prep":{"input_key":"$params.text"},"post":{"output_key":"result"}}},
	"edges":[{"from":"A","action":"goB","to":"B"},{"from":"A","action":"goC","to":"C"}]}`

// cli acts like the dialect's command-line client with a file of JSON: three requests, then a poll
// every second. It prints Status, CurrentNodeKey and SharedJSON of the answer.
func (c *client) cli(file, params string) obj {
	c.Helper()
	flow := c.post("/flows", obj{"Name": "two-branches.json"})["id"]
	version := c.post("/flows/version", obj{"FlowID": flow, "Version": 1, "DefinitionJSON": file, "Status": "published"})["id"]
	task := c.post("/tasks", obj{"FlowID": flow, "FlowVersionID": version, "ParamsJSON": params})["id"].(string)
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if t := c.read(task); t["status"] == "completed" || t["status"] == "failed" {
			return t
		}
	}
	require.Fail(c, "the task did not end", task)
	return nil
}

func commandLine(c *client) {
	c.push(demoServices)
	c.seesLower()
}

func (c *client) seesLower() {
	c.Helper()
	t := c.cli(twoBranches, `{"text":"Hello","action":"goC"}`)
	require.Equal(c, "completed", t["status"])
	require.JSONEq(c, `{"result":"hello"}`, t["SharedJSON"].(string))
	require.Equal(c, "", t["CurrentNodeKey"])
}

// withoutPrefix uses base URLs without /api. Pages keep the paths they share with routes.
func withoutPrefix(c *client) {
	c.prefix = ""
	w := c.push(demoServices)
	c.post("/heartbeat", obj{"id": w.id, "url": w.URL, "load": 0})
	c.seesLower()
	status, h, _ := c.sendAs("text/html,*/*", "GET", "/flows")
	require.Equal(c, 200, status)
	require.Contains(c, h.Get("Content-Type"), "text/html")
	status, h, _ = c.sendAs("application/json", "GET", "/flows")
	require.Equal(c, 200, status)
	require.Equal(c, "application/json", h.Get("Content-Type"))
}
