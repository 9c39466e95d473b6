package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// warmTasks are functions that leave traces, or search for those of others.
const warmTasks = `
import atexit, os, sys, time
from ork import TaskError
seen = []
def trace(n):
    seen.append(n)
    os.environ["SEEN"] = str(n)
    sys.path.append("/nowhere")
    import json
    json.seen = n
    return [seen, os.environ.get("OTHER"), os.getpid(), os.getpgid(0), os.getppid(), os.getcwd(), os.environ.get("SEEN")]
def look():
    import json
    return [hasattr(json, "seen"), "/nowhere" in sys.path, "SEEN" in os.environ]
def words():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    atexit.register(print, "at exit")
    global left, gone
    left = open("left.txt", "w")
    left.write("not closed")
    class Gone:
        def __del__(self): print("let go", sys.version_info[0])
    gone = Gone()
    import threading
    threading.Thread(target=lambda: (time.sleep(0.1), print("a thread"))).start()
    return sys.stdin.read()
def leaves():
    sys.exit(7)
def says(): sys.exit("no more")
def stops(): raise KeyboardInterrupt
def boom(): raise ValueError("boom")
def why(): raise TaskError("m", {"k": 1})
def dies(): os.kill(os.getpid(), 9)
def kills():
    os.kill(os.getppid(), 9)
    time.sleep(1000)
def begin():
    open("pid.new", "w").write("%d %d" % (os.getpid(), os.getppid()))
    os.rename("pid.new", "pid")
def sleeps():
    os.system("setsid sh -c 'echo $$ > away.new; mv away.new away; exec sleep 1000' &")
    begin()
    time.sleep(1000)
def stays():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeps()
async def later(a): return a + 1
`

// warmed is a runner with warm interpreters, and its folder.
type warmed struct {
	*testing.T
	runner *program.Runner
	dir    string
}

func warm(t *testing.T) *warmed {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write(t, filepath.Join(dir, "w.py"), warmTasks, 0o644)
	w := &warmed{t, program.New(program.Options{Dir: dir}), dir}
	t.Cleanup(w.runner.Close)
	return w
}

func (w *warmed) job(function, input string) program.Job {
	return program.Job{Type: flow.ExecPython, Input: json.RawMessage(input),
		Program: &flow.Program{File: "w.py", Function: function, Warm: 1, GraceMS: 200}}
}

func (w *warmed) call(function, input string) program.Result {
	return w.runner.Run(w.Context(), w.job(function, input))
}

func TestWarmAttemptsAreIsolated(t *testing.T) {
	w := warm(t)
	var parents []any
	for n := range 3 {
		job := w.job("trace", fmt.Sprintf(`{"n":%d}`, n))
		job.Program.Env = map[string]string{"OTHER": strconv.Itoa(n)}
		res := w.runner.Run(t.Context(), job)
		require.Empty(t, res.Error)
		var got []any
		require.NoError(t, json.Unmarshal(res.Output, &got))
		require.Equal(t, []any{[]any{float64(n)}, strconv.Itoa(n), float64(res.PID),
			float64(res.PID)}, got[:4], "a process and a group of its own")
		require.Equal(t, []any{w.dir, strconv.Itoa(n)}, got[5:])
		parents = append(parents, got[4])
	}
	require.Equal(t, []any{parents[0], parents[0], parents[0]}, parents, "one interpreter has forked them all")
	require.NotEqual(t, float64(os.Getpid()), parents[0])
	require.Equal(t, "[false, false, false]", string(w.call("look", `{}`).Output))
}

// Python considers a file unchanged if its size and modification second are equal, so the sizes
// differ here.
func TestEditsOfATaskAreSeenByTheNextAttempt(t *testing.T) {
	w := warm(t)
	for n := range 3 {
		write(t, filepath.Join(w.dir, "w.py"),
			fmt.Sprintf("import beside\ndef main(): return [%d, beside.value]%s", n,
				strings.Repeat(" ", n)), 0o644)
		write(t, filepath.Join(w.dir, "beside.py"), fmt.Sprintf("value = %d%s", n, strings.Repeat(" ", n)), 0o644)
		require.Equal(t, fmt.Sprintf("[%d, %d]", n, n), string(w.call("", `{}`).Output))
	}
}

