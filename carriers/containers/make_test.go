package containers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

// jobOf returns a job with a container.
func jobOf(p flow.Program, c flow.Container) *flow.Job {
	p.Container = &c
	return &flow.Job{Task: "t", Address: flow.Address{Node: "a", Visit: 1, Attempt: 1},
		Exec: &flow.Exec{Type: flow.ExecContainer, Program: &p}, Input: []byte(`{"x": 1}`)}
}

func TestAContainerIsNamedAfterItsAttemptAndItsStore(t *testing.T) {
	one, other := &Service{opts: Options{Store: "one"}}, &Service{opts: Options{Store: "other"}}
	first := jobOf(flow.Program{}, flow.Container{})
	second := *first
	second.Attempt = 2
	require.Equal(t, one.containerName(first.ID()), one.containerName(first.ID()))
	require.NotEqual(t, one.containerName(first.ID()), one.containerName(second.ID()))
	require.NotEqual(t, one.containerName(first.ID()), other.containerName(first.ID()))
}

func TestAContainerIsConfiguredByItsNode(t *testing.T) {
	s := &Service{opts: Options{Store: "s", Member: "m"}}
	p, err := s.planContainer(t.Context(), jobOf(flow.Program{Args: []string{"ls", "-l"}, Env: map[string]string{"A": "1"}},
		flow.Container{Image: "x", User: "7", Network: "none", CPUs: 500, Memory: 1 << 20, ToFile: "/in"}))
	require.NoError(t, err)
	require.Equal(t, []string{"ls", "-l"}, p.Config.Cmd)
	require.Empty(t, p.Config.Entrypoint, "a list goes to what the image starts")
	require.Equal(t, "7", p.Config.User)
	require.Contains(t, p.Config.Env, "A=1")
	require.Contains(t, p.Config.Env, `ORK_INPUT_JSON={"x":1}`)
	require.Equal(t, []containerFile{{"/in", []byte(`{"x":1}`)}}, p.files)
	require.EqualValues(t, "none", p.HostConfig.NetworkMode)
	require.EqualValues(t, 500_000_000, p.HostConfig.NanoCPUs)
	require.EqualValues(t, 1<<20, p.HostConfig.Memory)
	require.False(t, p.HostConfig.Privileged)
	require.Equal(t, map[string]string{"troupe.job": "t.1.0.1.CmE", "troupe.store": "s", "troupe.member": "m"}, p.Config.Labels)
	require.Equal(t, "SIGTERM", p.Config.StopSignal)
	require.Equal(t, 10, *p.Config.StopTimeout)

	large := jobOf(flow.Program{Command: "ls -l | wc"}, flow.Container{Image: "x"})
	large.Input = []byte(`"` + strings.Repeat("x", 200_000) + `"`)
	p, err = s.planContainer(t.Context(), large)
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/sh", "-c"}, p.Config.Entrypoint)
	require.Equal(t, []string{"ls -l | wc"}, p.Config.Cmd)
	require.Contains(t, p.Config.Env, "ORK_INPUT_FILE=/ork/input.json")
	require.Equal(t, []containerFile{{"/ork/input.json", large.Input}}, p.files)
}

func TestContainersOfAUnitShareAKeyAndHaveAnIDPerAttempt(t *testing.T) {
	s := &Service{}
	var keys, ids []string
	for attempt := range 3 {
		job := jobOf(flow.Program{Command: "pay"}, flow.Container{Image: "x"})
		job.Attempt = attempt + 1
		p, err := s.planContainer(t.Context(), job)
		require.NoError(t, err)
		for _, variable := range p.Config.Env {
			if key, ok := strings.CutPrefix(variable, "TROUPE_KEY="); ok {
				keys = append(keys, key)
			}
			if id, ok := strings.CutPrefix(variable, "TROUPE_JOB="); ok {
				ids = append(ids, id)
			}
		}
		require.Equal(t, job.Key(), keys[attempt])
		require.Equal(t, job.ID(), ids[attempt])
	}
	require.Len(t, slices.Compact(keys), 1)
	require.Len(t, slices.Compact(ids), 3)
}

