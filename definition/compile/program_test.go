package compile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

func TestAProgramWorksInBothModes(t *testing.T) {
	const node = "{exec: {type: process, command: echo hi, root: jobs, env: {A: x, B: 2.50, C: " +
		"true}, grace: 1500ms, output_mode: marker, stdin_mode: none}}"
	want := &flow.Program{Command: "echo hi", Root: "jobs", Env: map[string]string{"A": "x", "B": "2.50", "C": "true"}, GraceMS: 1500,
		OutputMode: flow.OutputMarker, StdinMode: flow.StdinNone}
	for _, text := range []string{"nodes: {a: " + node + "}", "start: a\nnodes: {a: " + node + "}",
		"defaults: {route: queue, exec_type: queue}\nnodes: {a: " + node + "}", "nodes: {a: {service: s}, b: {service: s}}\nfinally: a"} {
		if text[0] == 'n' && text[len(text)-1] == 'a' {
			text = "nodes: {b: {service: s}, a: " + node + "}\nfinally: a"
		}
		plan, problems := compile.Text([]byte(text), flow.Limits{})
		require.NoError(t, problems.Err(), text)
		n := plan.Root.Nodes["a"]
		if n == nil {
			n = plan.Closing.Nodes["a"]
		}
		require.Equal(t, flow.ExecProcess, n.Exec.Type, text)
		require.Equal(t, want, n.Exec.Program, text)
	}
	plan, problems := compile.Text([]byte("nodes: {a: {exec: {type: process, command: [echo, 1, x y]}, each: {count: 3}}}"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Equal(t, []string{"echo", "1", "x y"}, plan.Root.Nodes["a"].Exec.Program.Args)
}

func TestMarksAreLooseInTheProfileOfOrk(t *testing.T) {
	const nodes = "mode: dag\nnodes: {a: {exec: {type: process, command: x}}, b: {exec: {type: " +
		"container, image: x}}, c: {exec: {type: library, file: x.so}}}\n"
	for profile, want := range map[string]bool{"": false, "profile: ork\n": true} {
		plan, problems := compile.Text([]byte(profile+nodes), flow.Limits{})
		require.NoError(t, problems.Err())
		var loose []bool
		for _, key := range []string{"a", "b", "c"} {
			loose = append(loose, plan.Root.Nodes[key].Exec.Program.LooseMarks)
		}
		require.Equal(t, []bool{want, want, false}, loose)
	}
}

func TestWorkersThatReportThroughFilesHaveTimeouts(t *testing.T) {
	for _, start := range []string{"", "start: a\n"} {
		for _, who := range []string{"exec: {type: process, command: x, report: object_store}",
			"exec: {type: container, image: x, report: object_store}",
			"exec_type: external, service: object_store"} {
			plan, problems := compile.Text([]byte(start+"nodes: {a: {"+who+", start_timeout: 2s, heartbeat_timeout: 3s}}"), flow.Limits{})
			require.Empty(t, problems, start+who)
			x := plan.Root.Nodes["a"].Exec
			require.Equal(t, []any{true, int64(2000), int64(3000)}, []any{x.ByFiles(), x.StartMS, x.HeartbeatMS})
		}
	}
	plan, problems := compile.Text([]byte("nodes: {a: {exec: {type: process, command: x, report: exit}}}"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.False(t, plan.Root.Nodes["a"].Exec.ByFiles())
	_, problems = compile.Text([]byte("nodes: {a: {exec: {type: process, command: x}, start_timeout: 2s}}"), flow.Limits{})
	require.ErrorContains(t, problems.Err(), "report: object_store")
}

func TestRulesOfPrograms(t *testing.T) {
	for exec, want := range map[string]string{
		"{type: process}":                      "nodes.a.exec: give it a command or a file: one of them",
		"{type: process, command: x, file: y}": "nodes.a.exec: give it a command or a file: one of them",
		"{type: process, command: []}":         "nodes.a.exec.command: names no program",
		"{type: process, command: {a: 1}}": "nodes.a.exec.command: " +
			"must be a shell line or a list of a program and its arguments, is an object",
		"{type: process, command: x, module: y}": "nodes.a.exec.module: is for type: python",
		"{type: python}":                         "nodes.a.exec: give it a file or a module: one of them",
		"{type: python, file: f.py, command: x}": "nodes.a.exec.command: " +
			"is for a process: name the file or module with the function",
		"{type: process, command: x, warm: 2}": "nodes.a.exec.warm: is for type: python",
		"{type: python, file: f.py, warm: 17}": "nodes.a.exec.warm: must be a number from 0 to 16",
		"{type: python, file: f.py, warm: -1}": "nodes.a.exec.warm: must be a number from 0 to 16",
		"{type: process, command: x, func: f}": "nodes.a.exec: is a func or a program: give one of them",
		"{type: process, service: s}":          "nodes.a.exec: give it a command or a file: one of them",
		"{type: process, command: x, stdin_mode: json}": `nodes.a.exec.stdin_mode: ` +
			`unknown word "json": write none, or leave it out`,
		"{type: process, command: x, output_mode: json}": `nodes.a.exec.output_mode: ` +
			`unknown word "json": write marker, or leave it out`,
		"{type: process, command: x, report: files}": `nodes.a.exec.report: ` +
			`unknown word "files": write exit or object_store`,
		"{type: process, command: x, service: s, report: object_store}": "nodes.a.exec.report: " +
			"is for programs that the member itself starts: leave out service, or report",
		"{type: process, command: x, env: {A=B: x}}": "nodes.a.exec.env.A=B: is no name of a variable",
		"{type: process, command: x, env: {A: [1]}}": "nodes.a.exec.env.A: " +
			"must be a text, a number, true or false, is an array",
		"{type: process, command: \"x\\0\"}": "nodes.a.exec: holds a " +
			"NUL character, which no program can be given",
		"{type: process, command: x}, service: s": "nodes.a.exec: says " +
			"the same as service, func, script and exec_type: give one of them",
		"{type: process, command: x}, route: queue": "nodes.a.route: is for " +
			"jobs of workers, and the member itself starts the program: name the service of its " +
			"workers in exec",
		"{type: process, command: x, grace: soon}": `nodes.a.exec.grace: ` +
			`"soon" is no duration: write it like 250ms, 90s, 1h30m, 1d12h or 2w`,
		"{type: process, command: x}, exec_type: local_script": "nodes.a.exec: says " +
			"the same as service, func, script and exec_type: give one of them",
	} {
		for _, start := range []string{"", "start: a\n"} {
			_, problems := compile.Text([]byte(start+"nodes: {a: {exec: "+exec+"}}"), flow.Limits{})
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Path+": "+p.Msg)
			}
			require.Contains(t, texts, want, "%s%s", start, exec)
		}
	}
}

func TestAProgramForAWorkerIsSentInParams(t *testing.T) {
	const node = "{exec: {type: process, service: s, command: echo hi, env: {A: 1}}, route: queue, params: {x: 1}}"
	for _, text := range []string{"nodes: {a: " + node + "}", "start: a\nnodes: {a: " + node + "}",
		"nodes: {a: " + node + ", b: {service: s}}\nfinally: a"} {
		plan, problems := compile.Text([]byte(text), flow.Limits{})
		require.Empty(t, problems, text)
		n := plan.Root.Nodes["a"]
		if n == nil {
			n = plan.Closing.Nodes["a"]
		}
		require.Equal(t, flow.ExecQueue, n.Exec.Type, text)
		require.Equal(t, "s", n.Exec.Service)
		require.Nil(t, n.Exec.Program)
		require.JSONEq(t, `{"x":1,"exec":{"type":"process","command":"echo hi","env":{"A":"1"}}}`, string(n.Params), text)
	}
}

func TestFilesOfSecretsMustNotConflict(t *testing.T) {
	for _, exec := range []string{"type: process, command: x", "type: container, image: i"} {
		for secrets, refused := range map[string]string{
			"{A: {secret: s, file: ca.pem}, B: {secret: t, file: ./ca.pem}}":  "B.file: is the file of A already",
			"{A: {secret: s, file: ca}, B: {secret: t, file: ca/key.pem}}":    "B.file: is below the file of A",
			"{A: {secret: s, file: d/../ca/x}, B: {secret: t, file: ca}}":     "A.file: is below the file of B",
			"{A: {secret: s, file: ..}}":                                      "A.file: is no path of a file",
			"{A: {secret: s, file: .}}":                                       "A.file: is no path of a file",
			"{A: {secret: s, file: d/..}}":                                    "A.file: is no path of a file",
			"{A: {secret: s, file: d/}}":                                      "A.file: is no path of a file",
			"{A: {secret: s, file: ca}, B: {secret: t, file: ca.pem}, C: t}":  "",
			"{A: {secret: s, file: ../ca}, B: {secret: t, file: d/ca}, C: t}": "",
		} {
			_, problems := compile.Text([]byte("nodes: {a: {exec: {"+exec+", secrets: "+secrets+"}}}"), flow.Limits{})
			if refused == "" {
				require.NoError(t, problems.Err(), secrets)
				continue
			}
			require.ErrorContains(t, problems.Err(), "nodes.a.exec.secrets."+refused, secrets)
			require.Len(t, problems, 1)
		}
	}
}

func TestAProgramWithoutAnImageOnlyHasAMemoryLimit(t *testing.T) {
	for _, start := range []string{"", "start: a\n"} {
		for exec, severity := range map[string]definition.Severity{
			"{type: process, command: x, resources: {cpu: 500m, memory: 512Mi}}": definition.SeverityError,
			"{type: process, service: s, command: x, resources: {cpu: 2}}":       definition.SeverityWarning,
		} {
			_, problems := compile.Text([]byte(start+"nodes: {a: {exec: "+exec+"}}"), flow.Limits{})
			require.Len(t, problems, 1)
			require.Equal(t, severity, problems[0].Severity)
			require.Equal(t, "nodes.a.exec.resources.cpu", problems[0].Path)
			require.Equal(t, "has no effect on a program without an image: "+
				"set type: container, or limit the member or worker itself", problems[0].Msg)
		}
		plan, problems := compile.Text([]byte(
			start+"nodes: {a: {exec: {type: process, command: x, resources: {memory: 512Mi}}}}"),
			flow.Limits{})
		require.Empty(t, problems)
		require.EqualValues(t, 512<<20, plan.Root.Nodes["a"].Exec.Program.Memory)
		_, problems = compile.Text([]byte(start+
			"nodes: {a: {exec: {type: process, command: x, resources: {memory: much}}}}"), flow.Limits{})
		require.ErrorContains(t, problems.Err(), "nodes.a.exec.resources.memory: must be an amount of memory")
	}
}
