package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

func TestAMemberThatCannotServeReportsTheReason(t *testing.T) {
	store := filepath.Join(t.TempDir(), "t.db")
	line, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+store, "--log-level", "error")
	taken := strings.TrimPrefix(urlIn(t, line), "http://")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"taken address": {[]string{"--listen", taken, "--store", "sqlite:" + store + "2"},
			"set another one with --listen"},
		"taken store": {[]string{"--listen", "127.0.0.1:0", "--store", "sqlite:" + store},
			"another member is using this store\nhint: stop the other member"},
		"open address": {[]string{"--listen", "0.0.0.0:0"},
			"can be reached from other hosts: configure tokens (--token-file)"},
		"unknown store": {[]string{"--listen", "127.0.0.1:0", "--store", "mysql://x"},
			"neither sqlite:PATH nor a postgres:// URL"},
		"empty tokens": {[]string{"--listen", "127.0.0.1:0", "--token-file",
			write(t, "tokens", "\n")}, "tokens is empty"},
		"no such folder": {[]string{"--listen", "127.0.0.1:0", "--store",
			"sqlite:/nowhere/at/all/t.db"}, "there is no folder /nowhere/at/all: create it"},
		"no file": {[]string{"--listen", "127.0.0.1:0", "--store", "sqlite:"},
			`store "sqlite:" names no file: write sqlite:PATH`},
		"script folder": {[]string{"--listen", "127.0.0.1:0", "--store", "sqlite:" + store + "3",
			"--allow-scripts", "--script-dir", "/nowhere"},
			"the folder for scripts cannot be used: stat /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, append([]string{"serve"}, tt.args...)...)
			require.Equal(t, 1, got.code)
			require.Contains(t, got.stderr, tt.want)
			require.Empty(t, got.stdout)
		})
	}
}

func TestNegativeNumbersAreRefused(t *testing.T) {
	for _, flag := range []string{"--max-depth=-1", "--max-shared=-1", "--job-lease=-1s",
		"--worker-save-interval=-1ms", "--max-calls=-5", "--resume-grace=-1s"} {
		got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "t.db"), flag)
		require.Equal(t, 2, got.code, flag)
		name, _, _ := strings.Cut(flag, "=")
		require.Contains(t, got.stderr, name+" is negative")
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	require.Equal(t, "postgres://me@db:5432/troupe", troupe.StoreName("postgres://me:secret@db/troupe?password=secret"))
	require.Equal(t, "sqlite:t@=?.db", troupe.StoreName("sqlite:t@=?.db"))
	for _, store := range []string{"postgres://me:secret/x@127.0.0.1:1/troupe",
		"postgres://me:x@secret@127.0.0.1:1/troupe", "postgres://me@127.0.0.1:1/troupe?password=secret",
		"host=127.0.0.1 port=1 user=me password=secret", "mysql://me:secret@db/troupe", "postgres:me:secret@db"} {
		got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", store)
		require.Equal(t, 1, got.code)
		require.NotContains(t, got.stdout+got.stderr, "secret", store)
	}
}

func TestTheBinaryServesUntilASignalStopsIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Windows has no such signal
	}
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+filepath.Join(t.TempDir(), "t.db"))
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	answer, err := http.Get(urlIn(t, line) + "/readyz")
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

func TestTheDemoEndsAsItShould(t *testing.T) {
	cmd := exec.Command(binary, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "tasks ended as expected, ")
	left, err := os.ReadDir(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="))
	require.NoError(t, err)
	require.Empty(t, left, "the demo takes its folder away")
}

func TestADemoThatStaysServesUntilASignalStopsIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Windows has no such signal
	}
	dir := t.TempDir()
	cmd := exec.Command(binary, "demo", "--stay")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	out.waitFor(t, " with its store in ")
	url := strings.TrimSuffix(urlIn(t, out.String()), ",")
	out.waitFor(t, "The member runs until Ctrl-C; pages: "+url)
	require.Contains(t, out.String(), "export TROUPE_SERVER="+url)
	for _, address := range []string{url + "/", url + "/v1/docs"} {
		answer, err := http.Get(address)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode, address)
	}
	require.Contains(t, call(t, "task", "list", "--server", url).stdout, "01-two-steps")
	require.Equal(t, exitOK, call(t, "flow", "show", "01-two-steps", "--server", url).code)
	got := call(t, "task", "start", "01-two-steps", "-p", "quantity=3", "--wait", "--server", url)
	require.Equal(t, exitOK, got.code, got.stdout+got.stderr)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), out.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the demo takes its folder away")
}

func TestDevPublishesAFolderAndItsChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("flows", 0o700))
	require.NoError(t, os.WriteFile("flows/Double It.yaml", []byte(double), 0o600))
	line, out := background(t, "dev", "--listen", "127.0.0.1:0", "--log-level", "error")
	url := urlIn(t, line)
	out.waitFor(t, "double-it version 1 published")
	require.FileExists(t, ".troupe/dev.db")

	require.NoError(t, os.WriteFile("flows/other.json", []byte(`{"start":"x","nodes":{}}`), 0o600))
	out.waitFor(t, "other.json:1:")
	require.NoError(t, os.WriteFile("flows/Double It.yaml", []byte(strings.ReplaceAll(double, "mul: 2", "mul: 20")), 0o600))
	out.waitFor(t, "double-it version 2 published")
	got := call(t, "task", "start", "double-it", "-p", "n=21", "--wait", "--server", url)
	require.Regexp(t, `Result: +420\n`, got.stdout)
}

func TestAWorkerOfTheUsersReplacesTheDemoServiceOfItsName(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the commands below need sh
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("flows", 0o700))
	require.NoError(t, os.WriteFile("flows/shop.yaml",
		[]byte("nodes: {pay: {service: pay}, refund: {service: refund}, assess: {service: "+
			"assess, route: queue}}\n"), 0o600))
	line, out := background(t, "dev", "--listen", "127.0.0.1:0", "--log-level", "error")
	url := urlIn(t, line)
	out.waitFor(t, "demo services: transform, ")
	out.waitFor(t, "shop version 1 published")
	awaitWorker(t, url, "pay")
	awaitWorker(t, url, "assess")
	for service, mode := range map[string]string{"pay": "push", "assess": "pull", "refund": "attach"} {
		own := service + "-of-mine"
		_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--id", own,
			"--mode", mode, "--url", "http://127.0.0.1:0", "--exec", service+`=echo '"own `+service+`"'`)
		c, err := client.New(url, client.Options{})
		require.NoError(t, err)
		require.Eventually(t, func() bool { _, err := c.Worker(t.Context(), own); return err == nil }, time.Minute, 10*time.Millisecond)
		c.Close()
	}
	got := call(t, "task", "start", "shop", "--wait", "--server", url, "--output", "json")
	require.JSONEq(t, `{"pay": "own pay", "assess": "own assess", "refund": "own refund"}`, string(parse[wire.Task](t, got.stdout).Result))
	out.waitFor(t, "worker pay-of-mine replaces the demo services pay")
	out.waitFor(t, "worker refund-of-mine replaces the demo services refund")
}

func TestDevGoesWithoutDemoServices(t *testing.T) {
	t.Chdir(t.TempDir())
	line, out := background(t, "dev", "--listen", "127.0.0.1:0", "--log-level", "error", "--no-demo")
	url := urlIn(t, line)
	require.Equal(t, 0, call(t, "flow", "apply", write(t, "x.yaml", "nodes: {pay: {service: pay}}\n"), "--server", url).code)
	got := call(t, "task", "start", "x", "--wait", "--server", url)
	require.Regexp(t, `Error: .*no worker for service pay`, got.stdout)
	require.NotContains(t, out.String(), "demo services")
}

func TestTheWorkersOfDevEndBeforeTheirMember(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout, stderr output
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"dev", "--listen", "127.0.0.1:0"}, strings.NewReader(""), &stdout, &stderr)
	}()
	stderr.waitFor(t, "worker=demo-push")
	stderr.waitFor(t, "worker=demo-pull")
	stop()
	require.Equal(t, exitOK, <-code)
	require.NotContains(t, stderr.String(), "level=WARN")
}

func TestACommandCarriesOutJobs(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the command below needs sh
	}
	url := startServe(t)
	path := write(t, "shell.yaml", `
name: shell
start: run
result: out
on_error: fail
nodes:
  run: {exec_type: queue, service: shell, params: {fixed: 1}, prep: {input_key: $params.in}, post: {output_key: out}}
`)
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error",
		"--exec", `shell=read line; case "$line" in *fail*) echo first >&2; echo "no luck" >&2; exit 3;; *) echo "{\"got\": $line}";; esac`)
	got := call(t, "task", "start", "shell", "-p", "in=[1,2]", "--wait", "--server", url)
	require.Regexp(t, `Result: +\{"got":\s*\{"input":\[1,2\],"params":\{.*"fixed":1.*\},"key":"task-[^"]+"\}\}`, got.stdout)
	got = call(t, "task", "start", "shell", "-p", "in=fail", "--wait", "--server", url)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `Error: .*no luck`, got.stdout)
}

