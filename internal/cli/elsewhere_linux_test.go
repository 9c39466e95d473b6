package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheBinaryNamesTheProgramForCloudJobs(t *testing.T) {
	_, url := startBinary(t)
	path := write(t, "far.yaml", "name: far\ntasks:\n  a: {executor: cloudrun, job: nightly, "+
		"retries: 3}\n  b: {executor: kubernetes, image: busybox}\n")
	got := call(t, "flow", "apply", path, "--server", url)
	require.Equal(t, 0, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stdout+got.stderr, "warning: tasks.a.executor: jobs of Cloud Run are started by troupe-cloud")
	require.Contains(t, got.stdout+got.stderr, "warning: tasks.b.executor: jobs of Kubernetes are started by troupe-cloud")
	got = call(t, "flow", "run", path, "--server", url)
	require.Equal(t, 1, got.code)
	for _, executor := range []string{"cloudrun", "kubernetes"} {
		require.Contains(t, got.stdout, "executor "+executor+" is not in this binary: use troupe-cloud")
	}
}
