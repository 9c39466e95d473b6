package blackbox

import (
	"net/url"

	"github.com/stretchr/testify/require"
)

// tellsInputs holds the expected problems of an input for a flow that declares amount: int, limit:
// int = 3, note: optional text.
var tellsInputs = []string{"$params.amount: is missing: an int was declared",
	"$params.amuont: is not declared: did you mean amount?",
	`$params.limit: is text "x", an int was declared`}

// declaredInputs checks starts of a flow with declared inputs: all problems are reported together,
// nothing is stored, and defaults become params of the task.
func declaredInputs(c *client) {
	flow, version := c.flow(`{"start":"x","inputs":{"amount":"int","limit":"int = 3","note":"optional text"},
		"nodes":{"x":{"kind":"timer","params":{"delay_ms":1}}}}`)
	for _, named := range []obj{{"FlowID": flow}, {"FlowVersionID": version}} {
		named["ParamsJSON"] = `{"amuont":1,"limit":"x"}`
		status, v := c.call("POST", "/tasks", named)
		require.Equal(c, 422, status, "%v", v)
		for _, problem := range tellsInputs {
			require.Contains(c, v.(obj)["error"], problem)
		}
	}
	status, _ := c.call("POST", "/tasks", obj{"FlowID": flow})
	require.Equal(c, 422, status, "no params are an empty object, which lacks one")
	require.Empty(c, c.get("/tasks?flow_version_id=" + url.QueryEscape(version))["data"], "nothing is stored")

	task := c.task(flow, obj{"amount": 7})
	require.JSONEq(c, `{"amount":7,"limit":3}`, c.ends(task, "completed")["params_json"].(string))
}

// pgDeclaredInputs is the same for runs. Their clients also get a word for programs.
func pgDeclaredInputs(c *client) {
	f := c.pgflowWith("inputs: {amount: int, limit: int = 3, note: optional text}", "d: {route: direct}")
	runID := "0198b000-0000-7000-8000-00000000000a"
	status, v := c.call("POST", "/flows/"+f.slug+"/runs", obj{"input": obj{"amuont": 1, "limit": "x"}, "run_id": runID})
	require.Equal(c, 422, status, "%v", v)
	require.Equal(c, "invalid", v.(obj)["error"])
	for _, problem := range tellsInputs {
		require.Contains(c, v.(obj)["message"], problem)
	}
	for _, input := range []any{nil, 7, []int{1}, "x"} {
		status, v = c.call("POST", "/flows/"+f.slug+"/runs", obj{"input": input, "run_id": runID})
		require.Equal(c, 422, status, "%v: %v", input, v)
		require.Contains(c, v.(obj)["message"], "$params")
	}
	status, _ = c.call("GET", "/runs/"+runID, nil)
	require.Equal(c, 404, status, "nothing is stored, and the id is free")

	status, v = c.call("POST", "/flows/"+f.slug+"/runs", obj{"input": obj{"amount": 7}, "run_id": runID})
	require.Equal(c, 200, status, "%v", v)
	require.Equal(c, obj{"amount": 7.0, "limit": 3.0}, v.(obj)["run"].(obj)["input"])
}
