package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// orkCall calls a worker and returns the status and the text of its answer.
func orkCall(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func TestAWorkerSpeaksOrksProtocol(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the programs below need a Unix shell
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workflow.yaml"),
		[]byte("name: w\ntasks:\n  a: {executor: process, command: echo a}\n  b: {executor: "+
			"process, command: echo b, depends_on: [a]}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.py"), []byte("def double(n): return 2 * n\n"), 0o600))
	first, _ := background(t, "worker", "--ork-listen", "127.0.0.1:0", "--working-dir", dir)
	url := strings.TrimSpace(first[strings.Index(first, "http://"):])
	for name, tt := range map[string]struct{ path, body, want string }{
		"health": {"/health", ``, `{"status":"healthy","service":"ork-worker"}`},
		"compile": {"/compile", ``,
			`{"workflow":"w","tasks":[{"name":"a","executor":"process","depends_on":[]},{"name":"b","executor":"process","depends_on":["a"]}]}`},
		"a line": {"/execute",
			`{"task_id":"i","task_name":"n","executor_type":"process","params":{"task_input":{"n":1},"command":"cat ` +
				`>&2; echo ORK_OUTPUT:$ORK_INPUT_JSON","env":{"A":2}}}`,
			`{"status":"success","output":{"n":1}}`},
		"a list": {"/execute", `{"executor_type":"process","params":{"command":["sh","-c","echo ` +
			`\"$A\""],"env":{"A":2}}}`, `{"status":"success","output":2}`},
		"no output": {"/execute", `{"executor_type":"process","params":{"command":"true "}}`,
			`{"status":"success","output":null}`},
		"a failure": {"/execute", `{"executor_type":"process","params":{"command":"echo no ` +
			`such file >&2; exit 3"}}`, `{"status":"failed","error":"exit status 3: no such file"}`},
		"a time": {"/execute", `{"executor_type":"process","params":{"command":"sleep 60; ` +
			`true","timeout_seconds":0.05}}`, `{"status":"failed","error":"execution timeout"}`},
		"cloudrun": {"/execute", `{"executor_type":"cloudrun","params":{}}`,
			`{"status":"failed","error":"CloudRun executor not supported in worker"}`},
		"a library": {"/execute",
			`{"executor_type":"library","params":{"library_path":"none.so"}}`,
			`{"status":"failed","error":"there is no file \"none.so\" in ` + dir + `"}`},
		"python": {"/execute",
			`{"executor_type":"python","params":{"task_file":"t.py","task_function":"double","task_input":{"n":2}}}`,
			`{"status":"success","output":4}`},
		"no library": {"/execute", `{"executor_type":"library","params":{}}`,
			`{"status":"failed","error":"Missing library_path in task parameters"}`},
		"another one": {"/execute", `{"executor_type":"magic","params":{}}`,
			`{"status":"failed","error":"Unsupported executor type: magic"}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := orkCall(t, url+tt.path, tt.body)
			require.Equal(t, 200, status, text)
			require.JSONEq(t, tt.want, text)
		})
	}
	for _, tt := range []struct {
		path, body string
		want       int
		headers    []string
	}{
		{"/compile", `{"workflow_path":"none.yaml"}`, 500, nil},
		{"/compile", `{"workflow_path":"../` + filepath.Base(dir) + `x/secret"}`, 500, nil},
		{"/execute", `no JSON`, 400, nil},
		{"/execute", `{}`, 403, []string{"Origin", "https://evil.example"}},
		{"/execute", `{}`, 415, []string{"Content-Type", "text/plain"}},
	} {
		status, text := orkCall(t, url+tt.path, tt.body, tt.headers...)
		require.Equal(t, tt.want, status, "%s %s: %s", tt.path, tt.body, text)
	}
	var problem any
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte("name: w\ntasks:\n  a: {executor: magic}\n"), 0o600))
	status, text := orkCall(t, url+"/compile", `{"workflow_path":"bad.yaml"}`)
	require.Equal(t, 400, status)
	require.Error(t, json.Unmarshal([]byte(text), &problem), "it is a text")
	require.Equal(t, 2, call(t, "worker", "--ork-listen", "0.0.0.0:0").code, "nobody else is let in")
}

func TestAWorkerOfOursCarriesOutTasksOfOrkForUs(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the programs below need a Unix shell
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "t.py"), []byte("def double(n): return 2 * n\n"), 0o600))
	first, _ := background(t, "worker", "--ork-listen", "127.0.0.1:0", "--working-dir", dir)
	worker := strings.TrimSpace(first[strings.Index(first, "http://"):])
	server := startServe(t)
	file := write(t, "far.yaml", "name: far\ntasks:\n"+
		"  a: {executor: worker, worker: \""+worker+"\", command: 'echo \"ORK_OUTPUT:3\"'}\n"+
		"  b: {executor: worker, worker: \""+worker+
		"\", file: t.py, function: double, depends_on: [a], inputs: {n: {ref: tasks.a.output}}}\n")
	got := call(t, "flow", "run", file, "--server", server)
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Contains(t, got.stdout, `{"b":6}`)
}
