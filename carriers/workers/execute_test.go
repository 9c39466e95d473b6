package workers_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/carriers/workers"
	"github.com/troupe-engine/troupe/flow"
)

// executes runs a program on an Ork worker, which the handler implements.
func executes(t *testing.T, ctx context.Context, h http.HandlerFunc, change ...func(*flow.Job)) flow.Report {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	j := flow.Job{Task: "t1", Address: flow.Address{Node: "count", Visit: 1, Attempt: 2},
		Input: json.RawMessage(`{"n":12345678901234567890}`), TimeoutMS: 1500,
		Plan: &flow.Plan{FlowSlug: "report"}, Exec: &flow.Exec{Type: flow.ExecWorker,
			Program: &flow.Program{URL: s.URL + "/", Executor: "process", Command: "wc -l",
				Env: map[string]string{"A": "1"}}}}
	for _, c := range change {
		c(&j)
	}
	return open(t, newStore(t), workers.Options{MaxAnswer: 1 << 10}).Executor().Carry(ctx, j)
}

func TestAnOrkWorkerIsAskedToRunAProgram(t *testing.T) {
	var path, body string
	rep := executes(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		path, body = r.Method+" "+r.URL.Path, string(text)
		_, _ = io.WriteString(w, `{"status":"success","output":{"lines":12345678901234567890}}`)
	})
	require.Empty(t, rep.Error)
	require.Equal(t, `{"lines":12345678901234567890}`, string(rep.Output))
	require.Equal(t, "POST /execute", path)
	require.JSONEq(t, `{"task_id":"`+(&flow.Job{Task: "t1", Address: flow.Address{Node: "count",
		Visit: 1, Attempt: 2}}).ID()+`","task_name":"count","executor_type":"process",
		"params":{"task_input":{"n":12345678901234567890},"command":"wc -l","env":{"A":"1"},"attempt":2,"run_id":"t1","task_name":"count","task_index":0,"key":"t1.1.0.CmNvdW50","timeout_seconds":1.5,"workflow_name":"report"}}`, body)
	require.Contains(t, body, "12345678901234567890")
}

func TestAPythonTaskIsNamedByItsFileModuleAndFunction(t *testing.T) {
	var params map[string]any
	executes(t, t.Context(), func(_ http.ResponseWriter, r *http.Request) {
		var got struct{ Params map[string]any }
		_ = json.NewDecoder(r.Body).Decode(&got)
		params = got.Params
	}, func(j *flow.Job) {
		j.Exec.Program = &flow.Program{URL: j.Exec.Program.URL, Executor: "python", File: "t.py",
			Module: "m", Function: "f", Python: "python3"}
	})
	for name, want := range map[string]string{"task_file": "t.py", "task_module": "m", "task_function": "f", "python_path": "python3"} {
		require.Equal(t, want, params[name])
	}
}

func TestOrkWorkerAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status       int
		body         string
		output, fail string
	}{
		"no output":        {200, `{"status":"success"}`, "null", ""},
		"a failure":        {200, `{"status":"failed","error":"no such file"}`, "", "no such file"},
		"a silent one":     {200, `{"status":"failed"}`, "", "the worker says that it failed, and not why"},
		"a failure of 500": {500, `{"status":"failed","error":"no such file"}`, "", "no such file"},
		"a text":           {400, "Missing task_id\n", "", "the worker answered 400 Bad Request: Missing task_id"},
		"a status alone":   {503, "", "", "the worker answered 503 Service Unavailable"},
		"no JSON":          {200, "<html>", "", "the worker answered without a JSON object: <html>"},
		"another word":     {200, `{"status":"ok"}`, "", `the worker answered with the status "ok", which is neither success nor failed`},
		"deferred work": {200,
			`{"status":"success","deferred":[{"service_type":"x","job_id":"1"}]}`,
			`{"deferred":[{"service_type":"x","job_id":"1"}]}`, ""},
		"a redirect": {302, "", "", "the worker answered 302 Found"},
		"too much": {200, `{"status":"success","output":"` + strings.Repeat("x", 2000) + `"}`, "",
			"it is larger than 1024 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			rep := executes(t, t.Context(), says(tt.status, tt.body))
			require.Equal(t, tt.output, string(rep.Output))
			if tt.fail == "" {
				require.Empty(t, rep.Error)
			}
			require.Contains(t, rep.Error, tt.fail)
		})
	}
}

func TestAnOrkWorkerGetsTheTimeoutOfItsJob(t *testing.T) {
	rep := executes(t, t.Context(), func(_ http.ResponseWriter, r *http.Request) {
		// otherwise the server does not notice that its client has gone
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(j *flow.Job) { j.TimeoutMS = 30 })
	require.True(t, rep.TimedOut)
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	go func() { // ends with the test's server
		<-began
		cancel()
	}()
	rep = executes(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(began)
		<-r.Context().Done()
	}, func(j *flow.Job) { j.TimeoutMS = time.Hour.Milliseconds() })
	require.NotEmpty(t, rep.Error)
	require.False(t, rep.TimedOut)
}

func TestAnOrkWorkerIsCalledInAllowedNetworksOnly(t *testing.T) {
	for url, want := range map[string]string{"http://192.0.2.1:8081": "workers are not allowed there",
		"http://127.0.0.1:1": "connection refused"} {
		j := flow.Job{Task: "t1", Address: flow.Address{Node: "n", Visit: 1, Attempt: 1},
			Exec: &flow.Exec{Type: flow.ExecWorker, Program: &flow.Program{URL: url, Command: "x"}}}
		rep := open(t, newStore(t), workers.Options{Allow: []netip.Prefix{netip.MustParsePrefix(
			"10.0.0.0/8")}}).Executor().Carry(t.Context(), j)
		require.Contains(t, rep.Error, want)
		require.False(t, rep.Fatal)
	}
}
