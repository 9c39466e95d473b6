package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

// looks returns the requests that read a single execution.
func looks(g *fakes.Google) (all []fakes.Request) {
	for _, r := range g.Requests() {
		if r.Method == "GET" && strings.Contains(r.Path, "/executions/") {
			all = append(all, r)
		}
	}
	return all
}

func TestCloudRunJobIsTrackedUntilItEnds(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	begins := make(chan struct{})
	g.Run.Behave("load", fakes.Behavior{Looks: 3, Pends: 2, Work: func(map[string]string) { <-begins }})
	r := m.run("c1", obj{"day": "monday"}, `load: {executor: cloudrun, job: load, retries: 1, timeout: 600, env: {TABLE: "a \"b\"", N: 7}}`)
	r.until("load", "dispatched")
	close(begins)
	for i := range 2 {
		require.Eventually(t, func() bool { return len(looks(g)) > i }, patience, 10*time.Millisecond)
		if task := r.task("load"); len(looks(g)) <= 2 { // the third look finds it running
			require.Equal(t, []any{"dispatched", nil}, []any{task["status"], task["started_at"]}, "it is pending")
		}
	}
	r.until("load", "running")
	r.ends("success")
	require.NotNil(t, r.task("load")["started_at"])

	all := g.Run.Executions("load")
	require.Len(t, all, 1)
	e := all[0]
	require.Equal(t, "projects/p/locations/r/jobs/load/executions/load-00000", e.Name)
	require.Equal(t, e.Name, r.task("load")["execution_name"])
	require.Equal(t, 1, e.TaskCount)
	require.Equal(t, "600s", e.Timeout)
	for name, want := range map[string]string{
		"TABLE": `a "b"`, "N": "7", "ORK_INPUT_JSON": `{"day":"monday"}`, "ORK_ATTEMPT": "1",
		"ORK_TASK_NAME": "load", "ORK_WORKFLOW_NAME": "c1",
		"task_name": "load", "workflow_name": "c1", "task_index": "0", "max_retries": "1", "timeout_seconds": "600",
	} {
		require.Equal(t, want, e.Env[name], name)
	}
	require.Equal(t, e.Env["EXECUTION_ID"], e.Env["TROUPE_JOB"])
	require.NotContains(t, e.Env, "ORK_INPUT_FILE")
	require.NotContains(t, e.Env, "TASK_SPEC_PATH", "there is no object store")

	polls := looks(g)
	require.Len(t, polls, 4)
	for i := range polls[1:] {
		pause := polls[i+1].At.Sub(polls[i].At)
		require.Greater(t, pause, 1700*time.Millisecond)
		require.Less(t, pause, 5*time.Second, "which is how long it is for older ones")
	}
	for _, request := range g.Requests() {
		require.Regexp(t, `^Bearer token-1$`, request.Authorization)
	}
}

func TestExecutionThatSucceedsBetweenLooksCountsAsStarted(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("load", fakes.Behavior{Looks: 2, Pends: 2})
	r := m.run("o40", nil, `load: {executor: cloudrun, job: load}`)
	require.Eventually(t, func() bool { return len(looks(g)) >= 2 }, patience, 10*time.Millisecond)
	if status := r.task("load")["status"]; len(looks(g)) == 2 { // the third look finds that it has ended
		require.Equal(t, "dispatched", status)
	}
	r.ends("success")
	require.NotNil(t, r.task("load")["started_at"])
	require.Len(t, looks(g), 3)
}

func TestFailedExecutionFailsItsAttempt(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("fails", fakes.Behavior{Fails: "Task 0 exited with 3"})
	g.Run.Behave("mute", fakes.Behavior{Mute: true})
	g.Run.Behave("gone", fakes.Behavior{Gone: true})
	g.Run.Behave("endless", fakes.Behavior{Looks: 1_000_000})
	r := m.run("c2", nil, `fails: {executor: cloudrun, job: fails, retries: 1}`, `mute: {executor: cloudrun, job: mute}`,
		`gone: {executor: cloud_run, job: gone}`, `canceled: {executor: cloudrun, job: endless}`)
	r.until("canceled", "running")
	g.Run.Cancel("endless")
	r.ends("failed")
	require.Equal(t, "Cloud Run execution failed: Task 0 exited with 3", r.task("fails")["error"])
	require.Equal(t, "Cloud Run execution failed: Execution failed", r.task("mute")["error"])
	require.Equal(t, "the execution is gone", r.task("gone")["error"])
	require.Equal(t, "Cloud Run execution failed: The execution was cancelled.", r.task("canceled")["error"])
	all := g.Run.Executions("fails")
	require.Len(t, all, 2, "a retry is another execution")
	require.NotEqual(t, all[0].Env["TROUPE_JOB"], all[1].Env["TROUPE_JOB"])
	require.NotEmpty(t, all[0].Env["TROUPE_KEY"])
	require.Equal(t, all[0].Env["TROUPE_KEY"], all[1].Env["TROUPE_KEY"], "of the same unit")
}