func TestACommandKnowsItsJob(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the command below needs sh
	}
	url := startServe(t)
	for mode, route := range map[string]string{"pull": "queue", "push": "push", "attach": "push"} {
		path := write(t, mode+".yaml", `
nodes:
  x: {service: `+mode+`, route: `+route+`, each: {count: 2}}
`)
		require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
		_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--mode", mode, "--url", "http://127.0.0.1:0",
			"--exec", mode+`=echo "\"$TROUPE_FLOW $TROUPE_NODE $TROUPE_UNIT/$TROUPE_UNITS $TROUPE_ATTEMPT ${TROUPE_TASK%%-*}\""`)
		awaitWorker(t, url, mode)
		got := call(t, "task", "start", mode, "--wait", "--server", url, "--output", "json")
		require.Equal(t, 0, got.code, got.stdout)
		require.JSONEq(t, fmt.Sprintf(`{"x": ["%[1]s x 0/2 1 task", "%[1]s x 1/2 1 task"]}`, mode),
			string(parse[wire.Task](t, got.stdout).Result))
	}
}

// awaitWorker waits until a worker that offers a service is registered.
func awaitWorker(t *testing.T, url, service string) {
	t.Helper()
	c, err := client.New(url, client.Options{})
	require.NoError(t, err)
	defer c.Close()
	require.Eventually(t, func() bool {
		known, err := c.Workers(t.Context())
		return err == nil && slices.ContainsFunc(known, func(w wire.Worker) bool { return slices.Contains(w.Services, service) })
	}, time.Minute, 10*time.Millisecond)
}

func TestAWorkerHasTheLabelsOfItsFlags(t *testing.T) {
	url := startServe(t)
	path := write(t, "picky.yaml", `
start: run
result: out
nodes:
  run: {exec_type: queue, service: async-transform, labels: [gpu, "in eu"], params: {text: x}, post: {output_key: out}}
`)
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	_, _ = background(t, "worker", "--server", url, "--log-level", "error", "--label", "gpu", "--label", "in eu")
	got := call(t, "task", "start", "picky", "--wait", "--server", url)
	require.Equal(t, 0, got.code, got.stdout)
}

func TestTheHelpOfWorkerNamesExec(t *testing.T) {
	require.Contains(t, call(t, "worker", "--help").stdout, "troupe worker --exec 'resize=./resize.sh'")
}

func TestWorkersOfTheDemoAreCommandsToo(t *testing.T) {
	url := startServe(t)
	for mode, says := range map[string]string{"--mode=push": "A push", "--mode=pull": "A pull",
		"--mode=attach": "An attached", "--attach": "An attached"} {
		line, _ := background(t, "worker", "--server", url, mode, "--url", "http://127.0.0.1:0", "--log-level", "error")
		require.Contains(t, line, says+" worker offers")
	}
}

// With --log-format json, every line on both outputs of a member is JSON, including those of
// libraries and the final error.
func TestEverythingAMemberPrintsIsJSONWhenAsked(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	args := []string{"serve", "--listen", "127.0.0.1:0", "--store", store, "--log-format", "json", "--log-level", "debug"}
	ctx, stop := context.WithCancel(t.Context())
	var stderr output
	from, to := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, strings.NewReader(""), to, &stderr)
		to.Close()
	}()
	said := bufio.NewScanner(from)
	require.True(t, said.Scan())
	url := parse[map[string]string](t, said.Text())["url"]
	path := write(t, "broken.yaml", strings.ReplaceAll(double, "func: mul", "func: nobody_knows"))
	require.Equal(t, 0, call(t, "flow", "apply", path, "--server", url).code)
	require.Equal(t, 1, call(t, "task", "start", "broken", "-p", "n=1", "--wait", "--server", url).code)

	second := call(t, append(args, "--name", "second")...)
	require.Equal(t, 1, second.code)
	stop()
	require.False(t, said.Scan())
	require.Zero(t, <-code)
	messages := map[string]map[string]any{}
	for _, text := range []string{stderr.String(), second.stderr} {
		for line := range strings.Lines(text) {
			told := parse[map[string]any](t, line)
			messages[told["msg"].(string)] = told
			if took, ok := told["took"]; ok {
				require.IsType(t, "", took, "durations are for people: %s", line)
			}
		}
	}
	begun := messages["member started"]
	require.Equal(t, store, begun["store"])
	require.NotEmpty(t, begun["version"])
	require.Contains(t, url, messages["API listening"]["address"])
	failed := messages["task failed"]
	require.Equal(t, []any{"broken", "double"}, []any{failed["flow"], failed["node"]})
	require.NotEmpty(t, failed["task"])
	for _, line := range []string{"request",
		"member stopping: it accepts no new work and hands over its tasks to other members", "member stopped"} {
		require.Contains(t, messages, line)
	}
	refused := slices.ContainsFunc(slices.Collect(maps.Keys(messages)),
		func(m string) bool { return strings.Contains(m, "another member is using this store") })
	require.True(t, refused, "%v", messages)
}

