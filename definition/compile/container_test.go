package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestAContainerIsPossibleInBothModes(t *testing.T) {
	const exec = `nodes: {a: {exec: {type: container, image: "alpine:3.20", command: [wc, -l, /in.json], pull: never, network: none, user: "1000:1000", root: reports,
      mounts: [{from: data, to: /data, ro: true}], resources: {cpu: 500m, memory: 512Mi}, to_file: /in.json, from_file: /out.json, env: {A: 1}}}}`
	for _, text := range []string{exec, "start: a\n" + exec} {
		plan, problems := compile.Text([]byte(text), flow.Limits{})
		require.NoError(t, problems.Err(), text)
		require.Empty(t, problems, text)
		require.Equal(t, flow.ExecContainer, plan.Root.Nodes["a"].Exec.Type)
		require.Equal(t, &flow.Program{Args: []string{"wc", "-l", "/in.json"}, Root: "reports", Env: map[string]string{"A": "1"},
			Container: &flow.Container{Image: "alpine:3.20", Pull: "never", Network: "none",
				User: "1000:1000", Mounts: []flow.Mount{{From: "data", To: "/data", ReadOnly: true}},
				CPUs: 500, Memory: 512 << 20, ToFile: "/in.json", FromFile: "/out.json"}}, plan.Root.Nodes["a"].Exec.Program)
	}
}

func TestResourcesOfAContainerHaveSeveralNotations(t *testing.T) {
	for text, want := range map[string]flow.Container{
		"{cpu: 2, memory: 1000000}":     {CPUs: 2000, Memory: 1_000_000},
		"{cpu: 0.5, memory: 4Gi}":       {CPUs: 500, Memory: 4 << 30},
		`{cpu: "250m", memory: "1.5G"}`: {CPUs: 250, Memory: 1_500_000_000},
		"{}":                            {},
	} {
		plan, problems := compile.Text([]byte("nodes: {a: {exec: {type: container, image: x, resources: "+text+"}}}"), flow.Limits{})
		require.NoError(t, problems.Err(), text)
		want.Image = "x"
		require.Equal(t, &want, plan.Root.Nodes["a"].Exec.Program.Container, text)
	}
}

func TestAContainerMayReadItsInputAndHaveGraphicsProcessors(t *testing.T) {
	for gpus, want := range map[string]int{"1": 1, "all": flow.AllGPUs} {
		plan, problems := compile.Text([]byte(
			"nodes: {a: {exec: {type: container, image: x, command: [cat], stdin_mode: json, gpus: "+
				gpus+"}}}"), flow.Limits{})
		require.NoError(t, problems.Err())
		require.Equal(t, flow.StdinJSON, plan.Root.Nodes["a"].Exec.Program.StdinMode)
		require.Equal(t, want, plan.Root.Nodes["a"].Exec.Program.Container.GPUs)
	}
}

