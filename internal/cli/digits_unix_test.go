//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/worker"
)

// exact is an input with numbers that no double can represent.
const exact = `{"int":9007199254740993,"long":10000000000000000001,"fraction":0.1000000000000000055511151231257827}`

// wrapInput wraps the input of a node, so that its output differs from the task's params.
func wrapInput(input json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"got":` + string(input) + `}`)
}

// runEchoWorker runs a Go worker that returns its input.
func (l *ledger) runEchoWorker(cfg worker.Config) {
	cfg.Server = l.url
	w := worker.New(cfg)
	worker.Handle(w, l.service, func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
		return wrapInput(input), nil
	})
	l.run(w.Run)
	awaitWorker(l.t, l.url, l.service)
}

// serveEcho runs a worker without an SDK, which returns the field of its request at path.
func (l *ledger) serveEcho(path ...string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		input, _ := io.ReadAll(r.Body)
		for _, field := range path {
			var body map[string]json.RawMessage
			if err := json.Unmarshal(input, &body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			input = body[field]
		}
		_, _ = fmt.Fprintf(w, `{"result":%[1]s,"output":%[1]s,"status":"success"}`, wrapInput(input))
	}))
	l.t.Cleanup(s.Close)
	return s.URL
}

// completePolled takes one job and completes it with its input.
func (l *ledger) completePolled() {
	body := l.fetchBody("POST", "/v1/workers/w/poll", fmt.Sprintf(`{"services":[%q],"wait_ms":60000,"max":1}`, l.service))
	var answer struct {
		Jobs []struct {
			ID, Token string
			Input     json.RawMessage
		}
	}
	require.NoError(l.t, json.Unmarshal(body, &answer), "%s", body)
	require.Len(l.t, answer.Jobs, 1)
	job := answer.Jobs[0]
	l.fetchBody("POST", "/v1/jobs/"+job.ID+"/complete", fmt.Sprintf(`{"token":%q,"output":%s}`, job.Token, wrapInput(job.Input)))
}

// fetchBody returns an answer as it was sent.
func (l *ledger) fetchBody(method, path, body string) []byte {
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	require.NoError(l.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(l.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.Less(l.t, resp.StatusCode, 300, "%s", raw)
	return raw
}

func TestNumbersKeepTheirDigitsOverEveryTransport(t *testing.T) {
	dir := t.TempDir()
	url := startServe(t, "--allow-scripts", "--script-dir", dir, "--object-store", "file://"+t.TempDir())
	const printed = `read -r x; echo "ORK_OUTPUT:{\"got\":$x}"`
	const command = `read -r x; echo "{\"got\":$x}"`
	service := func(l *ledger) string { return "service: " + l.service }
	queued := func(l *ledger) string { return "exec_type: queue, service: " + l.service }
	pushed := func(l *ledger) string { return "exec_type: push, service: " + l.service }
	for name, over := range map[string]transport{
		"a push worker in Go": {func(l *ledger) { l.runEchoWorker(worker.Config{Push: true, URL: "http://127.0.0.1:0"}) }, pushed, nil},
		"a pull worker in Go": {func(l *ledger) { l.runEchoWorker(worker.Config{Pull: true}) }, queued, nil},
		"an attached worker":  {func(l *ledger) { l.runEchoWorker(worker.Config{Attach: true}) }, service, nil},
		"a push":              {func(l *ledger) { l.register(l.serveEcho("input")) }, pushed, nil},
		"a poll":              {nil, queued, (*ledger).completePolled},
		"a worker at an address": {nil, func(l *ledger) string {
			return fmt.Sprintf("exec: {type: worker, url: %q, command: x}", l.serveEcho("params", "task_input"))
		}, nil},
		"a worker's command": {func(l *ledger) {
			_, _ = background(l.t, "worker", "--server", l.url, "--log-level", "error", "--mode", "attach", "--exec", l.service+"="+command)
			awaitWorker(l.t, l.url, l.service)
		}, service, nil},
		"a worker with a file of its job": {nil, func(*ledger) string {
			return "exec: {type: process, report: object_store, env: {TROUPE: " + binary +
				", ECHO: '" + command + `'}, command: '"$TROUPE" worker --spec ` +
				`"$TASK_SPEC_PATH" --exec "$ECHO"'}`
		}, nil},
		"a program": {nil, func(*ledger) string { return "exec: {type: process, command: '" + printed + "'}" }, nil},
		"a script": {nil, func(*ledger) string {
			return "exec_type: local_script, script: {cmd: sh, stdin_mode: json, output_mode: json, args: [-c, 'cat']}"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{t: t, url: url, service: strings.NewReplacer(" ", "-", "'", "").Replace("digits of " + strings.ToLower(name))}
			task := l.runNode(over, "echo", "prep: {input_key: $params.value}, post: {output_key: out}",
				"-p", "value:="+exact)
			var answer struct {
				Shared struct{ Out json.RawMessage }
			}
			require.NoError(t, json.Unmarshal(l.fetchBody("GET", "/v1/tasks/"+task, ""), &answer))
			require.Contains(t, string(answer.Shared.Out), exact)
		})
	}
}
