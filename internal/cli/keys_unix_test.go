//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/worker"
)

// charge is one call of a service: its idempotency key, and the id of the attempt.
type charge struct{ key, id string }

// ledger records the charges of a service. Programs write theirs to the file.
type ledger struct {
	t       *testing.T
	url     string
	service string
	file    string

	mu  sync.Mutex
	all []charge
}

func (l *ledger) add(c charge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

// charges returns the recorded charges, in order.
func (l *ledger) charges() []charge {
	l.mu.Lock()
	defer l.mu.Unlock()
	written, _ := os.ReadFile(l.file)
	all := l.all
	for line := range strings.Lines(string(written)) {
		key, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, charge{key, id})
	}
	return all
}

// command returns a program that writes its key and the id of its attempt to the file, and fails.
func (l *ledger) command() string {
	return `echo "$TROUPE_KEY $TROUPE_JOB" >> ` + l.file + `; exit 1`
}

// runFailingWorker runs a Go worker that fails each attempt.
func (l *ledger) runFailingWorker(cfg worker.Config) {
	cfg.Server = l.url
	w := worker.New(cfg)
	w.Handle(l.service, func(_ context.Context, j worker.Job) (any, error) {
		l.add(charge{j.Key(), j.ID})
		return nil, errors.New("no")
	})
	l.run(w.Run)
	awaitWorker(l.t, l.url, l.service)
}

func (l *ledger) run(work func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	l.t.Cleanup(func() {
		stop()
		require.NoError(l.t, <-ended)
	})
}

// serveJobs runs a worker without an SDK. It reads the charge from each request, and fails the job.
func (l *ledger) serveJobs(read func(r *http.Request, body map[string]any) charge) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		l.add(read(r, body))
		_, _ = io.WriteString(w, `{"error":"no","status":"failed"}`)
	}))
	l.t.Cleanup(s.Close)
	return s.URL
}

// register registers a worker without an SDK.
func (l *ledger) register(url string) {
	l.post("PUT", "/v1/workers/plain-"+l.service, map[string]any{"url": url, "services": []string{l.service}})
}

func (l *ledger) post(method, path string, body any) (answer map[string]any) {
	text, err := json.Marshal(body)
	require.NoError(l.t, err)
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(string(text)))
	require.NoError(l.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(l.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(l.t, err)
	require.Less(l.t, resp.StatusCode, 300, string(raw))
	if len(raw) > 0 {
		require.NoError(l.t, json.Unmarshal(raw, &answer), string(raw))
	}
	return answer
}

// poll claims three jobs over a family of routes, one after the other, and fails each.
func (l *ledger) poll(path, list, prefix string, fail func(job map[string]any)) {
	for range 3 {
		ask := map[string]any{"services": []string{l.service}, "wait_ms": 60_000}
		if path == "/queue/poll" {
			ask["worker_id"] = "w"
		}
		if list != "" {
			ask["max"] = 1
		}
		answer := l.post("POST", path, ask)
		job := answer
		if list != "" {
			require.Len(l.t, answer[list], 1)
			job = answer[list].([]any)[0].(map[string]any)
		}
		l.add(charge{job["key"].(string), strings.TrimPrefix(job["id"].(string), prefix)})
		fail(job)
	}
}

func (l *ledger) failQueued(job map[string]any) {
	l.post("POST", "/queue/complete", map[string]any{"queue_id": job["id"], "token": job["token"], "error": "no"})
}

func (l *ledger) failClaimed(job map[string]any) {
	l.post("POST", "/v1/jobs/"+job["id"].(string)+"/fail", map[string]any{"token": job["token"], "error": "no"})
}

// transport is a way for jobs to reach what carries them out.
type transport struct {
	begin func(l *ledger)        // starts a worker; nil if there is none
	node  func(l *ledger) string // returns the fields of a node that make its jobs take this way
	after func(l *ledger)        // takes the jobs of the task; nil if a worker does
}

// runNode publishes a flow with one node, starts a task of it and waits for its end.
func (l *ledger) runNode(over transport, key, fields string, startFlags ...string) (task string) {
	if over.begin != nil {
		over.begin(l)
	}
	definition := fmt.Sprintf("start: %s\non_error: fail\nnodes:\n  %[1]s: {%s, %s}\n", key, over.node(l), fields)
	got := call(l.t, "flow", "apply", write(l.t, l.service+".yaml", definition), "--server", l.url)
	require.Zero(l.t, got.code, got.stderr)
	got = call(l.t, append([]string{"task", "start", l.service, "--server", l.url}, startFlags...)...)
	require.Zero(l.t, got.code, got.stderr)
	task = strings.TrimSpace(got.stdout)
	if over.after != nil {
		over.after(l)
	}
	call(l.t, "task", "watch", task, "--server", l.url)
	return task
}

func TestAJobHasTheLabelsThatItRequiresOverEveryTransport(t *testing.T) {
	url := startServe(t)
	for name, cfg := range map[string]worker.Config{
		"push": {Push: true, URL: "http://127.0.0.1:0"}, "pull": {Pull: true}, "attach": {Attach: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{t: t, url: url, service: name}
			labels := make(chan []string, 2)
			cfg.Server, cfg.Labels = url, []string{"eu", "gpu", "ssd"}
			w := worker.New(cfg)
			w.Handle(name, func(_ context.Context, j worker.Job) (any, error) {
				labels <- j.Labels
				return nil, nil
			})
			l.run(w.Run)
			awaitWorker(t, url, name)
			route := map[bool]string{true: "exec_type: queue, "}[cfg.Pull]
			l.runNode(transport{node: func(*ledger) string { return route + "service: " + name }}, "pay",
				"labels: [ssd, gpu]")
			require.ElementsMatch(t, []string{"gpu", "ssd"}, <-labels)
		})
	}
}

