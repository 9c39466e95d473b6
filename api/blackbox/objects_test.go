//go:build unix

package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// objectChecks holds the checks of Ork's list about workers that report by files of an object
// store.
var objectChecks = []check{
	{"O15 a worker that falls silent has failed", stillWorker},
	{"O16 a worker that never begins has failed", absentWorker},
	{"O16 nobody starts a worker", nobodysWorker},
	{"O40 a worker that is started later runs from then on", lateStarter},
	{"O17 a worker that goes on is waited for", livelyWorker},
	{"O18 what an old attempt says is not heard", lateWorker},
	{"C9 a half status, another attempt and a wrong clock change nothing", oddWorker},
	{"C10 a worker that is killed has fallen silent, and the next one has files of its own", killedWorker},
	{"a worker that says why it has failed is believed", failingWorker},
	{"who ends without a word has failed", wordlessWorker},
	{"a large input is in the spec", specOfLargeInput},
	{"each unit has a spec of its own", specsOfUnits},
	{"a task without instances says so in its spec", specOfOne},
	{"the worker of a canceled task is told", calledOffWorker},
}

func TestObjectStoreSQLite(t *testing.T)  { t.Parallel(); runChecks(t, sqliteStore, objectChecks) }
func TestObjectStoreCluster(t *testing.T) { t.Parallel(); runChecks(t, clusterStore, objectChecks) }

// toSay is the shell prologue of every such worker. The function say writes a status atomically.
const toSay = `cd "$(dirname "$TASK_SPEC_PATH")"; say() { echo "$1" > .s; mv .s status.json; }; `

// byFiles returns a task of Ork that runs shell lines and reports by files.
func byFiles(line string, more ...string) string {
	return sh("a", toSay+strings.ReplaceAll(line, "\n", "; "), append(more, "exec: {report: object_store}")...)
}

// goesThrough starts a run of one task, and requires the reported states of the task.
func (f *orkFlow) goesThrough(states ...string) *orkRun {
	f.Helper()
	feed := f.feed()
	r := f.start(nil)
	want, last := []string{"run:pending", "run:running", "a:pending"}, states[len(states)-1]
	for _, state := range states {
		want = append(want, "a:"+state)
	}
	require.Equal(f, append(want, "run:"+last), feed.of(r, last))
	return r
}

func stillWorker(c *client) {
	r := c.ork(byFiles(`say '{"status": "running", "heartbeat": "x"}'; sleep 60`,
		"heartbeat_timeout: 2")).goesThrough("dispatched", "running", "failed")
	require.Equal(c, "heartbeat timeout", r.task("a")["error"])
}

func absentWorker(c *client) {
	r := c.ork(byFiles(`sleep 60`, "start_timeout: 2")).goesThrough("dispatched", "failed")
	a := r.task("a")
	require.Equal(c, []any{"job never started", nil}, []any{a["error"], a["started_at"]})
	require.NotEmpty(c, a["dispatched_at"])
}

// nobodysWorker has a worker that is never started.
func nobodysWorker(c *client) {
	d := c.elsewhere("start_timeout: 5s")
	task := func() obj { return objects(c, c.get("/runs/" + d.id)["tasks"])[0] }
	d.spec(1)
	require.Equal(c, []any{"dispatched", nil}, []any{task()["status"], task()["started_at"]})
	d.ended("failed")
	require.Equal(c, []any{"failed", "job never started", nil}, []any{task()["status"], task()["error"], task()["started_at"]})
}

// lateStarter has a worker that another system starts after a while.
func lateStarter(c *client) {
	d := c.elsewhere("")
	task := func() obj { return objects(c, c.get("/runs/" + d.id)["tasks"])[0] }
	status, output := filepath.Join(filepath.Dir(d.spec(1)), "status.json"), filepath.Join(filepath.Dir(d.spec(1)), "output.json")
	require.Equal(c, "dispatched", task()["status"])
	require.NoError(c, os.WriteFile(status, []byte(`{"status": "running", "heartbeat": 1}`), 0o600))
	require.Eventually(c, func() bool { return task()["status"] == "running" }, deadline, 20*time.Millisecond)
	require.Greater(c, task()["started_at"], task()["dispatched_at"])
	require.NoError(c, os.WriteFile(output, []byte(`1`), 0o600))
	require.NoError(c, os.WriteFile(status, []byte(`{"status": "success"}`), 0o600))
	d.ended("completed")
	require.Equal(c, "success", task()["status"])
}

func livelyWorker(c *client) {
	r := c.ork(byFiles(`for i in 1 2 3 4 5 6 7 8; do say "{\"status\": \"running\", \"heartbeat_at\": $i}"; sleep 1; done
echo '{"n": 8}' > output.json; say '{"status": "success"}'`, "heartbeat_timeout: 6")).goesThrough("dispatched", "running", "success")
	require.Equal(c, obj{"n": 8.0}, r.task("a")["output"])
}

// lateWorker has a first attempt that continues to report in its own folder. Its reports also reach
// the folder of the second attempt.
func lateWorker(c *client) {
	r := c.ork(byFiles(`test $ORK_ATTEMPT = 1 && { say '{"status": "failed", "error": "first"}'; exit; }
grep -q first ../1/status.json || exit
say '{"status": "failed", "attempt": 1, "error": "late"}'; sleep 3
echo 2 > output.json; say '{"status": "success", "attempt": 2}'`, "retries: 1")).start(nil).ends("success")
	require.Equal(c, []any{2.0, 2.0}, []any{r.task("a")["output"], r.task("a")["attempt"]})
}

