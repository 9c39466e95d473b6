//go:build live

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// needs returns a variable that has to be set for these tests.
func needs(t *testing.T, name string) string {
	value := os.Getenv(name)
	require.NotEmpty(t, value, "say %s", name)
	return value
}

// live returns a member that uses real clouds with the credentials of the tester.
func live(t *testing.T, args ...string) *member {
	m := newMember(t, nil, args...)
	m.process.Kill()
	m.env = os.Environ() // with the credentials
	m.start()
	return m
}

// TestLiveCloudRun runs a job of a real project. It has to end well within a minute, such as
// Google's example us-docker.pkg.dev/cloudrun/container/job.
func TestLiveCloudRun(t *testing.T) {
	m := live(t, "--cloud-project", needs(t, "PROJECT"), "--cloud-region", needs(t, "REGION"))
	line := `a: {executor: cloudrun, job: ` + needs(t, "JOB") + `, timeout: 600}`
	r := m.run("live", obj{"n": 1}, line)
	r.ends("success")
	t.Log(r.task("a")["execution_name"])
	r = m.run("live", nil, line)
	r.until("a", "running")
	status, answer := m.call("POST", "/api/runs/"+r.id+"/cancel", obj{"force": true})
	require.Equal(t, 200, status, "%v", answer)
	r.ends("cancelled")
}

// TestLiveKubernetes runs a pod of a real cluster.
func TestLiveKubernetes(t *testing.T) {
	m := live(t, "--kubernetes-namespace", needs(t, "NAMESPACE"))
	r := m.run("live", obj{"n": 1}, `a: {executor: kubernetes, image: busybox, command: "echo `+
		`begun; sleep 2; echo ORK_OUTPUT:$ORK_INPUT_JSON", timeout: 600}`)
	r.ends("success")
	require.Equal(t, obj{"n": 1.0}, r.task("a")["output"])
}