func TestThreeAttemptsHaveOneKeyAndThreeIDsOverEveryTransport(t *testing.T) {
	dir := t.TempDir()
	url := startServe(t, "--allow-scripts", "--script-dir", dir, "--object-store", "file://"+t.TempDir())
	service := func(l *ledger) string { return "exec_type: %s, service: " + l.service }
	pushed := func(l *ledger) string { return fmt.Sprintf(service(l), "push") }
	queued := func(l *ledger) string { return fmt.Sprintf(service(l), "queue") }
	attached := func(l *ledger) string { return "service: " + l.service }
	for name, over := range map[string]transport{
		"a push worker in Go": {func(l *ledger) {
			l.runFailingWorker(worker.Config{Push: true,
				URL: "http://127.0.0.1:0"})
		}, attached, nil},
		"a pull worker in Go": {func(l *ledger) { l.runFailingWorker(worker.Config{Pull: true}) }, queued, nil},
		"an attached worker":  {func(l *ledger) { l.runFailingWorker(worker.Config{Attach: true}) }, attached, nil},
		"the header of a push": {func(l *ledger) {
			l.register(l.serveJobs(func(r *http.Request, _ map[string]any) charge {
				return charge{r.Header.Get("Idempotency-Key"), r.Header.Get("Troupe-Job")}
			}))
		}, pushed, nil},
		"the body of a push": {func(l *ledger) {
			l.register(l.serveJobs(func(r *http.Request, body map[string]any) charge {
				return charge{body["key"].(string), r.Header.Get("Troupe-Job")}
			}))
		}, pushed, nil},
		"a worker at an address": {nil, func(l *ledger) string {
			address := l.serveJobs(func(_ *http.Request, body map[string]any) charge {
				return charge{body["params"].(map[string]any)["key"].(string), body["task_id"].(string)}
			})
			return fmt.Sprintf("exec: {type: worker, url: %q, command: x}", address)
		}, nil},
		"a worker as Ork calls them": {nil, func(l *ledger) string {
			first, _ := background(l.t, "worker", "--ork-listen", "127.0.0.1:0", "--working-dir", dir)
			text := strings.ReplaceAll(l.command(), "TROUPE_JOB", "EXECUTION_ID")
			return fmt.Sprintf("exec: {type: worker, url: %q, command: '%s'}", first[strings.Index(first, "http://"):], text)
		}, nil},
		"a worker with a file of its job": {nil, func(l *ledger) string {
			return "exec: {type: process, report: object_store, env: {TROUPE: " + binary +
				", PAY: '" + l.command() + `'}, command: '"$TROUPE" worker --spec ` +
				`"$TASK_SPEC_PATH" --exec "$PAY"'}`
		}, nil},
		"a poll of /v1":  {nil, queued, func(l *ledger) { l.poll("/v1/workers/w/poll", "jobs", "", l.failClaimed) }},
		"a single poll":  {nil, queued, func(l *ledger) { l.poll("/queue/poll", "", "q-", l.failQueued) }},
		"a poll of many": {nil, queued, func(l *ledger) { l.poll("/queue/poll", "tasks", "", l.failQueued) }},
		"a worker's command": {func(l *ledger) {
			_, _ = background(l.t, "worker", "--server", l.url, "--log-level", "error", "--mode",
				"attach", "--exec", l.service+"="+l.command())
			awaitWorker(l.t, l.url, l.service)
		}, attached, nil},
		"a worker's programs": {func(l *ledger) {
			_, _ = background(l.t, "worker", "--server", l.url, "--log-level", "error", "--mode",
				"attach", "--services", l.service, "--process")
			awaitWorker(l.t, l.url, l.service)
		}, func(l *ledger) string {
			return "exec: {type: process, service: " + l.service + ", command: '" + l.command() + "'}"
		}, nil},
		"a program": {nil, func(l *ledger) string { return "exec: {type: process, command: '" + l.command() + "'}" }, nil},
		"a script": {nil, func(l *ledger) string {
			return "exec_type: local_script, script: {cmd: sh, args: [-c, '" + l.command() + "']}"
		}, nil},
		"what a script reads": {nil, func(l *ledger) string {
			text := `read -r x; x=${x#*\"key\":\"}; echo "${x%%\"*} $TROUPE_JOB" >> ` + l.file + `; exit 1`
			return "exec_type: local_script, script: {cmd: sh, stdin_mode: json, args: [-c, '" + text + "']}"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{t: t, url: url, service: strings.ReplaceAll(name, " ", "-"), file: filepath.Join(t.TempDir(), "charges")}
			l.service = strings.NewReplacer("/", "", "'", "").Replace(strings.ToLower(l.service))
			task := l.runNode(over, "pay", "timeout_ms: 60000, retry: {max_attempts: 3}")
			want := []charge{}
			for attempt := range 3 {
				a := flow.Address{Node: "pay", Visit: 1, Attempt: attempt + 1}
				want = append(want, charge{flow.UnitKey(task, a), flow.JobID(task, a)})
			}
			require.Equal(t, want, l.charges())
		})
	}
}
