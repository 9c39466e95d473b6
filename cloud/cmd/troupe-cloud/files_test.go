package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// kinds are the kinds of buckets in which workers can report.
var kinds = []string{"file", "gs", "s3", "azblob"}

// withFiles returns the flags of a member with an object store of a kind that starts programs which
// can use it.
func withFiles(t *testing.T, kind string) []string {
	t.Helper()
	at := "file://" + t.TempDir()
	if kind != "file" {
		var err error
		at, err = buckets.Make(kind)
		require.NoError(t, err)
	}
	args := []string{"--allow-scripts", "--object-store", at}
	for name := range buckets.Env {
		args = append(args, "--child-env", name)
	}
	return args
}

// filing returns a program that reports by files: a script with the commands of tool, where say
// writes a status.
func filing(t *testing.T, name, script, more string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	lines := fmt.Sprintf(`put() { '%s' put "$@"; }; get() { '%[1]s' get "$@"; }; work() { `+
		`'%[1]s' work "$@"; }; say() { put status.json "$1"; }; %s`, self,
		strings.ReplaceAll(script, "\n", "; "))
	command, err := json.Marshal(lines)
	require.NoError(t, err)
	return fmt.Sprintf("%s: {executor: process, command: %s, exec: {report: object_store}, %s}", name, command, more)
}

// reports are workers with their status files and expected results.
var reports = []struct {
	name, script, more string
	output, failure    any
	attempt            float64
}{
	{"O15", `say '{"status": "running", "heartbeat": "x"}'; sleep 60`, "heartbeat_timeout: 2", nil, "heartbeat timeout", 1},
	{"O16", `sleep 60`, "start_timeout: 2", nil, "job never started", 1},
	{"O17", `work 8 '{"n": 8}'`, "heartbeat_timeout: 6", obj{"n": 8.0}, nil, 1},
	{"O18", `test $ORK_ATTEMPT = 1 && { say '{"status": "failed", "error": "first"}'; exit; }
get ../1/status.json | grep -q first || exit
put ../1/status.json '{"status": "success", "attempt": 1}'; say '{"status": "failed", "attempt": 1, "error": "late"}'; sleep 3
put output.json 2; say '{"status": "success", "attempt": 2}'`, "retries: 1", 2.0, nil, 2},
	{"C9", `put status.json '{"status": "fail'; sleep 2.2; say '{"status": "failed", "attempt": 7}'; sleep 2.2
say '{"status": "running", "heartbeat": "1999-01-01T00:00:00Z", "attempt": 1}'; sleep 2.2; say '{"status": "running", "heartbeat": "2999-01-01T00:00:00Z"}'; sleep 2.2
put output.json '"ok"'; say '{"status": "success", "attempt": 1}'`, "heartbeat_timeout: 30", "ok", nil, 1},
	{"fails", `say '{"status": "failed", "error": "no such customer"}'`, "timeout: 60", nil, "no such customer", 1},
	{"wordless", `say '{"status": "running"}'`, "timeout: 60", nil, "exited without a status", 1},
}

func TestWorkersReportByFilesInBucketsOfAllClouds(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newMember(t, nil, withFiles(t, kind)...)
			var lines []string
			for _, w := range reports {
				lines = append(lines, filing(t, w.name, w.script, w.more))
			}
			programs := m.run("reports", nil, lines...)
			killed, many, canceled := m.waiting("killed",
				obj{"heartbeat_timeout": 5, "retry": obj{"max_attempts": 2}}),
				m.waiting("many", obj{"each": obj{"count": 60}}), m.waiting("canceled", nil)
			absent := m.waiting("absent", obj{"start_timeout": "8s"})
			absent.specs(1, 1)
			require.Equal(t, []any{"dispatched", nil}, []any{absent.task("a")["status"], absent.task("a")["started_at"]})
			calledOff(canceled)
			absent.ends("failed")
			require.Equal(t, []any{"failed", "job never started", nil},
				[]any{absent.task("a")["status"], absent.task("a")["error"], absent.task("a")["started_at"]})
			manyWorkers(many)
			killedWorker(killed)
			programs.ends("failed")
			for _, w := range reports {
				one := programs.task(w.name)
				require.Equal(t, []any{w.output, w.failure, w.attempt}, []any{one["output"], one["error"], one["attempt"]}, w.name)
				require.Equal(t, w.failure == "job never started", one["started_at"] == nil, "%s: it runs from its first word on", w.name)
			}
		})
	}
}

