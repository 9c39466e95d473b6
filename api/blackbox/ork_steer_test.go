package blackbox

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
)

// waits returns a shell line that waits for a file.
func waits(file string) string { return "while [ ! -e " + file + " ]; do sleep 0.05; done" }

func (r *orkRun) running(task string) {
	r.Helper()
	r.until(task+" runs", func() bool { return r.task(task)["status"] == "running" })
}

func (f *orkFlow) touch(name string) {
	f.Helper()
	require.NoError(f, os.WriteFile(filepath.Join(f.root, name), nil, 0o600))
}

func orkCancel(c *client) {
	r := c.ork(sh("a", waits("go")+"; "+gives(`1`)), sh("b", "ls", "depends_on: [a]")).start(nil)
	r.running("a")
	status, answer := r.ask("/cancel", obj{})
	require.Equal(c, 200, status)
	require.Equal(c, "cancelled", answer["status"])
	require.Equal(c, "cancelled", r.status())
	r.touch("go")
	r.until("a has ended", func() bool { return r.task("a")["status"] == "success" })
	require.Equal(c, 1.0, r.task("a")["output"])
	require.Equal(c, "skipped", r.task("b")["status"])
	status, _ = r.ask("/cancel", obj{})
	require.Equal(c, 200, status, "it is cancelled already")

	done := c.ork(sh("a", "ls")).start(nil).ends("success")
	status, _ = done.ask("/cancel", nil)
	require.Equal(c, 409, status)
}

func orkCancelForced(c *client) {
	r := c.ork(sh("a", "echo $$ > pid; "+waits("never")), sh("b", "ls", "depends_on: [a]")).start(nil)
	r.until("it runs", func() bool { text, _ := os.ReadFile(filepath.Join(r.root, "pid")); return len(text) > 0 })
	status, _ := r.ask("/cancel", obj{"force": true})
	require.Equal(c, 200, status)
	require.Equal(c, map[string]string{"a": "cancelled", "b": "cancelled"}, r.statuses())
	c.gone(filepath.Join(r.root, "pid"))
	r.touch("never")
	status, answer := r.ask("/retry", nil)
	require.Equal(c, 200, status)
	require.Equal(c, obj{"run_id": r.id, "reset": []any{"a", "b"}}, answer, "what was cut short begins again")
	r.ends("success")
}

func orkRetry(c *client) {
	r := c.ork(sh("ok", "echo x >> ok"), sh("a", "[ -e go ]"), sh("b", "ls", "depends_on: [a]"),
		sh("c", "ls", "depends_on: [b, ok]")).start(nil).ends("failed")
	r.touch("go")
	status, answer := r.ask("/retry", nil)
	require.Equal(c, 200, status)
	require.Equal(c, obj{"run_id": r.id, "reset": []any{"a", "b", "c"}}, answer)
	r.ends("success")
	require.Equal(c, 1.0, r.task("ok")["attempt"])
	require.Equal(c, 2.0, r.task("a")["attempt"])
	require.Nil(c, r.read()["run"].(obj)["error"])
	status, _ = r.ask("/retry", nil)
	require.Equal(c, 409, status, "nothing has failed")
}

func orkRetryOne(c *client) {
	r := c.ork(sh("a", "[ -e go ]"), sh("b", "ls", "depends_on: [a]"), sh("x", "[ -e go ]"),
		sh("y", "ls", "depends_on: [x]")).start(nil).ends("failed")
	r.touch("go")
	status, answer := r.ask("/retry", obj{"task": "a"})
	require.Equal(c, 200, status)
	require.Equal(c, []any{"a", "b"}, answer["reset"])
	r.until("b has run", func() bool { return r.task("b")["status"] == "success" })
	r.ends("failed")
	require.Equal(c, map[string]string{"a": "success", "b": "success", "x": "failed", "y": "skipped"}, r.statuses())
	status, _ = r.ask("/retry", obj{"task": "b"})
	require.Equal(c, 409, status)
	status, _ = r.ask("/retry", obj{"task": "nobody"})
	require.Equal(c, 404, status)
}

func orkPause(c *client) {
	r := c.ork(sh("a", waits("go")), sh("b", "ls", "depends_on: [a]")).start(nil)
	r.running("a")
	status, answer := r.ask("/pause", nil)
	require.Equal(c, 200, status)
	require.Equal(c, "paused", answer["status"])
	status, _ = r.ask("/pause", nil)
	require.Equal(c, 200, status, "it is paused already")
	r.touch("go")
	r.until("a has ended", func() bool { return r.task("a")["status"] == "success" })
	require.Equal(c, "pending", r.task("b")["status"])
	require.Equal(c, "paused", r.status())
	status, _ = r.ask("/resume", nil)
	require.Equal(c, 200, status)
	r.ends("success")
	status, _ = r.ask("/resume", nil)
	require.Equal(c, 409, status)
	status, _ = r.ask("/pause", nil)
	require.Equal(c, 409, status)
}

func orkPauseTask(c *client) {
	r := c.ork(sh("a", waits("go")), sh("b", "ls", "depends_on: [a]"), sh("c", "ls", "depends_on: [b]")).start(nil)
	r.running("a")
	task := func(name, what string) int {
		status, _ := c.call("POST", "/tasks/"+r.task(name)["id"].(string)+"/"+what, nil)
		return status
	}
	require.Equal(c, 409, task("a", "pause"), "it runs")
	require.Equal(c, 409, task("b", "resume"), "it is not paused")
	require.Equal(c, 200, task("b", "pause"))
	require.Equal(c, 200, task("b", "pause"))
	r.touch("go")
	r.until("a has ended", func() bool { return r.task("a")["status"] == "success" })
	require.Equal(c, map[string]string{"a": "success", "b": "paused", "c": "pending"}, r.statuses())
	require.Equal(c, 200, task("b", "resume"))
	r.ends("success")
}

func orkKill(shared *client) {
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	f := c.ork(sh("done", "echo x >> done"),
		sh("a", `echo $ORK_ATTEMPT >> tries; [ $ORK_ATTEMPT = 2 ] || `+waits("never"), "retries: 1",
			"depends_on: [done]"), sh("b", "ls", "depends_on: [a]"))
	r := f.start(nil)
	r.until("a runs", func() bool { text, _ := os.ReadFile(filepath.Join(r.root, "tries")); return len(text) > 0 })
	p.restart(shared.T)
	r.ends("success")
	require.Equal(c, "1\n2\n", r.written("tries"), "no attempt is carried out twice")
	require.Equal(c, "x\n", r.written("done"))
	require.Equal(c, []any{1.0, 2.0}, []any{r.task("done")["attempt"], r.task("a")["attempt"]})
}
