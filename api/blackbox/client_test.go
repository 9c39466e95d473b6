package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// obj is a JSON object as a client sees it.
type obj = map[string]any

// client calls a server like clients of the dialect do.
type client struct {
	*testing.T
	*server
	prefix string // of routes: "/api", or "" for the bare ones
}

func newClient(t *testing.T, s *server) *client {
	return &client{T: t, server: s.apart(), prefix: "/api"}
}

// deadline is the limit for everything a check waits for. It is far beyond the usual time, because
// the machine may be busy.
const deadline = 3 * time.Minute

var httpClient = &http.Client{Timeout: 2 * deadline, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// send sends a request and returns the status, headers and body of the answer.
func (c *client) send(method, path string, body any) (int, http.Header, []byte) {
	c.Helper()
	if body == nil {
		return c.do("", method, path, "")
	}
	return c.do("", method, path, jsonText(c, body))
}

// sendAs sends a request with an Accept header.
func (c *client) sendAs(accept, method, path string) (int, http.Header, []byte) {
	c.Helper()
	return c.do(accept, method, path, "")
}

// do sends a request. It retries when a member reports that another one or the store has not
// answered in time: on a machine that stalls for seconds that is no fault, and clients are supposed
// to retry.
func (c *client) do(accept, method, path, body string) (status int, header http.Header, answer []byte) {
	c.Helper()
	for begun := time.Now(); ; time.Sleep(time.Second) {
		status, header, answer = c.once(accept, method, path, body)
		if status != http.StatusServiceUnavailable || time.Since(begun) > deadline {
			return status, header, answer
		}
	}
}

func (c *client) once(accept, method, path, body string) (int, http.Header, []byte) {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), method, c.url()+c.prefix+path, strings.NewReader(body))
	require.NoError(c, err)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := httpClient.Do(req)
	require.NoError(c, err)
	defer func() { require.NoError(c, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	return resp.StatusCode, resp.Header, b
}

// call returns the status and the decoded answer; nil if there is none.
func (c *client) call(method, path string, body any) (int, any) {
	c.Helper()
	status, _, b := c.send(method, path, body)
	var v any
	if len(b) > 0 {
		require.NoError(c, json.Unmarshal(b, &v), "%s %s: %s", method, path, b)
	}
	return status, v
}

// post and get require success.
func (c *client) post(path string, body any) obj {
	c.Helper()
	status, v := c.call("POST", path, body)
	require.Equal(c, 200, status, "POST %s: %v", path, v)
	return v.(obj)
}

func (c *client) get(path string) obj {
	c.Helper()
	status, v := c.call("GET", path, nil)
	require.Equal(c, 200, status, "GET %s: %v", path, v)
	return v.(obj)
}

func (c *client) list(path string) []obj {
	c.Helper()
	status, v := c.call("GET", path, nil)
	require.Equal(c, 200, status, "GET %s: %v", path, v)
	return objects(c, v)
}

func objects(t require.TestingT, v any) []obj {
	require.IsType(t, []any{}, v, "lists are never null")
	list := []obj{}
	for _, o := range v.([]any) {
		list = append(list, o.(obj))
	}
	return list
}

// refused requires an error answer.
func (c *client) refused(status int, text, method, path string, body any) {
	c.Helper()
	got, v := c.call(method, path, body)
	require.Equal(c, status, got, "%s %s: %v", method, path, v)
	require.Equal(c, obj{"error": text}, v)
}

var names atomic.Int64

// unique returns a name that no other check on the same server uses.
func unique(what string) string { return fmt.Sprintf("%s-%d", what, names.Add(1)) }

// flow creates a flow with one published version and returns the ids of both.
func (c *client) flow(definition any) (flow, version string) {
	c.Helper()
	flow = c.post("/flows", obj{"Name": unique("flow")})["id"].(string)
	return flow, c.version(flow, 1, definition, "published")
}

func (c *client) version(flow string, number int, definition any, status string) string {
	c.Helper()
	return c.post("/flows/version", obj{"FlowID": flow, "Version": number,
		"DefinitionJSON": jsonText(c, definition), "Status": status})["id"].(string)
}

func jsonText(t require.TestingT, v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// start creates a flow from a definition and starts a task of it.
func (c *client) start(definition any, params any) string {
	c.Helper()
	flow, _ := c.flow(definition)
	return c.task(flow, params)
}

func (c *client) task(flow string, params any) string {
	c.Helper()
	return c.post("/tasks", obj{"FlowID": flow, "ParamsJSON": jsonText(c, params)})["id"].(string)
}

func (c *client) read(task string) obj {
	c.Helper()
	return c.get("/tasks/get?id=" + url.QueryEscape(task))
}

func (c *client) runs(task string) []obj {
	c.Helper()
	return c.list("/tasks/runs?task_id=" + url.QueryEscape(task))
}

// until polls a task until ok accepts it. The pauses grow, because reading a large task is
// expensive.
func (c *client) until(task, what string, ok func(obj) bool) obj {
	c.Helper()
	for begun := time.Now(); ; time.Sleep(max(30*time.Millisecond, time.Since(begun)/10)) {
		t := c.read(task)
		if ok(t) {
			return t
		}
		require.Less(c, time.Since(begun), deadline, "task %s never was %s: %v", task, what, t)
	}
}

func (c *client) untilStatus(task, status string) obj {
	c.Helper()
	return c.until(task, status, func(t obj) bool { return t["status"] == status })
}

// ends polls a task until it has ended and requires its status.
func (c *client) ends(task, status string) obj {
	c.Helper()
	t := c.until(task, "over", func(t obj) bool {
		return t["status"] == "completed" || t["status"] == "failed" || t["status"] == "canceled"
	})
	require.Equal(c, status, t["status"], "%v\n%v", t, c.runs(task))
	return t
}

func (c *client) signal(task, key string, value any) {
	c.Helper()
	require.Equal(c, obj{"ok": "1"}, c.post("/tasks/signal", obj{"task_id": task, "key": key, "value": value}))
}

func (c *client) cancel(task string) {
	c.Helper()
	require.Equal(c, obj{"ok": "1"}, c.post("/tasks/cancel?id="+task, nil))
}

// shared requires the shared state of a task, ignoring `_rt`.
func (c *client) shared(task obj, want string) {
	c.Helper()
	require.JSONEq(c, want, task["shared_json"].(string))
}

// values returns a column, row by row.
func values(rows []obj, column string) []any {
	list := []any{}
	for _, r := range rows {
		list = append(list, r[column])
	}
	return list
}