func oddWorker(c *client) {
	r := c.ork(byFiles(`printf '{"status": "fail' > status.json; sleep 2.2; say '{"status": "failed", "attempt": 7}'; sleep 2.2
say '{"status": "running", "heartbeat": "1999-01-01T00:00:00Z", "attempt": 1}'; sleep 2.2; say '{"status": "running", "heartbeat": "2999-01-01T00:00:00Z"}'; sleep 2.2
echo '"ok"' > output.json; say '{"status": "success", "attempt": 1}'`, "heartbeat_timeout: 30")).start(nil).ends("success")
	require.Equal(c, "ok", r.task("a")["output"])
}

func failingWorker(c *client) {
	r := c.ork(byFiles(`say '{"status": "failed", "error": "no such customer"}'`)).start(nil).ends("failed")
	require.Equal(c, "no such customer", r.task("a")["error"])
}

func wordlessWorker(c *client) {
	r := c.ork(byFiles(`echo 'ORK_OUTPUT:1'; say '{"status": "running"}'`)).start(nil).ends("failed")
	require.Equal(c, "exited without a status", r.task("a")["error"])
}

func specOfLargeInput(c *client) {
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = 'x'
	}
	r := c.ork(byFiles(`wc -c < spec.json > output.json; say '{"status": "success"}'`)).start(obj{"text": string(text)}).ends("success")
	require.Greater(c, r.task("a")["output"], 300_000.0)
}

func specsOfUnits(c *client) {
	r := c.ork(byFiles(`cp spec.json output.json; say '{"status": "success"}'`, "parallel: 2",
		"timeout: 50")).start(obj{"x": 1}).ends("success")
	for i, one := range r.tasks("a") {
		spec := one["output"].(obj)
		require.NotEmpty(c, spec["created_at"])
		require.NotEmpty(c, spec["command"])
		require.Equal(c, []any{r.id, one["id"], "a", r.name, "process", obj{"x": 1.0}, float64(i), 2.0, 1.0, 50.0},
			[]any{spec["run_id"], spec["task_id"], spec["task_name"], spec["workflow_name"],
				spec["executor"], spec["input"], spec["parallel_index"], spec["parallel_count"],
				spec["attempt"], spec["timeout_seconds"]})
	}
}

// specOfOne checks that the spec of a task without instances has the fields of instances, as null.
func specOfOne(c *client) {
	r := c.ork(byFiles(`cp spec.json output.json; say '{"status": "success"}'`)).start(nil).ends("success")
	spec := r.task("a")["output"].(obj)
	for _, field := range []string{"parallel_index", "parallel_count"} {
		require.Contains(c, spec, field)
		require.Nil(c, spec[field])
	}
}

// elsewhere returns a task with a worker that the check itself starts.
func (c *client) elsewhere(more string) *dag {
	return c.dag("profile: ork\nnodes:\n  a: {exec_type: external, service: object_store, "+more+"}", obj{"n": 20})
}

// spec waits for the spec of an attempt and returns its path.
func (d *dag) spec(attempt int) string {
	d.Helper()
	pattern := filepath.Join(os.Getenv(objectsPlace), "runs", d.id, "*", fmt.Sprint(attempt), "spec.json")
	var found []string
	require.Eventually(d, func() bool {
		found, _ = filepath.Glob(pattern)
		return len(found) == 1
	}, deadline, 10*time.Millisecond)
	return found[0]
}

// works starts a worker of the examples in a process group of its own.
func works(c *client, spec, name string, command ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join("..", "..", "examples", "ork", name), command...)
	cmd.Env = append(os.Environ(), "TASK_SPEC_PATH="+spec, "HEARTBEAT_SECONDS=0.5")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(c, cmd.Start())
	return cmd
}

func killedWorker(c *client) {
	d := c.elsewhere("heartbeat_timeout: 5, retry: {max_attempts: 3}")
	first := works(c, d.spec(1), "object-store-worker.sh", "sleep", "60")
	status := filepath.Join(filepath.Dir(d.spec(1)), "status.json")
	require.Eventually(c, func() bool { _, err := os.Stat(status); return err == nil }, deadline, 10*time.Millisecond)
	require.NoError(c, syscall.Kill(-first.Process.Pid, syscall.SIGKILL))
	_ = first.Wait() // it was killed
	second := d.spec(2)
	require.NoFileExists(c, filepath.Join(filepath.Dir(second), "status.json"))
	require.Error(c, works(c, second, "object-store-worker.py", "sh", "-c", "echo no luck >&2; exit 3").Wait())
	require.NoError(c, works(c, d.spec(3), "object-store-worker.py", "cat").Wait())
	require.Equal(c, obj{"a": obj{"n": 20.0}}, d.ended("completed")["result"])
	require.Equal(c, []any{"heartbeat timeout", "exit status 3: no luck", nil}, values(d.attempts("a"), "error"))
}

func calledOffWorker(c *client) {
	d := c.elsewhere("")
	worker := works(c, d.spec(1), "object-store-worker.sh", "sleep", "60")
	d.post(d.path("/cancel"), obj{"force": true})
	d.ended("canceled")
	require.Error(c, worker.Wait(), "it is told by a file that nobody waits for it any longer")
}
