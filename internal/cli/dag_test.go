package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/show"
	"github.com/troupe-engine/troupe/internal/cases"
)

const workList = `
mode: dag
nodes:
  list: {kind: fanout, route: direct, each: {items: $run}}
  sum:
    depends_on: [list]
    exec_type: local_func
    func: mul
    params: {mul: 2}
    prep: {input_key: "$deps.list[0]"}
`

func TestAMissingInputIsReportedWithTheFlag(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "Work List.yaml", "nodes:\n  m: {kind: map, exec_type: local_func, func: upper}\n")
	require.Equal(t, result{0, "work-list version 1 published\n", ""}, cmd("flow", "apply", path))
	require.Equal(t, "other version 1 published\n", cmd("flow", "apply", path, "--slug", "other").stdout)
	for _, start := range [][]string{{"task", "start", "work-list"}, {"flow", "run", path}, {"task", "start", "work-list", "-p", "a=1"}} {
		got := cmd(start...)
		require.Equal(t, 1, got.code)
		require.Regexp(t,
			`^troupe: the input must be an array, because the map m makes a unit of each of its items; (there is none|it is an object)
hint: use --input '\["a", "b"\]', --input @FILE, or -p KEY=VALUE for an object\n$`, got.stderr)
	}
	require.Equal(t, 0, cmd("flow", "run", path, "--slug", "third", "--input", `["a", "b"]`).code)
	require.Contains(t, cmd("flow", "list").stdout, "third")
}

func TestADagIsSteeredFromTheCommandLine(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Equal(t, 0, cmd("flow", "apply", write(t, "list.yaml", workList)).code)
	got := cmd("task", "start", "list", "--input", "@"+write(t, "in.json", `["a"]`))
	require.Equal(t, 0, got.code, got.stderr)
	id := strings.TrimSpace(got.stdout)
	require.Equal(t, 2, cmd("task", "start", "list", "--input", "[]", "-p", "a=1").code)
	require.Equal(t, 2, cmd("task", "start", "list", "--input", "text").code)

	require.Equal(t, result{0, "list unit 1\nlist unit 2\n", ""}, cmd("task", "append", id, "list", "b", "--list", `[{"n":1}]`))
	require.Equal(t, 2, cmd("task", "append", id, "list").code)
	got = cmd("task", "show", id)
	require.Regexp(t, `(?s)Steps: +0 completed, 1 started, 0 failed, 0 skipped, 1 pending.*list `+
		`+fanout +started +0/3 +1 +a request must complete it\nsum +executor +created +after list`,
		got.stdout)
	require.Equal(t, result{0, id + "  running\n", ""}, cmd("task", "complete", id, "list", "3"))
	require.Equal(t, result{0, "list unit 0 had already ended\n" + id + "  running\n", ""}, cmd("task", "complete", id, "list", "4"))
	require.Equal(t, 2, cmd("task", "complete", id, "list", "3", "--error", "x").code)
	require.Equal(t, 0, cmd("task", "complete", id, "list", "--unit", "1", "--error", "torn").code)
	require.Equal(t, 0, cmd("task", "complete", id, "list", "--unit", "2").code)
	got = cmd("task", "watch", id)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `(?s)list: 2 units appended.*list: failed with 1 of 3 units failed, `+
		`task_error.*list +failed: task_error +1 +3 +1.*sum +skipped: dependency_failed`, got.stdout)
	require.Regexp(t, `task_error: `, cmd("task", "show", id).stdout)
	require.Regexp(t, `sum#1 .* skipped +dependency_failed`, cmd("task", "history", id, "--runs").stdout)

	require.Equal(t, result{0, id + "  running\n", ""}, cmd("task", "retry", id))
	require.Equal(t, result{0, "list unit 0 had already ended\n" + id + "  running\n", ""},
		cmd("task", "complete", id, "list", "4"), "it keeps what it had")
	got = cmd("task", "complete", id, "list", "21", "--unit", "1")
	require.Equal(t, 0, got.code, got.stderr)
	got = cmd("task", "watch", id)
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Contains(t, got.stdout, "task retried", "a watch goes on past the first end")
	require.Contains(t, got.stdout, "list: started, 2 kept")
	require.Equal(t, 1, cmd("task", "retry", id).code)
	require.Equal(t, id+"  completed\n", cmd("task", "cancel", "--graceful", id).stdout)
}