// waiting starts a task that waits for workers started elsewhere.
func (m *member) waiting(name string, more obj) *run {
	m.Helper()
	node := obj{"exec_type": "external", "service": "object_store"}
	for key, value := range more {
		node[key] = value
	}
	status, answer := m.call("PUT", "/v1/flows/"+name, obj{"profile": "ork", "nodes": obj{"a": node}})
	require.Equal(m, 201, status, "%v", answer)
	status, answer = m.call("POST", "/v1/tasks", obj{"flow": name, "input": obj{"n": 20}})
	require.Equal(m, 201, status, "%v", answer)
	return &run{m, answer["id"].(string)}
}

// specs waits until count workers can begin with an attempt, and returns the paths of their specs.
func (r *run) specs(attempt float64, count int) (all []string) {
	r.Helper()
	require.Eventually(r, func() bool {
		all = nil
		_, answer := r.call("GET", "/v1/tasks/"+r.id+"/runs?limit=100", nil)
		for _, one := range answer["items"].([]any) {
			if at, ok := one.(obj)["url"].(string); ok && one.(obj)["attempt"] == attempt {
				all = append(all, at)
			}
		}
		return len(all) == count
	}, patience, 20*time.Millisecond)
	return all
}

// file waits until a file exists.
func (r *run) file(spec, name string) (text string) {
	r.Helper()
	require.Eventually(r, func() bool {
		var err error
		text, err = gets(r.Context(), spec, name)
		return err == nil
	}, patience, 20*time.Millisecond, "%s beside %s", name, spec)
	return text
}

// works starts a worker of this binary that carries out the work of a spec.
func (r *run) works(spec, command string) *process.Process {
	r.Helper()
	cmd := exec.Command(binary, "worker", "--spec", spec, "--heartbeat", "500ms", "--exec", command)
	cmd.Env = r.env
	p, err := process.Start(r.TempDir(), "worker", cmd)
	require.NoError(r, err)
	r.Cleanup(p.Kill)
	return p
}

// C10: the worker falls silent, and the next one has files of its own.
func killedWorker(r *run) {
	first := r.specs(1, 1)[0]
	worker := r.works(first, "sleep 20")
	r.file(first, "status.json")
	worker.Kill()
	gone := time.Now()
	second := r.specs(2, 1)[0]
	_, err := gets(r.Context(), second, "status.json")
	require.Error(r, err, "it has yet to begin")
	require.NoError(r, r.works(second, "cat").Wait(patience))
	r.ends("success")
	require.Equal(r, []any{obj{"n": 20.0}, 2.0}, []any{r.task("a")["output"], r.task("a")["attempt"]})
	_, runs := r.call("GET", "/v1/tasks/"+r.id+"/runs", nil)
	silent := runs["items"].([]any)[0].(obj)
	require.Equal(r, "heartbeat timeout", silent["error"])
	ended, err := time.Parse(time.RFC3339, silent["ended_at"].(string))
	require.NoError(r, err)
	require.Less(r, ended.Sub(gone), 12*time.Second, "the limit and one look are 7 s, and some looks are 10 s after the one before")
}

// With more than fifty instances of a task, the bucket is listed.
func manyWorkers(r *run) {
	var want, got []any
	for i, spec := range r.specs(1, 60) {
		want = append(want, float64(i))
		require.NoError(r, puts(r.Context(), spec, "output.json", fmt.Sprint(i)))
		require.NoError(r, puts(r.Context(), spec, "status.json", `{"status": "success"}`))
	}
	r.ends("success")
	for _, one := range r.read()["tasks"].([]any) {
		got = append(got, one.(obj)["output"])
	}
	require.ElementsMatch(r, want, got)
}

func calledOff(r *run) {
	spec := r.specs(1, 1)[0]
	worker := r.works(spec, "sleep 20")
	r.file(spec, "status.json")
	r.until("a", "running")
	status, _ := r.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(r, 200, status)
	r.ends("cancelled")
	require.Error(r, worker.Wait(patience), "it is told by a file that nobody waits for it any longer")
	require.Contains(r, r.file(spec, "status.json"), "nobody waits for it any longer")
}
