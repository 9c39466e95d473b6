package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/cloud/internal/fakes"
)

// defers returns a task whose program starts external work.
func defers(name, more string) string {
	return fmt.Sprintf(`%s: {executor: process, command: 'echo ''ORK_OUTPUT:{"data": "done", `+
		`"deferred": [{"job_id": "%s", %s}]}'''}`, name, name, more)
}

func TestJobsStartedByTasksAreTracked(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g, "--allow-scripts")
	running := map[string]any{"state": "RUNNING"}
	g.Jobs.Put("query", running, running, map[string]any{"state": "DONE"})
	g.Jobs.Put("wrong", map[string]any{"state": "DONE", "errorResult": map[string]any{"reason": "invalid", "message": "no such table"}})
	g.Jobs.Put("shaky", map[string]any{"state": "DONE"})
	g.Jobs.Put("spark", map[string]any{"state": "PENDING"},
		map[string]any{"state": "ATTEMPT_FAILURE"}, map[string]any{"state": "DONE", "details": "no error"})
	g.Jobs.Put("spill", map[string]any{"state": "ERROR", "details": "out of memory"})
	g.Jobs.Put("ended", map[string]any{"state": "CANCELLED"})
	for range 3 {
		g.Refuse(fakes.Refusal{Match: "/jobs/shaky", Status: 500, Text: "oops"})
	}
	bigquery, dataproc := `"service_type": "bigquery", "project": "p", "location": "EU"`,
		`"service_type": "dataproc", "project": "p", "region": "r", "cluster_name": "c"`
	r := m.run("c16", nil, defers("query", bigquery), defers("wrong", bigquery),
		defers("shaky", bigquery), defers("gone", bigquery),
		defers("away", `"service_type": "bigquery", "project": "../x"`),
		defers("spark", dataproc), defers("spill", dataproc), defers("ended", dataproc))
	r.ends("failed")
	for name, want := range map[string]any{
		"query": nil, "shaky": nil, "spark": nil, "wrong": "BigQuery job failed: no such table",
		"spill": "Dataproc job error: out of memory", "ended": "Job was cancelled",
		"gone": "BigQuery answers 404: Not found: Job gone",
		"away": `the job "away" of BigQuery has no name, project, location or region that can be one`,
	} {
		require.Equal(t, want, r.task(name)["error"], name)
		if want == nil {
			require.Equal(t, []any{"success", "done"}, []any{r.task(name)["status"], r.task(name)["output"]}, name)
		}
	}
}

func TestExecutionStartedByATaskIsTrackedAndCanceled(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	m := newMember(t, g, "--allow-scripts")
	ends := make(chan struct{})
	g.Run.Behave("nightly", fakes.Behavior{Until: ends, Fails: "exit 1"})
	g.Jobs.Put("endless", map[string]any{"state": "RUNNING"})
	begun := m.run("begin", nil, `b: {executor: cloudrun, job: nightly}`)
	begun.until("b", "running")
	execution := `"service_type": "cloudrun", "project": "p", "region": "r", "job_name": "nightly", "execution_id": "nightly-00000"`
	r := m.run("deferred", nil, defers("x", execution))
	r.until("x", "running")
	close(ends)
	r.ends("failed")
	require.Equal(t, "Cloud Run execution failed: exit 1", r.task("x")["error"])

	r = m.run("canceled", nil, defers("endless", `"service_type": "dataproc", "project": "p", "region": "r"`))
	r.until("endless", "running")
	require.Eventually(t, func() bool {
		for _, request := range g.Requests() {
			if request.Path == "/v1/projects/p/regions/r/jobs/endless?alt=json&fields=status&prettyPrint=false" {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	status, _ := m.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(t, 200, status)
	r.ends("cancelled")
	require.Eventually(t, func() bool { return g.Jobs.Cancels("endless") == 1 }, patience, 10*time.Millisecond)
}

func TestSecretManagerSecretsReachProgramsAndAreHidden(t *testing.T) {
	t.Parallel()
	g := fakes.NewGoogle(t)
	g.Jobs.Keep("db-password", "hunter22-and-more")
	m := newMember(t, g, "--allow-scripts", "--cloud-secret", "db-login=db-password",
		"--cloud-secret", "none=projects/p/secrets/none/versions/3")
	r := m.run("secrets", nil, `tells: {executor: process, command: 'echo "is $PASSWORD"; test `+
		`"$PASSWORD" = hunter22-and-more', env: {PASSWORD: {secret: db-login}}}`,
		`none: {executor: process, command: "true", env: {PASSWORD: {secret: none}}}`)
	r.ends("failed")
	require.Equal(t, "success", r.task("tells")["status"])
	require.Contains(t, r.task("none")["error"], `the secret "none" cannot be read: its cloud answers: Secret [none] not found`)
	r.printed("is ***")
	status, answer := m.call("POST", "/api/workflows",
		obj{"yaml": "name: n\ntasks: {a: {executor: process, command: ls, env: {A: {secret: db-logn}}}}"})
	require.Equal(t, 400, status)
	require.Contains(t, fmt.Sprint(answer), "did you mean db-login?")
}
