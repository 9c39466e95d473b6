package blackbox

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// A line without an end, or longer than a stored piece, must still be one line of its stream.
func orkOpenLines(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("open.sh", "#!/bin/sh", "head -c 40000 /dev/zero | tr '\\0' x", "echo", "printf a", "printf b >&2")
	f.register("a: {executor: process, file: open.sh}")
	r := f.start(nil).ends("success")
	r.logged("a/logs", func(text string) bool {
		return strings.Contains(text, "stdout: "+strings.Repeat("x", 40000)+"\n") &&
			strings.Contains(text, "stdout: a") && strings.Contains(text, "stderr: b") &&
			len(text) == len("stdout: \nstdout: a\nstderr: b")+40000
	})
}

func orkLogs(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("slow.sh", "#!/bin/sh", "echo noise", "echo 'ORK_OUTPUT:{bad'", "echo 'ORK_OUTPUT:1'",
		"echo oops >&2", waits("go"), "echo 'ORK_OUTPUT:2'")
	f.register("a: {executor: process, file: slow.sh}", sh("many", "echo I am $ORK_PARALLEL_INDEX", "parallel: 2"),
		"last: {executor: process, command: 'echo try $ORK_ATTEMPT; test $ORK_ATTEMPT = 2', depends_on: [a], retries: 1}")
	r := f.start(nil)
	r.logged("a/logs", func(text string) bool { return strings.Contains(text, "stderr: oops\n") })
	require.NotContains(c, r.log("a/logs"), "ORK_OUTPUT:2")
	var early sync.WaitGroup
	defer early.Wait()
	first := ""
	early.Go(func() {
		_, _, text := c.send("GET", "/runs/"+r.id+"/tasks/last/logs?attempt=1&follow=true", nil)
		first = string(text)
	})
	// the follower connects before the output begins
	require.Never(c, func() bool { return r.task("last")["status"] != "pending" }, 300*time.Millisecond, 50*time.Millisecond)
	r.touch("go")
	followed := r.log("a/logs?follow=true")
	r.ends("success")
	require.Equal(c, 2.0, r.task("a")["output"], "the last line that is good")
	require.Contains(c, followed, "stdout: noise\n")
	require.Contains(c, followed, "stdout: ORK_OUTPUT:{bad\n")
	require.True(c, strings.HasSuffix(followed, "stdout: ORK_OUTPUT:2\n"), followed)
	require.Equal(c, followed, r.log("a/logs?attempt=1"))
	r.logged("many/logs?index=1", func(text string) bool { return text == "stdout: I am 1\n" })
	early.Wait()
	require.Equal(c, "stdout: try 1\n", first, "of an attempt that had not begun")
	status, _ := c.call("GET", "/runs/"+r.id+"/tasks/none/logs", nil)
	require.Equal(c, 404, status)
	status, _ = c.call("GET", "/runs/"+r.id+"/tasks/a/logs?attempt=2", nil)
	require.Equal(c, 404, status)
}

// orkFeed is a WebSocket with every transition of every run.
type orkFeed struct {
	*client
	conn *websocket.Conn
}

func (c *client) feed() *orkFeed {
	c.Helper()
	conn, _, err := websocket.Dial(c.Context(), strings.Replace(c.url(), "http", "ws", 1)+c.prefix+"/ws", nil)
	require.NoError(c, err)
	c.Cleanup(func() { _ = conn.CloseNow() })
	return &orkFeed{c, conn}
}

// of reads until a run has ended, and returns its transitions: states of the run as run:state, of
// its tasks as NAME:state.
func (f *orkFeed) of(r *orkRun, end string) (told []string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), deadline)
	defer cancel()
	for {
		_, data, err := f.conn.Read(ctx)
		require.NoError(f, err, "%v", told)
		var m struct {
			Type   string `json:"type"`
			Run    string `json:"run_id"`
			Task   string `json:"task_id"`
			Status string `json:"status"`
		}
		require.NoError(f, json.Unmarshal(data, &m))
		switch {
		case m.Run != r.id:
		case m.Type == "run_updated":
			told = append(told, "run:"+m.Status)
			if m.Status == end {
				return told
			}
		default:
			told = append(told, r.nameOf(m.Task)+":"+m.Status)
		}
	}
}

func (r *orkRun) nameOf(id string) string {
	r.Helper()
	for _, t := range objects(r, r.read()["tasks"]) {
		if t["id"] == id {
			return t["name"].(string)
		}
	}
	return id
}

func orkTransitions(c *client) {
	f := c.ork(sh("a", "sleep 0.1"), sh("b", "[ $ORK_ATTEMPT = 2 ]", "depends_on: [a]",
		"retries: 1"), sh("c", "exit 1", "depends_on: [b]"), sh("d", "ls", "depends_on: [c]"))
	feed := c.feed()
	r := f.start(nil)
	require.Equal(c, []string{"run:pending", "run:running", "a:pending", "b:pending", "c:pending",
		"d:pending", "a:dispatched", "a:running", "a:success",
		"b:dispatched", "b:running", "b:pending", "b:dispatched", "b:running", "b:success",
		"c:dispatched", "c:running", "c:failed", "d:skipped", "run:failed"}, feed.of(r, "failed"))
	status, _ := r.ask("/retry", obj{"task": "c"})
	require.Equal(c, 200, status)
	require.Equal(c, []string{"run:running", "c:dispatched", "c:running", "c:failed", "d:skipped",
		"run:failed"}, withoutPending(feed.of(r, "failed")))
}

// orkTransitionsOfMany checks that holding, resuming or cutting short a task applies to all its
// instances.
func orkTransitionsOfMany(c *client) {
	f := c.ork(sh("a", waits("go")), sh("b", "ls", "parallel: 2", "depends_on: [a]"), sh("c", "ls", "depends_on: [a]"))
	feed := c.feed()
	r := f.start(nil)
	r.running("a")
	for _, what := range []string{"pause", "resume"} {
		status, _ := c.call("POST", "/tasks/"+r.tasks("b")[1]["id"].(string)+"/"+what, nil)
		require.Equal(c, 200, status)
	}
	status, _ := r.ask("/cancel", nil)
	require.Equal(c, 200, status)
	told := strings.Join(feed.of(r, "cancelled"), " ")
	require.Contains(c, told, "b:paused b:paused b:pending b:pending")
	r.touch("go")
	r.until("a has ended", func() bool { return r.task("a")["status"] == "success" })
	status, answer := r.ask("/retry", obj{"task": "b"})
	require.Equal(c, 200, status, "%v", answer)
	told = strings.Join(feed.of(r, "success"), " ")
	for _, task := range []string{"b", "c"} {
		require.Contains(c, told, task+":pending", told)
		require.Contains(c, told, task+":success", told)
	}
}

func withoutPending(told []string) (rest []string) {
	for _, t := range told {
		if !strings.HasSuffix(t, ":pending") {
			rest = append(rest, t)
		}
	}
	return rest
}