// TestAStepInsideIsNamedAsItIsShown completes steps of a dag inside a graph, under their displayed
// names.
func TestAStepInsideIsNamedAsItIsShown(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	inner := "\n        nodes: {B: {kind: branch, flow: {nodes: {q: {route: direct}, l: {route: direct, kind: map}}}}}\n"
	path := write(t, "inside.yaml", "start: s\nnodes:\n  s:\n    kind: subflow\n    prep: {input_key: $params.list}\n    flow:"+inner)
	require.Equal(t, 0, cmd("flow", "apply", path).code)
	id := strings.TrimSpace(cmd("task", "start", "inside", "-p", "list=[1]").stdout)
	require.Contains(t, cmd("task", "show", id).stdout, "Waiting: s#1/B/q: a request must complete it")
	require.Equal(t, result{0, "s#1/B/l unit 1\n", ""}, cmd("task", "append", id, "s#1/B/l", "2"))
	for _, step := range [][]string{{"s#1/B/q"}, {"s#1/B/l", "1", "--unit", "0"}, {"B/l", "2", "--unit", "1", "--scope", "s#1"}} {
		got := cmd(append([]string{"task", "complete", id}, step...)...)
		require.Equal(t, 0, got.code, got.stderr)
	}
	require.Equal(t, 0, cmd("task", "watch", id).code)
}

func TestAFlowIsRunFromItsFile(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "double.yaml", double)
	got := cmd("flow", "run", path, "-p", "n=21")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?s)task started.*double: completed.*completed after 1 step in.*Result: 42`, got.stdout)
	task := parse[wire.Task](t, cmd("flow", "run", path, "--slug", "other", "--input", `{"n":4}`, "-o", "json").stdout)
	require.Equal(t, []string{"other", "8"}, []string{task.Flow, string(task.Result)})
	broken := write(t, "broken.yaml", strings.ReplaceAll(double, "func: mul", "func: nobody_knows"))
	got = cmd("flow", "run", broken, "-p", "n=1")
	require.Equal(t, 1, got.code)
	require.Regexp(t, `failed after 1 step in .*: double: fatal error: this member has no function nobody_knows`, got.stdout)
	got = cmd("flow", "run", write(t, "wrong.yaml", "start: x\nnodes: {}\n"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `wrong.yaml:1:8: error: start: unknown node "x"`)
	require.Equal(t, 2, cmd("flow", "run", "-").code)
}

func TestADefinitionIsTriedWithoutBeingPublished(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "double.yaml", double)
	got := cmd("flow", "try", path, "-p", "n=21")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "Result: 42")
	task := parse[wire.Task](t, cmd("flow", "try", path, "--input", `{"n":4}`, "--label", "by=me", "-o", "json").stdout)
	require.Equal(t, []string{"8", "try", "me"}, []string{string(task.Result), task.Labels["troupe"], task.Labels["by"]})
	require.NotContains(t, cmd("flow", "list").stdout, "double")
	got = cmd("flow", "try", write(t, "wrong.yaml", "start: x\nnodes: {}\n"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `wrong.yaml:1:8: error: start: unknown node "x"`)
}

func TestTheSchemaIsPrinted(t *testing.T) {
	require.Equal(t, result{0, string(definition.Schema), ""}, call(t, "flow", "schema"))
	require.Equal(t, result{0, string(cases.Schema), ""}, call(t, "flow", "schema", "--tests"))
}

func TestAPlanIsShown(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Equal(t, 0, cmd("flow", "apply", write(t, "list.yaml", workList)).code)
	require.Regexp(t, `(?s)list \(dag, .*list +fanout +direct +each \$run\n +sum +executor `+
		`+local_func:mul +after list`, cmd("flow", "show", "list", "--plan").stdout)
	require.Regexp(t, `^flowchart TD\n`, cmd("flow", "show", "list", "--plan", "--format", "mermaid").stdout)
	require.Regexp(t, `^digraph "list" \{\n`, cmd("flow", "show", "list", "--plan", "--format", "graphviz").stdout)
	require.EqualValues(t, "dag", parse[show.View](t, cmd("flow", "show", "list", "--plan", "-o", "json").stdout).Root.Mode)
}

func TestAnEmptyTextIsAText(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Equal(t, 0, cmd("flow", "apply", write(t, "say.yaml", "nodes: {say: {route: direct}}\n")).code)
	id := strings.TrimSpace(cmd("task", "start", "say").stdout)
	got := cmd("task", "complete", id, "say", "--error", "")
	require.Equal(t, exitUsage, got.code, "nobody says so of what has completed")
	require.Contains(t, got.stderr, "give an error message")
	require.Equal(t, exitUsage, cmd("task", "complete", id, "say", "", "--error", "torn").code)
	require.Equal(t, result{0, id + "  completed\n", ""}, cmd("task", "complete", id, "say", ""))
	require.Regexp(t, `Result: +\{"say":""\}`, cmd("task", "show", id).stdout)

	require.Equal(t, 0, cmd("flow", "apply",
		write(t, "wait.yaml", "start: w\nnodes:\n  w: {kind: wait_event, params: {signal_key: "+
			"$shared.go}}\n")).code)
	id = strings.TrimSpace(cmd("task", "start", "wait").stdout)
	require.Equal(t, 0, cmd("task", "signal", id, "note", "").code)
	require.Regexp(t, `"output": "",\s*"key": "note"`, cmd("task", "history", id, "-o", "json").stdout)
}
