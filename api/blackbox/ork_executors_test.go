package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"
)

// library compiles a C library with a function that returns an expression, into the folder of the
// workflow.
func (f *orkFlow) library(name, does, returns string) string {
	f.Helper()
	source := filepath.Join(f.root, name+".c")
	require.NoError(f, os.WriteFile(source,
		[]byte("#include <stdlib.h>\n#include <string.h>\nchar *ork_task_run(const char *input) { "+
			does+"; return "+returns+
			"; }\nvoid ork_task_free(char *text) { free(text); }\n"), 0o600))
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(f.root, name+".so"), source).CombinedOutput()
	require.NoError(f, err, "%s", out)
	return name + ": {executor: library, file: " + name + ".so"
}

func orkLibrary(c *client) {
	if _, err := exec.LookPath("cc"); err != nil || runtime.GOOS == "windows" {
		c.Skip("there is no compiler of C")
	}
	f := c.orkIn(c.TempDir())
	f.register(f.library("echo", "", "strdup(input)")+", input: {n: 7}}",
		f.library("nothing", "", "NULL")+"}", f.library("error", "", `strdup("{\"error\":\"no\"}")`)+"}",
		f.library("crash", "*(volatile int *)0 = 1", "NULL")+", retries: 1}", f.library("gone", "", "NULL")+"}")
	require.NoError(c, os.Remove(filepath.Join(f.root, "gone.so")))
	r := f.start(nil).ends("failed")
	require.Equal(c, map[string]string{"echo": "success", "nothing": "failed", "error": "failed",
		"crash": "failed", "gone": "failed"}, r.statuses())
	require.Equal(c, []any{obj{"n": 7.0}, "library"}, []any{r.task("echo")["output"], r.task("echo")["executor"]})
	require.Equal(c, "Task returned null pointer", r.task("nothing")["error"])
	require.Equal(c, "no", r.task("error")["error"])
	require.Contains(c, r.task("crash")["error"], "signal: segmentation fault")
	require.Equal(c, 2.0, r.task("crash")["attempt"])
	require.Contains(c, r.task("gone")["error"], `there is no file "gone.so"`)
	r.logged("echo/logs", func(text string) bool { return strings.Contains(text, "stdout: Loading library: ") })
}

func orkByWorker(c *client) {
	url := orkWorker(c, func(asked obj) (int, any) {
		params := asked["params"].(obj)
		return 200, obj{"status": "success", "output": []any{asked["task_name"],
			asked["executor_type"], params["command"], params["task_file"], params["task_input"],
			params["env"].(obj)["A"]}}
	})
	r := c.ork("a-b: {executor: worker, worker: "+url+", command: count it, input: {n: 1}, env: {A: x}}",
		"b: {executor: worker, worker: "+url+", file: tasks/b.py, function: main, env: {A: y}}").start(nil).ends("success")
	require.Equal(c, []any{"a-b", "process", "count it", nil, obj{"n": 1.0}, "x"}, r.task("a-b")["output"])
	require.Equal(c, []any{"b", "python", nil, "tasks/b.py", obj{}, "y"}, r.task("b")["output"])
	require.Equal(c, "worker", r.task("b")["executor"])
	status, answer := c.orkIn(c.TempDir()).tryRegister("a: {executor: worker, worker: big, command: x}")
	require.Equal(c, 400, status)
	require.Contains(c, answer["message"], "there is no worker big: name it in a workers.yaml beside the workflow")
}

func orkCloudRun(c *client) {
	f := c.orkIn(c.TempDir())
	answer := f.register("a: {executor: cloudrun, job: nightly, retries: 3}", sh("b", "ls", "depends_on: [a]"), sh("x", "ls"))
	require.Contains(c, answer["warnings"].([]any)[0].(obj)["message"], "troupe-cloud")
	r := f.start(nil).ends("failed")
	require.Equal(c, map[string]string{"a": "failed", "b": "skipped", "x": "success"}, r.statuses())
	require.Equal(c, []any{"executor cloudrun is not in this binary: use troupe-cloud", "cloudrun"},
		[]any{r.task("a")["error"], r.task("a")["executor"]})

	f = c.orkIn(c.TempDir())
	c.post("/workflows", obj{"name": f.name, "job_name": "nightly", "task_count": 2, "project": "p"})
	require.Equal(c, "cloudrun", c.get("/workflows/" + f.name)["executor"])
	r = f.start(nil).ends("failed")
	require.Equal(c, map[string]string{"task_0": "failed", "task_1": "failed"}, r.statuses())

	f = c.orkIn(c.TempDir())
	require.Contains(c, f.register("a: {executor: kubernetes, image: busybox}")["warnings"].([]any)[0].(obj)["message"], "troupe-cloud")
	r = f.start(nil).ends("failed")
	require.Equal(c, []any{"executor kubernetes is not in this binary: use troupe-cloud",
		"kubernetes"}, []any{r.task("a")["error"], r.task("a")["executor"]})
}