func TestWarmAndColdAttemptsEndAlike(t *testing.T) {
	for _, python := range interpreters() {
		t.Run(python, func(t *testing.T) { endsAsACold(t, python) })
	}
}

func endsAsACold(t *testing.T, python string) {
	w := warm(t)
	for _, function := range []string{"words", "leaves", "says", "boom", "why", "dies", "stops", "later", "none"} {
		var said [2][2]bytes.Buffer
		var results [2]program.Result
		for i := range results {
			job := w.job(function, `{"a":1}`)
			job.Program.Warm, job.Program.Python = i, python
			job.Stdout, job.Stderr = &said[i][0], &said[i][1]
			results[i] = w.runner.Run(t.Context(), job)
			require.NotZero(t, results[i].PID)
			results[i].PID = 0
		}
		require.Equal(t, results[0], results[1], function)
		require.Equal(t, said[0][0].String(), said[1][0].String(), function)
		require.Equal(t, lastLine(said[0][1].String()), lastLine(said[1][1].String()), function)
	}
	left, err := os.ReadFile(filepath.Join(w.dir, "left.txt"))
	require.NoError(t, err)
	require.Equal(t, "not closed", string(left))
}

func lastLine(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return all[len(all)-1]
}

// pids waits until an attempt is running, and returns the ids of the attempt, its interpreter and
// the program it has started.
func (w *warmed) pids() (pids []int) {
	for _, file := range []string{"pid", "away"} {
		require.Eventually(w, func() bool { _, err := os.Stat(filepath.Join(w.dir, file)); return err == nil }, patience, time.Millisecond)
		text, err := os.ReadFile(filepath.Join(w.dir, file))
		require.NoError(w, err)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			require.NoError(w, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

const patience = time.Minute

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestCanceledWarmAttemptEndsWithItsDescendants(t *testing.T) {
	for _, function := range []string{"sleeps", "stays"} {
		w := warm(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan program.Result, 1)
		go func() { ended <- w.runner.Run(ctx, w.job(function, `{}`)) }()
		pids := w.pids()
		cancel(errors.New("called off"))
		require.Equal(t, "called off", (<-ended).Error)
		require.Equal(t, []bool{false, true, false}, []bool{alive(pids[0]), alive(pids[1]), alive(pids[2])}, "the interpreter stays")
		require.Equal(t, "2", string(w.call("later", `{"a":1}`).Output))
	}
}

func TestAnInterpreterThatDiesIsReplacedAndItsAttemptFails(t *testing.T) {
	w := warm(t)
	ended := make(chan program.Result, 1)
	go func() { ended <- w.runner.Run(t.Context(), w.job("sleeps", `{}`)) }()
	pids := w.pids()
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	res := <-ended
	require.Equal(t, "the warm interpreter of this attempt is gone: signal: killed", res.Error)
	require.False(t, res.Fatal, "it may be tried again")
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, patience, time.Millisecond)
	}
	require.Contains(t, w.call("kills", `{}`).Error, "the warm interpreter of this attempt is gone")
	require.Equal(t, "2", string(w.call("later", `{"a":1}`).Output))
}

func TestWarmAttemptWithoutAnInterpreterFailsLikeACold(t *testing.T) {
	w := warm(t)
	job := w.job("later", `{"a":1}`)
	job.Program.Python = "./not-there"
	cold := job
	cold.Program = &flow.Program{File: "w.py", Function: "later", Python: "./not-there"}
	require.Equal(t, w.runner.Run(t.Context(), cold), w.runner.Run(t.Context(), job))
}

// warmParent makes this program run a warm attempt until it is killed.
const warmParent = "TEST_PROGRAM_WARM"

func TestNoWarmAttemptOutlivesItsMember(t *testing.T) {
	w := warm(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), warmParent+"="+w.dir)
	require.NoError(t, parent.Start())
	pids := w.pids()
	require.NoError(t, parent.Process.Kill())
	begun := time.Now()
	require.Error(t, parent.Wait())
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, patience, time.Millisecond)
	}
	require.Less(t, time.Since(begun), 5*time.Second, "%v", pids)
}

func init() { parents[warmParent] = runWarmParent }

func runWarmParent(dir string) {
	program.New(program.Options{Dir: dir}).Run(context.Background(), program.Job{Type: flow.ExecPython,
		Program: &flow.Program{File: "w.py", Function: "sleeps", Warm: 2}})
}
