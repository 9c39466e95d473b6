package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

const double = `
name: double
start: double
result: doubled
nodes:
  double:
    exec_type: local_func
    func: mul
    params: {mul: 2}
    prep: {input_key: $params.n}
    post: {output_key: doubled}
`

const approve = `
name: approve
start: ask
nodes:
  ask:
    kind: approval
    params: {approval_key: $shared.decision}
`

// server starts a member with the flows above.
func server(t *testing.T) []string {
	url := startServe(t)
	at := []string{"--server", url}
	got := call(t, append([]string{"flow", "apply", write(t, "double.yaml", double), write(t, "approve.yaml", approve)}, at...)...)
	require.Equal(t, result{0, "double version 1 published\napprove version 1 published\n", ""}, got)
	return at
}

func TestATaskIsStartedShownAndReadFromItsHistory(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }

	got := cmd("task", "start", "double", "-p", "n=21", "--label", "customer=7", "--wait")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?s)State: +completed.*Result: +42\n`, got.stdout)

	tasks := parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "--label", "customer=7", "--since", "1h", "-o", "json").stdout).Items
	require.Len(t, tasks, 1)
	id := tasks[0].ID
	require.Contains(t, cmd("task", "list", "--flow", "double", "--state", "completed").stdout, id)
	require.NotContains(t, cmd("task", "list", "--state", "failed").stdout, id)

	got = cmd("task", "show", id)
	require.Regexp(t, `(?s)Flow: +double, version 1\nState: +completed\nLabels: +customer=7 `+
		`triggered_by=cli\n.*Params: +\{"n":21\}`, got.stdout)
	got = cmd("task", "history", id)
	require.Regexp(t, `(?s)task_created.*step_entered +double#1.*attempt_ended.*task_ended +completed`, got.stdout)
	got = cmd("task", "history", id, "--runs")
	require.Regexp(t, `double#1 +0 +1 +ok`, got.stdout)

	got = cmd("task", "watch", id)
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?s)task started\n.*double: completed\n.*NODE +STATE.*double +completed `+
		`+1 +1 +0.*completed after 1 step in`, got.stdout)

	require.Contains(t, cmd("flow", "list").stdout, "double")
	require.Regexp(t, `(?s)Version: +1.*"func": "mul"`, cmd("flow", "show", "double").stdout)
}

func TestOutputOfAScriptIsShown(t *testing.T) {
	at := []string{"--server", startServe(t, "--allow-scripts")}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	talk := write(t, "talk.yaml", "start: talk\nnodes:\n  talk:\n    exec_type: local_script\n  "+
		"  script: {code: \"echo one; printf 'two\\\\033[2J'\"}\n")
	require.Equal(t, 0, cmd("flow", "apply", talk).code)
	id := parse[wire.Task](t, cmd("task", "start", "talk", "--wait", "-o", "json").stdout).ID
	logged(t, 1, "two", append([]string{id}, at...)...)
	require.Equal(t, result{0, "talk#1 unit 0 attempt 1:\n  one\n  two [2J\n", ""}, cmd("task", "history", id, "--logs"))
	type attemptLog struct {
		wire.Place
		Content string `json:"content"`
	}
	logs := parse[[]attemptLog](t, cmd("task", "history", id, "--logs", "-o", "json").stdout)
	require.Len(t, logs, 1)
	require.Equal(t, []any{"talk", "one\ntwo\x1b[2J"}, []any{logs[0].Node, logs[0].Content})
	require.Equal(t, 2, cmd("task", "history", id, "--logs", "--runs").code)

	require.Equal(t, result{0, "talk#1 unit 0 attempt 1 | one\ntalk#1 unit 0 attempt 1 | two [2J\n", ""}, cmd("task", "logs", id))
	require.Equal(t, cmd("task", "logs", id), cmd("task", "logs", id, "--follow", "--node", "talk",
		"--unit", "0", "--attempt", "1", "--stream", "stdout"))
	require.Empty(t, cmd("task", "logs", id, "--attempt", "2").stdout)
	require.Equal(t, "one", parse[wire.LogEntry](t, strings.SplitAfter(cmd("task", "logs", id, "-o", "json").stdout, "\n")[0]).Text)
	require.Equal(t, 1, cmd("task", "logs", "nope").code)
}

func TestValuesOfAStreamAreShown(t *testing.T) {
	member := startServe(t)
	cmd := func(args ...string) result { return call(t, append(args, "--server", member)...) }
	w := worker.New(worker.Config{Server: member, Pull: true})
	w.Handle("say", func(ctx context.Context, _ worker.Job) (any, error) {
		for _, v := range []any{"it is\x1b[2J", map[string]int{"row": 1}} {
			if err := worker.Stream(ctx, "answer").Write(v); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-over)
	})
	say := write(t, "say.yaml", "start: say\nnodes:\n  say: {exec_type: queue, service: say}\n")
	require.Equal(t, 0, cmd("flow", "apply", say).code)
	id := parse[wire.Task](t, cmd("task", "start", "say", "--wait", "-o", "json").stdout).ID
	require.Equal(t, result{0, "answer  2 values\n", ""}, cmd("task", "stream", id))
	require.Equal(t, result{0, "it is [2J\n{\"row\":1}\n", ""}, cmd("task", "stream", id, "answer"))
	require.Equal(t, result{0, "{\"row\":1}\n", ""}, cmd("task", "stream", id, "answer", "--follow", "--from", "1"))
	value := parse[wire.StreamValue](t, cmd("task", "stream", id, "answer", "--from", "1", "-o", "json").stdout)
	require.Equal(t, []any{int64(1), "say", 1}, []any{value.Offset, value.Step, value.Attempt})
	require.Equal(t, 1, cmd("task", "stream", "nope", "answer").code)
}

func TestTheSameKeyIsTheSameTask(t *testing.T) {
	at := server(t)
	start := append([]string{"task", "start", "double", "--params-file",
		write(t, "one.json", `{"n":1}`), "--key", "k", "-o", "json"}, at...)
	first, again := parse[wire.StartResult](t, call(t, start...).stdout), parse[wire.StartResult](t, call(t, start...).stdout)
	require.True(t, first.Created)
	require.False(t, again.Created)
	require.Equal(t, first.ID, again.ID)
}

func TestATaskThatDoesNotCompleteIsExitCodeOne(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	id := strings.TrimSpace(cmd("task", "start", "approve").stdout)
	require.Equal(t, id+"  canceled\n", cmd("task", "cancel", id).stdout)
	require.Equal(t, 1, cmd("task", "watch", id).code)

	path := write(t, "broken.yaml", strings.ReplaceAll(double, "func: mul", "func: nobody_knows"))
	require.Equal(t, 0, cmd("flow", "apply", path).code)
	got := cmd("task", "start", "broken", "-p", "n=1", "--wait")
	require.Equal(t, 1, got.code)
	require.Regexp(t, `State: +failed`, got.stdout)
}

func TestErrorsAfterWhichATaskWentOnAreShown(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	const sell = `
start: charge
on_error: follow
nodes:
  charge: {exec_type: local_func, func: none}
  ship: {kind: timer, params: {delay_ms: 0}}
