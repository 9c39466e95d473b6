package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestAnOrkWorkerIsNamedInBothModes(t *testing.T) {
	for _, text := range []string{"nodes: {a: {exec: {type: worker, url: \"http://127.0.0.1:8081\", command: ls -l}}}",
		"start: a\nnodes: {a: {exec: {type: worker, url: \"http://127.0.0.1:8081\", command: ls -l}}}"} {
		plan, problems := compile.Text([]byte(text), flow.Limits{})
		require.NoError(t, problems.Err(), text)
		require.Equal(t, flow.ExecWorker, plan.Root.Nodes["a"].Exec.Type)
		require.Equal(t, &flow.Program{URL: "http://127.0.0.1:8081", Executor: "process",
			Command: "ls -l"}, plan.Root.Nodes["a"].Exec.Program)
	}
	for exec, want := range map[string]string{"file: a.py": "python", "file: a.sh": "process",
		"module: m": "python", "file: x, function: f": "python", "executor: library, file: l.so": "library"} {
		plan, problems := compile.Text([]byte("nodes: {a: {exec: {type: worker, url: \"http://w\", "+exec+"}}}"), flow.Limits{})
		require.NoError(t, problems.Err(), exec)
		require.Equal(t, want, plan.Root.Nodes["a"].Exec.Program.Executor, exec)
	}
}

func TestRulesOfOrkWorkers(t *testing.T) {
	const at = "http://w"
	for exec, want := range map[string]string{
		"{type: worker, command: x}": "nodes.a.exec.url: is missing: say " +
			"where the worker is, such as http://127.0.0.1:8081",
		"{type: worker, url: \"ftp://w\", command: x}": "nodes.a.exec.url: must be " +
			"http://host:port without user, query or fragment",
		"{type: worker, url: \"http://u:p@w\", command: x}": "nodes.a.exec.url: must be " +
			"http://host:port without user, query or fragment",
		"{type: worker, url: \"" + at +
			"\"}": "nodes.a.exec: give it a command, a file or a module: one of them",
		"{type: worker, url: \"" + at +
			"\", command: x, file: y}": "nodes.a.exec: give it a command, a file or a module: one of them",
		"{type: worker, url: \"" + at +
			"\", command: x, executor: cloudrun}": `nodes.a.exec.executor: unknown word ` +
			`"cloudrun": write process, python, library`,
		"{type: worker, url: \"" + at +
			"\", command: x, root: y}": "nodes.a.exec.root: is up to the worker, which cannot be told",
		"{type: worker, url: \"" + at +
			"\", command: x, service: y}": "nodes.a.exec.service: is not what an Ork worker is " +
			"found by: its url is",
		"{type: process, command: x, url: \"" + at + "\"}": "nodes.a.exec.url: is for type: worker",
		"{type: python, file: x, executor: python}":        "nodes.a.exec.executor: is for type: worker",
		"{type: library}":                          "nodes.a.exec.file: is missing: name the library, such as lib/task.so",
		"{type: library, file: x.so, function: f}": "nodes.a.exec.function: is not for a library: its file is all that it has",
		"{type: elsewhere, command: x}": `nodes.a.exec.type: unknown word ` +
			`"elsewhere": write service, func, process, python, library, container or worker`,
	} {
		_, problems := compile.Text([]byte("nodes: {a: {exec: "+exec+"}}"), flow.Limits{})
		require.ErrorContains(t, problems.Err(), want, exec)
	}
}
