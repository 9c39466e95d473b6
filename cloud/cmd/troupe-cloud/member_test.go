package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
	"github.com/troupe-engine/troupe/internal/testing/built"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// binary is the path of the release command, built once.
var binary string

// buckets are fake buckets of all clouds.
var buckets *fakes.Buckets

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	if code, is := tool(os.Args[1:]); is {
		return code
	}
	var err error
	if buckets, err = fakes.NewBuckets(); err != nil {
		panic(err)
	}
	defer buckets.Close()
	for name, value := range buckets.Env {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "troupe-cloud-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "troupe-cloud")
	if err := built.Program(binary, "."); err != nil {
		panic(err)
	}
	return pgtest.Main(m)
}

// patience is the time limit of all waits.
const patience = time.Minute

// member is a running troupe-cloud with fake clouds.
type member struct {
	*testing.T
	dir     string
	address string
	args    []string
	env     []string
	process *process.Process
}

type obj = map[string]any

// newMember starts a member. Its store survives restarts.
func newMember(t *testing.T, g *fakes.Google, args ...string) *member {
	t.Helper()
	address, err := ports.FreeAddress()
	require.NoError(t, err)
	m := &member{T: t, dir: t.TempDir(), address: address, env: environment()}
	m.args = append([]string{"serve", "--listen", address, "--store",
		"sqlite:" + filepath.Join(m.dir, "t.db"), "--cloud-project", "p", "--cloud-region", "r",
		"--log-level", "debug"}, args...)
	if g != nil {
		for _, api := range []string{"run", "bigquery", "dataproc", "secretmanager"} {
			m.args = append(m.args, "--cloud-endpoint", api+"="+g.URL)
		}
		m.env = append(m.env, "GOOGLE_APPLICATION_CREDENTIALS="+g.Credentials(t))
	}
	m.start()
	return m
}

// environment returns our environment without settings of the tester.
func environment() (env []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TROUPE_") && !strings.HasPrefix(entry, "GOOGLE_") &&
			!strings.HasPrefix(entry, "GCP_") && !strings.HasPrefix(entry, "KUBE") {
			env = append(env, entry)
		}
	}
	return env
}

func (m *member) start() {
	m.Helper()
	m.launch()
	m.ready()
}

// launch starts the member without waiting.
func (m *member) launch() {
	m.Helper()
	cmd := exec.Command(binary, m.args...)
	cmd.Env, cmd.Dir = m.env, m.dir
	p, err := process.Start(m.dir, "member", cmd)
	require.NoError(m, err)
	m.process = p
	m.Cleanup(func() {
		p.Kill()
		if m.Failed() {
			m.Log(p.Said())
		}
	})
}

func (m *member) ready() {
	m.Helper()
	p := m.process
	require.Eventually(m, func() bool {
		resp, err := http.Get("http://" + m.address + "/readyz")
		if err != nil {
			return p.Gone()
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, patience, 10*time.Millisecond)
	require.False(m, p.Gone(), "%s", p.Said())
}

// call sends a request to the member.
func (m *member) call(method, path string, body any) (status int, answer obj) {
	m.Helper()
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(m, err)
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, "http://"+m.address+path, sent)
	require.NoError(m, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(m, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(m, err)
	require.NoError(m, json.Unmarshal(text, &answer), "%s", text)
	return resp.StatusCode, answer
}

// register registers a workflow; each task is a line of YAML.
func (m *member) register(name string, tasks ...string) {
	m.Helper()
	status, answer := m.call("POST", "/api/workflows",
		obj{"yaml": "name: " + name + "\ntasks:\n  " + strings.Join(tasks, "\n  ") + "\n", "replace": true})
	require.Equal(m, 200, status, "%v", answer)
}

// run registers a workflow and starts it.
func (m *member) run(name string, input any, tasks ...string) *run {
	m.Helper()
	m.register(name, tasks...)
	status, answer := m.call("POST", "/api/workflows/"+name+"/runs", obj{"input": input})
	require.Equal(m, 201, status, "%v", answer)
	return &run{m, answer["run_id"].(string)}
}

type run struct {
	*member
	id string
}

func (r *run) read() obj {
	r.Helper()
	status, answer := r.call("GET", "/api/runs/"+r.id, nil)
	require.Equal(r, 200, status, "%v", answer)
	return answer
}

func (r *run) status() string { return r.read()["run"].(obj)["status"].(string) }

// task returns the task with a name.
func (r *run) task(name string) obj {
	r.Helper()
	for _, t := range r.read()["tasks"].([]any) {
		if t.(obj)["name"] == name {
			return t.(obj)
		}
	}
	require.FailNow(r, "there is no task "+name)
	return nil
}

// ends waits for the end and checks its status.
func (r *run) ends(status string) *run {
	r.Helper()
	assert.Eventually(r, func() bool {
		s := r.status()
		return s == "success" || s == "failed" ||
			s == "cancelled"
	}, patience, 20*time.Millisecond)
	require.Equal(r, status, r.status(), "%v", r.read())
	return r
}

// printed checks the lines of the log, each once. It waits, because the last lines may be stored
// late.
func (r *run) printed(want ...string) {
	r.Helper()
	var lines []string
	assert.Eventually(r, func() bool {
		lines = nil
		_, logs := r.call("GET", "/v1/tasks/"+r.id+"/logs", nil)
		for _, l := range logs["items"].([]any) {
			lines = append(lines, fmt.Sprint(l.(obj)["text"]))
		}
		return len(lines) >= len(want)
	}, patience, 20*time.Millisecond)
	require.Equal(r, want, lines)
}

// until waits for a task's status.
func (r *run) until(task, status string) {
	r.Helper()
	require.Eventually(r, func() bool { return r.task(task)["status"] == status }, patience,
		20*time.Millisecond, "%s is to be %s", task, status)
}