edges: [{from: charge, action: default, to: ship}]
`
	got := cmd("flow", "run", write(t, "sell.yaml", sell))
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `charge: failed, ignored, next ship: .+`, got.stdout)
	require.Regexp(t, `completed after 2 steps in .*, 1 error handled\n`, got.stdout)

	id := parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "-o", "json").stdout).Items[0].ID
	require.Regexp(t, id+` +sell +completed, 1 error handled `, cmd("task", "list").stdout)
	got = cmd("task", "show", id)
	require.Regexp(t, `(?s)State: +completed, 1 error handled\n.*\nHANDLED FAILURE +COUNT +LAST +ERROR\ncharge +1 .+`, got.stdout)
	task := parse[wire.Task](t, cmd("task", "show", id, "-o", "json").stdout)
	require.Equal(t, 1, task.IgnoredErrors)
	require.Equal(t, "charge", task.IgnoredErrorDetails[0].Node)

	strict := write(t, "strict.yaml", strings.ReplaceAll(sell, "on_error: follow\n", ""))
	got = cmd("flow", "run", strict)
	require.Equal(t, 1, got.code, "nothing is followed unless the flow says so")
	require.NotContains(t, got.stdout, "ignored")
}

func TestATaskShowsThePositionOfItsJobInTheQueue(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	file := write(t, "w.yaml", "start: a\nnodes:\n  a: {exec_type: queue, service: rare}\n")
	require.Zero(t, cmd("flow", "apply", file).code)
	cmd("task", "start", "w")
	id := strings.TrimSpace(cmd("task", "start", "w").stdout)
	require.Contains(t, cmd("task", "show", id).stdout,
		"Waiting: a: a worker must poll for service rare, 1 job ahead, no worker can take it")
}

func TestATaskIsPausedResumedAndSignaled(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	id := strings.TrimSpace(cmd("task", "start", "approve").stdout)
	require.Equal(t, id+"  running (paused)\n", cmd("task", "pause", id).stdout)
	require.Contains(t, cmd("task", "show", id).stdout, "Waiting: the task is paused")
	require.Equal(t, id+"  running\n", cmd("task", "resume", id).stdout)
	require.Regexp(t, `Waiting: ask: a person must answer`, cmd("task", "show", id).stdout)

	_, watched := background(t, append([]string{"task", "watch", id}, at...)...)
	watched.waitFor(t, "waiting: ask: a person must answer")
	require.Equal(t, 0, cmd("task", "signal", id, "decision", "true").code)
	watched.waitFor(t, "completed after 1 step in")
	require.Contains(t, watched.String(), "ask: completed, action approved")
}

func TestEveryOutputIsJSONWhenAsked(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(append(args, at...), "-o", "json")...) }
	id := parse[wire.Task](t, cmd("task", "start", "double", "-p", "n=21", "--wait").stdout).ID
	open := parse[wire.StartResult](t, cmd("task", "start", "approve").stdout).ID
	for _, args := range [][]string{
		{"flow", "apply", write(t, "double.yaml", double)}, {"flow", "validate", write(t, "double.yaml", double)},
		{"flow", "list"}, {"flow", "show", "double"},
		{"task", "list"}, {"task", "show", id}, {"task", "show", open}, {"task", "history", id},
		{"task", "history", id, "--runs"}, {"task", "history", id, "--logs"},
		{"task", "pause", open}, {"task", "resume", open}, {"task", "signal", open, "decision", `"rejected"`}, {"task", "cancel", open},
	} {
		got := cmd(args...)
		require.Equal(t, 0, got.code, "%v: %s", args, got.stderr)
		require.True(t, json.Valid([]byte(got.stdout)), "%v: %s", args, got.stdout)
	}
	for line := range strings.Lines(cmd("task", "watch", id).stdout) {
		require.NotEmpty(t, parse[wire.Event](t, line).Type)
	}
}

func TestNumbersAndTheOrderOfKeysSurvive(t *testing.T) {
	at := server(t)
	const params = `{"z":12345678901234567890.10,"a":1,"n":2}`
	got := call(t, append([]string{"task", "start", "double", "--params-file",
		write(t, "params.json", params), "--wait", "-o", "json"}, at...)...)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, parse[wire.Task](t, got.stdout).Params))
	require.Equal(t, params, compact.String())
}

func TestProblemsOfADefinitionHaveAPlace(t *testing.T) {
	at := server(t)
	bad := write(t, "bad.yaml", "name: bad\nstart: a\nnodes:\n  b: {kind: exec}\n")
	got := call(t, append([]string{"flow", "validate", bad, write(t, "double.yaml", double)}, at...)...)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, bad+":2:8: error: start: ")
	require.Contains(t, got.stdout, bad+":4:13: error: nodes.b.kind: ")
	require.Contains(t, got.stdout, "double.yaml: valid")

	got = call(t, append([]string{"flow", "apply", bad}, at...)...)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, bad+":2:8: error: start: ")
	got = call(t, append([]string{"flow", "apply", bad, "-o", "json"}, at...)...)
	require.Equal(t, 1, got.code)
	require.NotEmpty(t, parse[wire.Validation](t, got.stdout).Problems)
}

func TestADefinitionWithoutTextIsAProblemOfItsFile(t *testing.T) {
	at := server(t)
	empty := write(t, "empty.yaml", "")
	got := call(t, append([]string{"flow", "validate", empty}, at...)...)
	require.Equal(t, result{1, empty + ":1:1: error: the text is empty\n", ""}, got)
	got = call(t, append([]string{"flow", "apply", empty}, at...)...)
	require.Equal(t, result{1, "", empty + ":1:1: error: the text is empty\n"}, got)
}

func TestADefinitionWithoutANameNeedsASlug(t *testing.T) {
	var stdout, stderr bytes.Buffer
	unnamed := "start: a\nnodes: {a: {kind: timer, params: {delay_ms: 0}}}\n"
	require.Equal(t, exitUsage, run(t.Context(), append([]string{"flow", "apply", "-"},
		server(t)...), strings.NewReader(unnamed), &stdout, &stderr))
	require.Contains(t, stderr.String(), "the flow has no slug: set --slug")
}

func TestAnInterruptedWaitPrintsHowToContinue(t *testing.T) {
	at := server(t)
	member, err := url.Parse(at[1])
	require.NoError(t, err)
	waits := make(chan struct{}, 1)
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(member)
		if r.In.Method == http.MethodGet { // the start was answered
			select {
			case waits <- struct{}{}:
			default:
			}
		}
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)})
	defer front.Close()
	for flag, again := range map[string]string{"--wait": "", "--wait-until=ask": " --wait-until 'ask'"} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var stdout, stderr bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"task", "start", "approve", flag, "--server", front.URL}, nil, &stdout, &stderr)
		}()
		<-waits
		stop()
		require.Equal(t, exitFailed, <-code)
		require.Regexp(t, `^troupe: interrupted; the task continues: troupe task watch task-\S+`+again+`\n$`, stderr.String())
	}
}

func TestErrorsContainAdvice(t *testing.T) {
	url := startServe(t, "--token", "secret")
	odd := write(t, "Ödd.yaml", double)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no server":       {[]string{"flow", "list", "--server", "http://127.0.0.1:1"}, "no server answers at http://127.0.0.1:1 "},
		"no server watch": {[]string{"task", "watch", "x", "--server", "http://127.0.0.1:1"}, "hint: start one with troupe serve"},
		"no token": {[]string{"flow", "list", "--server", url},
			"a bearer token is needed\nhint: set --token or TROUPE_TOKEN to a token of the server"},
		"a wrong token": {[]string{"flow", "list", "--server", url, "--token", "guessed"},
			"the bearer token is wrong: this server does not know it, or it has expired\nhint: set --token"},
		"no task": {[]string{"task", "show", "x", "--server", url, "--token", "secret"},
			"there is no task \"x\"\nhint: check the id"},
		"no flow": {[]string{"task", "start", "x", "--server", url, "--token", "secret"},
			"hint: publish it first"},
		"a folder": {[]string{"flow", "run", t.TempDir(), "--server", url, "--token", "secret"},
			"is a folder: give a file"},
		"an empty folder": {[]string{"flow", "apply", t.TempDir(), "--server", url, "--token",
			"secret"}, "has no definitions"},
		"not a slug": {[]string{"flow", "apply", odd, "--server", url, "--token", "secret"},
			odd + ": slug \"-dd\" is not one"},
		"no state": {[]string{"task", "list", "--state", "x", "--server", url, "--token",
			"secret"}, "hint: known are: pending, "},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, tt.args...)
			require.Equal(t, 1, got.code)
			require.Contains(t, got.stderr, tt.want)
			require.Empty(t, got.stdout)
		})
	}
}

func TestAWrongCommandLineIsExitCodeTwo(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown command":     {"nope"},
		"unknown flag":        {"task", "list", "--nope"},
		"missing argument":    {"task", "show"},
		"params that are not": {"task", "start", "x", "--params-file", write(t, "list.json", "[]")},
		"params that are cut": {"task", "start", "x", "--params-file", write(t, "cut.json", "{")},
		"pair that is not":    {"task", "start", "x", "-p", "n"},
		"time that is not":    {"task", "list", "--since", "yesterday"},
		"server that is not":  {"task", "list", "--server", "nonsense"},
		"one slug, two files": {"flow", "apply", "a", "b", "--slug", "x"},
		"handler without":     {"worker", "--exec", "resize"},
		"no such folder":      {"dev", "/nowhere/at/all"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, args...)
			require.Equal(t, 2, got.code)
			require.Contains(t, got.stderr, "--help")
		})
	}
}

func TestAWorkerThatIsDeniedSaysWhy(t *testing.T) {
	url := startServe(t, "--token", "secret")
	for want, args := range map[string][]string{
		"the token is wrong":                    {"--token", "guessed"},
		"it wants a token, and there is none":   {"--attach"},
		"the token is wrong\nhint: set --token": {"--mode", "push", "--url", "http://127.0.0.1:0", "--token", "guessed"},
	} {
		got := call(t, append([]string{"worker", "--server", url, "--log-level", "error"}, args...)...)
		require.Equal(t, 1, got.code)
		require.Contains(t, got.stderr, "the engine does not let this worker in: "+want)
		require.Contains(t, got.stderr, "--token or TROUPE_TOKEN")
	}
}