func TestAContainersStdinIsRedirectedByAShell(t *testing.T) {
	s := &Service{}
	p, err := s.planContainer(t.Context(),
		jobOf(flow.Program{Args: []string{"wc", "-c"}, StdinMode: flow.StdinJSON},
			flow.Container{Image: "x", GPUs: flow.AllGPUs}))
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/sh", "-c", `exec "$@" < /ork/input.json`, "sh"}, p.Config.Entrypoint)
	require.Equal(t, []string{"wc", "-c"}, p.Config.Cmd)
	require.Equal(t, []containerFile{{"/ork/input.json", []byte(`{"x":1}`)}}, p.files)
	require.Contains(t, p.Config.Env, `ORK_INPUT_JSON={"x":1}`)
	require.Equal(t, []container.DeviceRequest{{Count: -1, Capabilities: [][]string{{"gpu"}}}}, p.HostConfig.DeviceRequests)

	p, err = s.planContainer(t.Context(), jobOf(flow.Program{Command: "wc -c", StdinMode: flow.StdinJSON}, flow.Container{Image: "x"}))
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/sh", "-c"}, p.Config.Entrypoint)
	require.Equal(t, []string{"exec < /ork/input.json\nwc -c"}, p.Config.Cmd)
	require.Empty(t, p.HostConfig.DeviceRequests)
}

func TestMountsAreConfinedToTheProgramFolder(t *testing.T) {
	dir := t.TempDir()
	allowed := filepath.Join(dir, "allowed")
	require.NoError(t, os.MkdirAll(filepath.Join(allowed, "root", "data"), 0o755))
	require.NoError(t, os.Symlink(dir, filepath.Join(allowed, "root", "out")))
	allowed, err := filepath.EvalSymlinks(allowed)
	require.NoError(t, err)
	s := &Service{opts: Options{Dir: allowed}}
	for from, want := range map[string]string{
		"data":                                 "",
		filepath.Join(allowed, "root", "data"): "",
		"../root/data":                         "",
		"..":                                   "",
		"../..":                                "outside of the folder that programs may run in (--script-dir)",
		"out":                                  "outside of the folder that programs may run in (--script-dir)",
		"/etc":                                 "outside of the folder that programs may run in (--script-dir)",
		"none":                                 "no such file or directory",
	} {
		p, err := s.planContainer(t.Context(), jobOf(flow.Program{Root: "root"},
			flow.Container{Image: "x", Mounts: []flow.Mount{{From: from, To: "/x", ReadOnly: true}}}))
		if want != "" {
			require.ErrorContains(t, err, want, from)
			continue
		}
		require.NoError(t, err, from)
		require.True(t, strings.HasPrefix(p.HostConfig.Mounts[0].Source, allowed), from)
		require.True(t, p.HostConfig.Mounts[0].ReadOnly)
	}
	_, err = (&Service{}).planContainer(t.Context(),
		jobOf(flow.Program{}, flow.Container{Image: "x", Mounts: []flow.Mount{{From: "/etc", To: "/x"}}}))
	require.ErrorContains(t, err, "needs a folder that it is in")
	require.Equal(t, flow.Denied, flow.ErrorKindOf(err))
}

func TestTheExitReasonOfAContainerIsReported(t *testing.T) {
	for _, tt := range []struct {
		state container.State
		limit int64
		how   string
		sure  bool
	}{
		{container.State{}, 0, "", false},
		{container.State{ExitCode: 3}, 0, "exit status 3", false},
		{container.State{ExitCode: 137}, 0, "exit status 137", false},
		{container.State{ExitCode: 137, OOMKilled: true}, 512 << 20, "out of memory (limit 512Mi)", true},
		{container.State{ExitCode: 1, OOMKilled: true}, 0, "out of memory", true},
		{container.State{ExitCode: 137}, 1000, "exit status 137: killed, as when it is out of memory (limit 1000)", true},
		// one of its processes was killed, and it continued
		{container.State{OOMKilled: true}, 1 << 30, "", false},
	} {
		how, sure := exitReason(&tt.state, &trackerNote{Memory: tt.limit})
		require.Equal(t, tt.how, how)
		require.Equal(t, tt.sure, sure)
	}
}

func TestAContainerHostHasAnAddress(t *testing.T) {
	_, err := New(Options{Allow: true, Host: "/run/docker.sock"})
	require.EqualError(t, err, "the container host /run/docker.sock is no address: write one "+
		"such as unix:///run/podman/podman.sock or tcp://127.0.0.1:2375")
	s, err := New(Options{Host: "/run/docker.sock"})
	require.NoError(t, err, "where none are allowed nobody cares")
	report := s.Carry(t.Context(), *jobOf(flow.Program{}, flow.Container{Image: "x"}))
	require.True(t, report.Fatal)
	require.Contains(t, report.Error, "--allow-containers")
	require.NoError(t, s.Close())
}
