package blackbox

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

func timerNode(ms int) string {
	return fmt.Sprintf(
		`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":%d},"prep":{"input_key":"$params.v"},"post":{"output_key":"out"}}}}`,
		ms)
}

// rt returns the entry of a place in `_rt` of a task's shared state.
func (c *client) rt(t obj, key string) (obj, bool) {
	c.Helper()
	var shared struct {
		RT map[string]obj `json:"_rt"`
	}
	require.NoError(c, json.Unmarshal([]byte(t["shared_json"].(string)), &shared))
	v, ok := shared.RT[key]
	return v, ok
}

func timer(c *client) {
	long := c.start(timerNode(3_600_000), obj{"v": 1})
	waiting := c.until(long, "at the timer", func(t obj) bool { _, ok := c.rt(t, "tm:t"); return ok })
	require.Equal(c, "running", waiting["status"])
	rt, _ := c.rt(waiting, "tm:t")
	require.InDelta(c, time.Now().UnixMilli(), rt["start"], 600_000, "milliseconds")

	flow, _ := c.flow(timerNode(300))
	began := time.Now()
	task := c.task(flow, obj{"v": 1})
	c.shared(c.ends(task, "completed"), `{"out":1}`)
	require.GreaterOrEqual(c, time.Since(began), 300*time.Millisecond)
	rows := c.runs(task)
	require.Len(c, rows, 1)
	require.JSONEq(c, `{"delay_ms":300}`, rows[0]["prep_json"].(string))
	require.Equal(c, "null", rows[0]["exec_output_json"])
}

func waitEvent(c *client) {
	flow, _ := c.flow(waitForever)
	task := c.task(flow, obj{})
	waiting := c.until(task, "waiting", func(t obj) bool { _, ok := c.rt(t, "we:w"); return ok })
	require.Equal(c, "running", waiting["status"])
	require.Empty(c, c.runs(task))
	for _, v := range []any{"", false, nil} {
		c.signal(task, "go", v)
		require.Equal(c, "running", c.read(task)["status"], "%v does not release", v)
	}
	c.signal(task, "go", obj{"a": 1})
	c.shared(c.ends(task, "completed"), `{"go":{"a":1},"got":{"a":1}}`)
	row := c.runs(task)[0]
	require.Equal(c, []any{"ok", `{"a":1}`}, []any{row["status"], row["exec_output_json"]})
	require.JSONEq(c, `{"signal_key":"$shared.go"}`, row["prep_json"].(string))
	task = c.task(flow, obj{})
	c.signal(task, "go", 0)
	c.shared(c.ends(task, "completed"), `{"go":0,"got":0}`)
	status, _ := c.call("POST", "/tasks/signal", obj{"task_id": task, "key": "_rt", "value": 1})
	require.Equal(c, 400, status)
}

func waitNode(more, edges string) string {
	return `{"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.go","timeout_ms":300},"post":{"output_key":"got","action_static":"late"}` +
		more + `},"y":{"kind":"choice","default_action":"end"}},"edges":[` + edges + `]}`
}

func waitTimeout(c *client) {
	task := c.start(waitNode("", ""), obj{})
	c.ends(task, "failed")
	row := c.runs(task)[0]
	require.Equal(c, []any{"error", "timeout"}, []any{row["status"], row["error_text"]})
	task = c.start(waitNode("", `{"from":"w","action":"late","to":"y"}`), obj{})
	require.Equal(c, "end", c.ends(task, "completed")["last_action"])
	task = c.start(waitNode(`,"failure_strategy":"continue"`, ""), obj{})
	c.shared(c.ends(task, "completed"), `{}`)
	require.Equal(c, []any{"ok"}, values(c.runs(task), "status"))
}

func approvalNode(more string) string {
	return `{"start":"a","nodes":{"a":{"kind":"approval","params":{"approval_key":"$shared.ok"},"post":{"output_key":"said"` + more + `}}}}`
}

func approval(c *client) {
	for _, tt := range []struct {
		more   string
		value  any
		action string
	}{
		{"", true, "approved"},
		{"", false, "rejected"},
		{"", "custom", "custom"},
		{`,"action_key":"approval"`, "custom", "custom"},
		{`,"action_key":"approval"`, true, "approved"},
		{`,"action_key":"other"`, true, ""},
	} {
		task := c.start(approvalNode(tt.more), obj{})
		waiting := c.until(task, "waiting", func(t obj) bool { _, ok := c.rt(t, "ap:a"); return ok })
		require.Equal(c, "running", waiting["status"])
		c.signal(task, "ok", tt.value)
		t := c.ends(task, "completed")
		require.Equal(c, tt.action, t["last_action"], "%v", tt)
		row := c.runs(task)[0]
		require.Equal(c, []any{tt.action, "ok"}, []any{row["action"], row["status"]})
		require.JSONEq(c, `{"approval_key":"$shared.ok"}`, row["prep_json"].(string))
	}
}

func signals(c *client) {
	task := c.start(`{"start":"t","nodes":{"t":{"kind":"timer","params":{"delay_ms":1000}},
		"w":{"kind":"wait_event","params":{"signal_key":"$shared.go"},"post":{"output_key":"got"}}},
		"edges":[{"from":"t","action":"default","to":"w"}]}`, obj{})
	c.signal(task, "go", 1)
	early := c.start(waitForever, obj{})
	var all sync.WaitGroup
	failed := make(chan error, 100)
	for i := range 50 {
		for _, side := range []string{"left", "right"} {
			all.Go(func() {
				_, err := postJSON(c.url()+"/api/tasks/signal", obj{"task_id": early, "key": fmt.Sprint(side, i), "value": i})
				failed <- err
			})
		}
	}
	all.Wait()
	for range 100 {
		require.NoError(c, <-failed)
	}
	var shared map[string]any
	require.NoError(c, json.Unmarshal([]byte(c.read(early)["shared_json"].(string)), &shared))
	for i := range 50 {
		require.EqualValues(c, i, shared[fmt.Sprint("left", i)])
		require.EqualValues(c, i, shared[fmt.Sprint("right", i)])
	}
	c.shared(c.ends(task, "completed"), `{"go":1,"got":1}`)
}

func cancels(c *client) {
	service := unique("svc")
	at := map[string]string{
		c.start(waitForever, obj{}):        "running",
		c.start(queueNode(service), obj{}): "waiting_queue",
	}
	for task, status := range at {
		c.untilStatus(task, status)
	}
	pending := c.start(timerNode(3_600_000), obj{})
	at[pending] = ""
	for task := range at {
		c.cancel(task)
		t := c.ends(task, "canceled")
		require.Equal(c, []any{"", "canceled"}, []any{t["current_node_key"], t["last_action"]})
		rows := c.runs(task)
		last := rows[len(rows)-1]
		require.Equal(c, []any{0.0, "canceled", "canceled", "{}", "null", "null", ""},
			[]any{last["attempt_no"], last["status"], last["action"],
				last["prep_json"], last["exec_input_json"], last["exec_output_json"], last["worker_id"]})
	}
	require.Nil(c, c.pollQueue(service), "nobody waits for the job of a canceled task")
	done := c.start(localMul, obj{"val": 1})
	c.ends(done, "completed")
	c.cancel(done)
	require.Equal(c, "completed", c.read(done)["status"])
	status, _ := c.call("POST", "/tasks/run_once?id="+done, nil)
	require.Equal(c, 409, status)
}

func approvalBlocksNobody(c *client) {
	open := c.start(approvalNode(""), obj{})
	c.ends(c.start(localMul, obj{"val": 1}), "completed")
	require.Equal(c, "running", c.read(open)["status"])
}
