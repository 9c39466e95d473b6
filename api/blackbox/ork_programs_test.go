package blackbox

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

func orkPython(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("tasks/etl.py", "from dataclasses import dataclass", "@dataclass", "class Row:", "    id: int", "    name: str",
		"def extract(limit: int = 2):", "    return [{'id': i, 'name': f'n{i}'} for i in range(limit)]",
		"async def load(rows: list, tag: str):", "    return {'count': len(rows), 'tag': tag}")
	f.register("extract: {executor: python, file: tasks/etl.py, function: extract, output_type: [{id: int, name: str}]}",
		"load: {executor: python, file: tasks/etl.py, function: load, depends_on: [extract], "+
			"input_type: {rows: [{id: int, name: str}], tag: str}, "+
			"inputs: {rows: {ref: tasks.extract.output}, tag: {const: x}}}")
	r := f.start(nil).ends("success")
	require.Equal(c, []any{obj{"id": 0.0, "name": "n0"}, obj{"id": 1.0, "name": "n1"}}, r.task("extract")["output"])
	require.Equal(c, obj{"count": 2.0, "tag": "x"}, r.task("load")["output"])
	require.Equal(c, "python", r.task("load")["executor"])
}

func orkAsksFunctions(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("tasks.py", "def main(a: int, b: str = ''):", "    return a")
	const task = "t: {executor: python, file: tasks.py, input_type: {a: str, c: int}, inputs: {a: {const: x}, c: {const: 1}}}"
	require.Nil(c, f.register(task)["warnings"], "no file is imported")
	f.lead = "introspect: true\n"
	answer := f.register(task)
	var told []string
	for _, w := range answer["warnings"].([]any) {
		told = append(told, w.(obj)["path"].(string)+": "+w.(obj)["message"].(string))
	}
	require.ElementsMatch(c, []string{"tasks.t.inputs.a: the function main takes int, the task says str",
		"tasks.t.inputs.c: the function main takes no c, so it is left out"}, told)
}

func orkSaysWhy(c *client) {
	const says = `echo 'ORK_ERROR:{"message":"m","details":{"k":[1,null]}}'; `
	r := c.ork(sh("a", says+"exit 1")).start(nil).ends("failed")
	require.Equal(c, []any{"m", obj{"k": []any{1.0, nil}}}, []any{r.task("a")["error"], r.task("a")["error_details"]})
	r = c.ork(sh("a", says+gives(`1`)), sh("again", says+"test $ORK_ATTEMPT = 2", "retries: 1",
		"depends_on: [a]")).start(nil).ends("success")
	for _, task := range []string{"a", "again"} {
		require.Equal(c, []any{nil, nil}, []any{r.task(task)["error"], r.task(task)["error_details"]}, task)
	}
}

func orkTellsNumbers(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("tasks.py", "def main(ctx):", "    ctx.metrics.record('rows', 12, table='orders', shard=2)", "    return 1")
	f.register("a: {executor: python, file: tasks.py}", sh("b", "ls"))
	r := f.start(nil).ends("success")
	require.Equal(c, []any{obj{"name": "rows", "labels": obj{"table": "orders", "shard": "2"},
		"count": 1.0, "sum": 12.0, "last": 12.0}}, r.task("a")["metrics"])
	require.Equal(c, []any{1.0, nil}, []any{r.task("a")["output"], r.task("b")["metrics"]})
}

func orkBytes(c *client) {
	r := c.ork(sh("a", `printf '\377\376 odd\n'; yes $(printf %0400d 0) | head -c 1000000; echo; `+gives(`7`))).start(nil).ends("success")
	require.Equal(c, 7.0, r.task("a")["output"])
	r.logged("a/logs", func(text string) bool { return len(text) > 1_000_000 })
	text := r.log("a/logs")
	require.True(c, strings.HasPrefix(text, "stdout: \ufffd"), "%.80q", text)
	require.Contains(c, text, " odd\n")
}

// Variables that programs see: those of the server's environment, those that a shell sets, and
// those that describe the job.
var (
	inherited   = []string{"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"}
	ofTheShell  = []string{"PWD", "OLDPWD", "SHLVL", "_"}
	ofTheEngine = []string{"EXECUTION_ID", "ORK_ATTEMPT", "ORK_INPUT_JSON", "ORK_RUN_ID",
		"ORK_TASK_ID", "ORK_TASK_NAME", "ORK_WORKFLOW_NAME", "TRACEPARENT",
		"TROUPE_ATTEMPT", "TROUPE_FAMILY", "TROUPE_FLOW", "TROUPE_JOB", "TROUPE_KEY", "TROUPE_NODE",
		"TROUPE_TASK", "TROUPE_UNIT", "TROUPE_UNITS",
		"attempt", "command", "max_retries", "run_id", "task_index", "task_name", "timeout_seconds", "workflow_name"}
)

func orkEnvironment(c *client) {
	r := c.ork(sh("a", `env | cut -d= -f1 | sort > names; printf 'ORK_OUTPUT:"%s %s %s %s"' `+
		`"$MINE" "$ORK_WORKFLOW_NAME" "$ORK_RUN_ID" "$task_index"`, "env: {MINE: 5}",
		"retries: 2")).start(obj{"x": 1}).ends("success")
	require.Equal(c, "5 "+r.name+" "+r.id+" 0", r.task("a")["output"])
	names := strings.Fields(r.written("names"))
	told := slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "LC_") || slices.Contains(inherited, name) || slices.Contains(ofTheShell, name)
	})
	require.ElementsMatch(c, append([]string{"MINE"}, ofTheEngine...), told)
	r = c.ork(sh("a", gives(`{"x":3}`)), sh("b", `echo "$A"`, "depends_on: [a]", `env: {A: "{{ a.x }}"}`)).start(nil).ends("success")
	require.Equal(c, 3.0, r.task("b")["output"])
}

func orkRefusesWhatItCannotDo(c *client) {
	for text, more := range map[string]string{"names no task": `env: {A: "{{ b.x }}"}`, "names no secret": "env: {A: {secrets: s}}",
		"is not carried out by this server": "config_file: x"} {
		f := c.orkIn(c.TempDir())
		status, answer := f.tryRegister(sh("a", "ls", more))
		require.Equal(c, 400, status, text)
		require.Contains(c, answer["message"], text)
	}
}