func TestTransientErrorsAreRetriedAndOthersAreReported(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	quota := fakes.Refusal{Match: "/busy:run", Status: 429, Text: "quota"}
	g.Refuse(quota, quota, fakes.Refusal{Match: "/busy:run", Status: 503, Text: "later", After: "1"},
		fakes.Refusal{Match: "/denied:run", Status: 403, Text: "Permission 'run.jobs.run' denied"},
		fakes.Refusal{Match: "/silent:run", Done: true}, // the answer is lost
		fakes.Refusal{Match: "/silent:run", Done: true, Status: 502, Text: "bad gateway"})
	r := m.run("c3", nil, `busy: {executor: cloudrun, job: busy}`,
		`denied: {executor: cloudrun, job: denied}`, `silent: {executor: cloudrun, job: silent}`)
	r.ends("failed")
	require.Len(t, g.Run.Executions("busy"), 1)
	require.Equal(t, "success", r.task("busy")["status"])
	require.Equal(t, "Cloud Run job execution failed with status 403: Permission 'run.jobs.run' denied", r.task("denied")["error"])
	require.Equal(t, "success", r.task("silent")["status"])
	require.Len(t, g.Run.Executions("silent"), 1, "whoever has not heard the answer looks first")
}

func TestMissingCredentialsAffectOnlyCloudRun(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, nil, "--cloud-endpoint", "run="+g.URL, "--allow-scripts")
	m.process.Kill()
	m.env = append(m.env, "GOOGLE_APPLICATION_CREDENTIALS="+m.dir+"/none.json")
	m.start()
	r := m.run("c3b", nil, `cloud: {executor: cloudrun, job: j}`, `here: {executor: process, command: "echo ok"}`)
	r.ends("failed")
	require.Equal(t, "success", r.task("here")["status"])
	require.Contains(t, r.task("cloud")["error"], "no credentials for Google Cloud: ")
	require.Empty(t, g.Requests())
}

func TestMemberKilledBeforeTheAnswerTakesOverItsExecution(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("load", fakes.Behavior{Looks: 1})
	g.Refuse(fakes.Refusal{Match: "/load:run", Done: true, Then: func() { m.process.Kill() }})
	r := m.run("c4", nil, `load: {executor: cloudrun, job: load}`)
	<-m.process.Done()
	m.start()
	r.ends("success")
	require.Len(t, g.Run.Executions("load"), 1)
	require.EqualValues(t, 1, r.task("load")["attempt"])
	require.Equal(t, g.Run.Executions("load")[0].Name, r.task("load")["execution_name"])
}

func TestCanceledExecutionIsNotAwaited(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("endless", fakes.Behavior{Looks: 1_000_000})
	g.Run.Behave("late", fakes.Behavior{Looks: 1_000_000})
	r := m.run("c5", nil, `endless: {executor: cloudrun, job: endless}`)
	r.until("endless", "running")
	status, _ := m.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(t, 200, status)
	r.ends("cancelled")
	late := m.run("c5b", nil, `late: {executor: cloudrun, job: late, timeout: 2}`)
	late.ends("failed")
	require.Equal(t, "execution timeout", late.task("late")["error"])
	for _, job := range []string{"endless", "late"} {
		require.Eventually(t, func() bool { return g.Run.Executions(job)[0].Cancels > 0 }, patience,
			20*time.Millisecond, "%s: %v", job, g.Requests())
		require.Equal(t, 1, g.Run.Executions(job)[0].Cancels)
	}
}

// The attempt has ended when Cloud Run answers, so no task knows the execution.
func TestExecutionStartedDuringCancelIsCanceled(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g)
	g.Run.Behave("endless", fakes.Behavior{Looks: 1_000_000})
	asked, canceled := make(chan struct{}), make(chan struct{})
	g.Refuse(fakes.Refusal{Match: "/endless:run", Done: true, Then: func() { close(asked); <-canceled }})
	r := m.run("c5c", nil, `endless: {executor: cloudrun, job: endless}`)
	<-asked
	require.Equal(t, "dispatched", r.task("endless")["status"])
	status, _ := m.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(t, 200, status)
	r.ends("cancelled")
	close(canceled)
	require.Eventually(t, func() bool { return g.Run.Executions("endless")[0].Cancels == 1 }, patience, 20*time.Millisecond)
}