func TestTheNetworkOfTheContainerHostIsAWarning(t *testing.T) {
	plan, problems := compile.Text([]byte("nodes: {a: {exec: {type: container, image: x, network: host}}}"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Msg, "--container-networks")
	require.Equal(t, "host", plan.Root.Nodes["a"].Exec.Program.Container.Network)
}

func TestRulesOfContainers(t *testing.T) {
	for exec, want := range map[string]string{
		"{type: container}":                                                  "nodes.a.exec.image: is the name of an image, such as alpine:3.20",
		"{type: container, image: a b}":                                      "nodes.a.exec.image: is the name of an image, such as alpine:3.20",
		"{type: container, image: x, command: []}":                           "nodes.a.exec.command: names no program",
		"{type: container, image: x, pull: often}":                           `nodes.a.exec.pull: unknown word "often": write missing, always or never`,
		"{type: container, image: x, network: \"container:other\"}":          `nodes.a.exec.network: must be none, bridge or the name of a network, is "container:other"`,
		"{type: container, image: x, user: a b}":                             `nodes.a.exec.user: must be a name or a number, with a group behind a colon or without, is "a b"`,
		"{type: container, image: x, mounts: [{to: /data}]}":                 "nodes.a.exec.mounts[0].from: is missing: say which folder or file inside --script-dir the container sees",
		"{type: container, image: x, mounts: [{from: data}]}":                "nodes.a.exec.mounts[0].to: is missing: say where the container sees it, such as /data",
		"{type: container, image: x, mounts: [{from: data, to: /}]}":         `nodes.a.exec.mounts[0].to: must be a path in the container that begins with /, such as /data/in.json, is "/"`,
		"{type: container, image: x, mounts: [{from: data, to: \"/a:ro\"}]}": `nodes.a.exec.mounts[0].to: must be a path in the container`,
		"{type: container, image: x, to_file: in.json}":                      `nodes.a.exec.to_file: must be a path in the container that begins with /, such as /data/in.json, is "in.json"`,
		"{type: container, image: x, from_file: out.json}":                   "nodes.a.exec.from_file: must be a path in the container that begins with /",
		"{type: container, image: x, resources: {cpu: much}}":                `nodes.a.exec.resources.cpu: must be processors, such as 2, 0.5 or 500m, is "much"`,
		"{type: container, image: x, resources: {cpu: -1}}":                  "nodes.a.exec.resources.cpu: must be processors",
		"{type: container, image: x, resources: {memory: 512MB}}":            `nodes.a.exec.resources.memory: must be an amount of memory, such as 512Mi or 4Gi, is "512MB"`,
		"{type: container, image: x, from_file: /o, report: object_store}":   "nodes.a.exec.from_file: is for containers whose end says what came of them",
		"{type: container, image: x, report: files}":                         `nodes.a.exec.report: unknown word "files": write exit or object_store`,
		"{type: container, image: x, grace: 1m}":                             "nodes.a.exec.grace: is more than the 20s that a container may take to end",
		"{type: container, image: x, file: y}":                               "nodes.a.exec.file: is for programs without an image: a container is given a command",
		"{type: container, image: x, service: y}":                            "nodes.a.exec.service: is for programs that workers start: it is members who have containers run",
		"{type: container, image: x, stdin_mode: yes}":                       `nodes.a.exec.stdin_mode: unknown word "yes": write json or none`,
		"{type: container, image: x, stdin_mode: json}":                      "nodes.a.exec.command: is missing: what is to read the input (stdin_mode: json) has to be said",
		"{type: container, image: x, gpus: none}":                            `nodes.a.exec.gpus: must be all, or how many, such as 1, is "none"`,
		"{type: container, image: x, gpus: 0}":                               `nodes.a.exec.gpus: must be all, or how many, such as 1, is "0"`,
		"{type: process, command: x, gpus: 1}":                               "nodes.a.exec.gpus: is for type: container",
		"{type: container, image: x, url: \"http://w\"}":                     "nodes.a.exec.url: is for type: worker",
		"{type: process, command: x, image: y}":                              "nodes.a.exec.image: is for type: container",
		"{type: python, file: x, mounts: []}":                                "nodes.a.exec.mounts: is for type: container",
		"{type: worker, url: \"http://w\", command: x, pull: never}":         "nodes.a.exec.pull: is for type: container",
	} {
		for _, start := range []string{"", "start: a\n"} {
			_, problems := compile.Text([]byte(start+"nodes: {a: {exec: "+exec+"}}"), flow.Limits{})
			require.ErrorContains(t, problems.Err(), want, exec)
		}
	}
}

// TestTheTimeoutOfAContainerContinues covers containers, which run while their attempt waits. So
// Ork's default timeout of one hour must not stop during the wait.
func TestTheTimeoutOfAContainerContinues(t *testing.T) {
	for exec, patient := range map[string]bool{"{type: container, image: x}": false, "{type: process, command: x}": true} {
		plan, problems := compile.Text([]byte("profile: ork\nnodes: {a: {exec: "+exec+"}}"), flow.Limits{})
		require.NoError(t, problems.Err())
		require.EqualValues(t, 3_600_000, plan.Root.Nodes["a"].TimeoutMS)
		require.Equal(t, patient, plan.Root.Nodes["a"].Patient, exec)
	}
}