func TestWorkersThatComeAndGoAreLogged(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	ctx, stop := context.WithCancel(t.Context())
	var stderr output
	from, to := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--store", store,
			"--worker-ttl", "1s", "--worker-save-interval", "100ms"}, strings.NewReader(""), to, &stderr)
		to.Close()
	}()
	said := bufio.NewReader(from)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	url := urlIn(t, line)
	register := func(body string) int {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", url+"/v1/workers/w1", strings.NewReader(body))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for range 3 {
		require.Equal(t, 400, register(`{"services": ["paint"], "url": "http://192.0.2.1:1"}`))
	}
	require.Equal(t, 200, register(`{"services": ["paint"], "labels": ["gpu"]}`))
	stderr.waitFor(t, `msg="worker registered" worker=w1 services=[paint] labels=[gpu]`)
	stderr.waitFor(t, `msg="worker is offline" worker=w1`)
	require.Equal(t, 1, strings.Count(stderr.String(), "worker registration rejected"), "once: %s", stderr.String())
	stop()
	_, err = said.ReadString('\n')
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, <-code, stderr.String())
}

func TestDevRejectsWarningsIfItIsStrict(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("flows", 0o700))
	require.NoError(t, os.WriteFile("flows/lonely.yaml",
		[]byte("start: a\nnodes: {a: {service: s}, never: {service: s}}\n"), 0o600))
	require.NoError(t, os.WriteFile("flows/told.yaml", []byte(orkWithWarning), 0o600))
	line, out := background(t, "dev", "--strict", "--no-demo", "--listen", "127.0.0.1:0", "--log-level", "error")
	out.waitFor(t, "lonely.yaml:2:26: error: nodes.never: ")
	out.waitFor(t, "error: tasks.a.env.GONE: is null")
	require.NoError(t, os.WriteFile("flows/fine.yaml", []byte("nodes: {a: {service: s}}\n"), 0o600))
	out.waitFor(t, "fine version 1 published")
	require.NotContains(t, out.String(), "warning")
	got := call(t, "flow", "list", "--server", urlIn(t, line), "--output", "json")
	require.NotContains(t, got.stdout, "lonely")
	require.NotContains(t, got.stdout, "told")
}

// orkWithWarning is a workflow of Ork whose translation has a warning.
const orkWithWarning = `name: told
tasks:
  a:
    executor: process
    command: ls
    env: {GONE: null}
`

func TestStrictCommandsRejectWarningsOfAWorkflowOfOrk(t *testing.T) {
	url := startServe(t)
	file := write(t, "told.yaml", orkWithWarning)
	for _, args := range [][]string{
		{"flow", "validate", file},
		{"flow", "validate", file, "--server", url},
		{"flow", "apply", file, "--server", url},
		{"flow", "run", file, "--server", url},
		{"flow", "try", file, "--server", url},
	} {
		got := call(t, append(args, "--strict")...)
		require.Equal(t, 1, got.code, "%v: %s%s", args, got.stdout, got.stderr)
		require.Contains(t, got.stdout+got.stderr, "error: tasks.a.env.GONE: is null", "%v", args)
		require.NotContains(t, got.stdout+got.stderr, "published", "%v", args)
	}
	require.Equal(t, 0, call(t, "flow", "apply", file, "--server", url).code)
}
