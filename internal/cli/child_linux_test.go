package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start runs the binary and returns it with the first line it prints.
func start(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd, line
}

func startBinary(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	cmd, line := start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level", "error"}, args...)...)
	return cmd, urlIn(t, line)
}

// runaway returns a command that leaves its session and writes its process id to a file. Its parent
// keeps running.
func runaway(file string) string {
	return fmt.Sprintf("setsid sh -c 'echo $$ > %[1]s.new; mv %[1]s.new %[1]s; exec sleep 1000' & sleep 1000", file)
}

func awaitPid(t *testing.T, file string) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return pid
}

func requireEnds(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, 5*time.Millisecond)
}

func TestScriptsEndWithTheirMemberHoweverItEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, cmd *exec.Cmd, url string){
		"killed": func(t *testing.T, cmd *exec.Cmd, _ string) { require.NoError(t, cmd.Process.Kill()) },
		"interrupted twice": func(t *testing.T, cmd *exec.Cmd, url string) {
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			require.Eventually(t, func() bool { // it has received the first signal
				answer, err := http.Get(url + "/healthz")
				if err == nil {
					answer.Body.Close()
				}
				return err != nil
			}, time.Minute, 5*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, url := startBinary(t, "--allow-scripts")
			file := filepath.Join(t.TempDir(), "pid")
			path := write(t, "run.yaml", "start: run\nnodes:\n  run: {exec_type: local_script, "+
				"script: {timeout_ms: 1000000, code: \""+runaway(file)+"\"}}\n")
			require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
			require.Equal(t, 0, call(t, "task", "start", "run", "--server", url).code)
			pid := awaitPid(t, file)
			end(t, cmd, url)
			require.Error(t, cmd.Wait())
			requireEnds(t, pid)
		})
	}
}

func TestAProgramLostWithItsMemberIsAFailedAttempt(t *testing.T) {
	dir, store := t.TempDir(), "sqlite:"+filepath.Join(t.TempDir(), "t.db")
	serve := func() (*exec.Cmd, string) {
		cmd, line := start(t, "serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level",
			"error", "--allow-scripts", "--script-dir", dir)
		return cmd, urlIn(t, line)
	}
	cmd, url := serve()
	path := write(t, "lost.yaml", "nodes:\n  again: {exec: {type: process, command: \"test "+
		"$ORK_ATTEMPT = 2 || { "+runaway("pid")+"; }\"}, retry: {max_attempts: 2}}\n"+
		"  once: {exec: {type: process, command: \""+runaway("other")+"\"}}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	id := strings.TrimSpace(call(t, "task", "start", "lost", "--server", url).stdout)
	pids := []int{awaitPid(t, filepath.Join(dir, "pid")), awaitPid(t, filepath.Join(dir, "other"))}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for _, pid := range pids {
		requireEnds(t, pid)
	}
	_, url = serve()
	call(t, "task", "watch", id, "--server", url)
	runs := call(t, "task", "history", id, "--runs", "--server", url)
	require.Equal(t, 2, strings.Count(runs.stdout, "engine restarted"), runs.stdout)
	require.Regexp(t, `again#1 +0 +2 +ok`, runs.stdout)
}

func TestWarmInterpretersEndWithTheirMemberHoweverItEnds(t *testing.T) {
	for name, signal := range map[string]os.Signal{"killed": os.Kill, "asked to": os.Interrupt} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, url := startBinary(t, "--allow-scripts", "--script-dir", dir)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "f.py"),
				[]byte("import os\ndef main():\n    open('all', 'a').write('%d %d\\n' % "+
					"(os.getpid(), os.getppid()))\n"+
					"    os.system(\""+runaway("pid")+"\")\n"), 0o600))
			path := write(t, "warm.yaml", "nodes:\n  a: {exec: {type: python, file: f.py, warm: 2, grace: 100ms}}\n")
			require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
			require.Equal(t, 0, call(t, "task", "start", "warm", "--server", url).code)
			pids := []int{awaitPid(t, filepath.Join(dir, "pid"))}
			var own, parent int
			text, err := os.ReadFile(filepath.Join(dir, "all"))
			require.NoError(t, err)
			_, err = fmt.Sscan(string(text), &own, &parent)
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(signal))
			begun := time.Now()
			_ = cmd.Wait() // its exit status is tested elsewhere
			for _, pid := range append(pids, own, parent) {
				requireEnds(t, pid)
			}
			if signal == os.Kill {
				require.Less(t, time.Since(begun), 5*time.Second)
			}
		})
	}
}

func TestCommandsEndWithTheirWorkerHoweverItEnds(t *testing.T) {
	url := startServe(t)
	file := filepath.Join(t.TempDir(), "pid")
	path := write(t, "away.yaml", "start: run\nnodes:\n  run: {exec_type: queue, service: away}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	require.Equal(t, 0, call(t, "task", "start", "away", "--server", url).code)
	cmd, _ := start(t, "worker", "--server", url, "--log-level", "error", "--exec", "away="+runaway(file))
	pid := awaitPid(t, file)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireEnds(t, pid)
}

func TestACanceledCommandEndsWithAllItStarted(t *testing.T) {
	url := startServe(t)
	file := filepath.Join(t.TempDir(), "pid")
	path := write(t, "away.yaml", "start: run\nnodes:\n  run: {exec_type: queue, service: away}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	id := strings.TrimSpace(call(t, "task", "start", "away", "--server", url).stdout)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--exec", "away="+runaway(file))
	pid := awaitPid(t, file)
	require.Equal(t, 0, call(t, "task", "cancel", id, "--server", url).code)
	requireEnds(t, pid)
}

func TestAClosedTerminalStopsAMember(t *testing.T) {
	// a child of a program that ignores the signal, such as nohup, ignores it, too
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	cmd, _ := startBinary(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	require.NoError(t, cmd.Wait())
}

func TestCommandsSeeAStatedEnvironment(t *testing.T) {
	for _, name := range []string{"TROUPE_TOKEN", "PGPASSWORD", "LISTED"} {
		t.Setenv(name, "secret")
	}
	url := startServe(t, "--token", "secret", "--child-env", "LISTED")
	path := write(t, "env.yaml", "start: run\nresult: out\nnodes:\n  run: {exec_type: queue, service: env, post: {output_key: out}}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--child-env", "LISTED,OTHER",
		"--exec", `env=printf '"%s"' "$TROUPE_TOKEN-$PGPASSWORD-$LISTED-$TROUPE_SERVICE"`)
	got := call(t, "task", "start", "env", "--wait", "--server", url)
	require.Regexp(t, `Result: +"--secret-env"`, got.stdout)
}

func TestAMemberGetsByWithFewFileDescriptors(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	cmd := exec.Command("sh", "-c", `ulimit -n 64; exec "$@"`, "sh", binary, "serve", "--listen",
		"127.0.0.1:0", "--store", store, "--allow-scripts")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	url := urlIn(t, line)
	for range 100 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	path := write(t, "many.yaml", "nodes:\n  x: {each: {count: 100}, script: {code: 'sleep 0.05; echo $TROUPE_UNIT', output_mode: json}}\n")
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	got := call(t, "task", "start", "many", "--wait", "--server", url)
	require.Equal(t, 0, got.code, got.stdout)
}
