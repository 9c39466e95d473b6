package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// programChecks holds the checks of Ork's list about programs that the member starts.
var programChecks = []check{
	{"O01 a program runs", programRuns},
	{"O02 a program fails", programFails},
	{"O04 programs run at once", programsAtOnce},
	{"O11 a program passes at its third attempt", programPassesLater},
	{"O12 a program fails for good", programFailsForGood},
	{"O14 a program takes too long", programTakesTooLong},
	{"O19 programs know their index", programsAreCounted},
	{"O21 a program for each item", programForEach},
	{"O33 a canceled program ends at once", cancelProgram},
	{"O43 a large input arrives", largeInput},
	{"O46 a program says what went wrong", programSaysWhy},
	{"15 a program tells numbers", programTellsNumbers},
	{"O55 what is no text is logged", programPrintsBytes},
	{"O56 a program sees a stated environment", programEnvironment},
	{"a program is a node of a graph, too", programInGraph},
	{"O41 functions of Python follow one another", pythonRuns},
	{"O43 a function of Python gets a large input", pythonLargeInput},
}

func TestProgramsSQLite(t *testing.T)  { runPrograms(t, sqliteStore) }
func TestProgramsCluster(t *testing.T) { runPrograms(t, clusterStore) }

func runPrograms(t *testing.T, kind storeKind) {
	if runtime.GOOS == "windows" {
		return // the checks use lines for a Unix shell
	}
	t.Parallel()
	runChecks(t, kind, programChecks)
}

// program starts a task with one node that runs a shell line. more holds further fields of the
// node.
func (c *client) program(line, more string, input any) *dag {
	c.Helper()
	return c.dag("profile: ork\nnodes:\n  a:\n    exec:\n      type: process\n      command: |\n        "+
		strings.ReplaceAll(strings.TrimSpace(line), "\n", "\n        ")+"\n"+more, input)
}

// attempts returns the attempts of a node, in order.
func (d *dag) attempts(node string) (all []obj) {
	d.Helper()
	for _, r := range objects(d, d.get(d.path("/runs"))["items"]) {
		if r["node"] == node && r["kind"] == "attempt" {
			all = append(all, r)
		}
	}
	return all
}

func programRuns(c *client) {
	d := c.program(`echo noise; echo 'ORK_OUTPUT:{"n":1}'; echo 'x ORK_OUTPUT:2'`, "", obj{})
	require.Equal(c, obj{"a": obj{"n": 1.0}}, d.ended("completed")["result"])
	require.Regexp(c, `^process:\d+$`, d.attempts("a")[0]["worker"])
}

func programFails(c *client) {
	d := c.program(`echo oops >&2; exit 3`, "", obj{})
	require.Contains(c, d.ended("failed")["error"], "exit status 3: oops")
	require.Equal(c, "exit status 3: oops", d.attempts("a")[0]["error"])
}

// programsAtOnce end only if both run at the same time.
func programsAtOnce(c *client) {
	dir := c.TempDir()
	line := func(own, other string) string {
		return fmt.Sprintf("touch %[1]s/%[2]s; while ! test -e %[1]s/%[3]s; do sleep 0.01; done", dir, own, other)
	}
	c.dag(fmt.Sprintf("profile: ork\nnodes:\n  a: {exec: {type: process, command: %q}}\n  b: "+
		"{exec: {type: process, command: %q}}", line("a", "b"), line("b", "a")),
		obj{}).ended("completed")
}

func programPassesLater(c *client) {
	d := c.program(`test $ORK_ATTEMPT = 3 && echo "ORK_OUTPUT:$ORK_ATTEMPT"`, "    retry: {max_attempts: 3}", obj{})
	require.Equal(c, obj{"a": 3.0}, d.ended("completed")["result"])
	require.Len(c, d.attempts("a"), 3)
}

func programFailsForGood(c *client) {
	d := c.program(`exit 1`, "    retry: {max_attempts: 3}\n  b: {service: never, depends_on: [a]}", obj{})
	d.ended("failed")
	d.steps("a", "failed", "b", "skipped")
	require.Len(c, d.attempts("a"), 3)
}

func programTakesTooLong(c *client) {
	dir := c.TempDir()
	d := c.program(fmt.Sprintf(`trap 'echo x >> %s/asked; exit' TERM; sleep 3600 & wait`, dir),
		"    timeout: 3\n    retry: {max_attempts: 2}", obj{})
	require.Contains(c, d.ended("failed")["error"], "execution timeout")
	all := d.attempts("a")
	require.Equal(c, []any{"timeout", "timeout"}, values(all, "state"))
	require.Equal(c, []any{"execution timeout", "execution timeout"}, values(all, "error"))
	require.Eventually(c, func() bool {
		asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return string(asked) == "x\nx\n"
	}, deadline, 10*time.Millisecond, "both were asked to end")
}

func programsAreCounted(c *client) {
	d := c.program(`echo "[$ORK_PARALLEL_INDEX, $task_index, $ORK_PARALLEL_COUNT]"`, "    each: {count: 4}", obj{})
	require.Equal(c, obj{"a": fromJSON(c, `[[0,0,4],[1,1,4],[2,2,4],[3,3,4]]`)}, d.ended("completed")["result"])
}

func programForEach(c *client) {
	d := c.dag(`
profile: ork
nodes:
  discover: {exec: {type: process, command: "echo 'ORK_OUTPUT:{\"files\":[\"x\",\"y\"]}'"}}
  each: {exec: {type: process, command: 'echo "ORK_OUTPUT:$ORK_ITEM_JSON"'}, depends_on: [discover], each: {items: tasks.discover.output.files}}
  all: {exec: {type: process, command: cat}, depends_on: [each]}`, obj{})
	require.Equal(c, obj{"all": obj{"each": []any{"x", "y"}}}, d.ended("completed")["result"])
}

func cancelProgram(c *client) {
	pipe := makePipe(c)
	d := c.program(fmt.Sprintf("exec 3>%s; echo begun >&3; sleep 3600 & wait", pipe.path),
		"  next: {service: never, depends_on: [a]}", obj{})
	pipe.begun()
	d.post(d.path("/cancel"), obj{"force": true})
	d.ended("canceled")
	pipe.letGo()
	d.neverRan("next")
}

func largeInput(c *client) {
	d := c.program(`
n=$(tr -d '\n' | wc -c)
m=$(wc -c < "$ORK_INPUT_FILE")
echo "ORK_OUTPUT:[$n, $m, \"${ORK_INPUT_JSON-unset}\"]"`, "", obj{"text": strings.Repeat("x", 300_000)})
	size := float64(300_000 + len(`{"text":""}`))
	require.Equal(c, obj{"a": []any{size, size, "unset"}}, d.ended("completed")["result"])
}

func programSaysWhy(c *client) {
	d := c.program(`echo 'ORK_ERROR:{"message":"m","details":{"k":1}}'; exit 1`, "", obj{})
	d.ended("failed")
	a := d.attempts("a")[0]
	require.Equal(c, []any{"m", obj{"k": 1.0}}, []any{a["error"], a["details"]})
	for _, told := range []obj{d.get("/v1/jobs/" + a["job"].(string)), d.step("a"), d.units("a")[0]} {
		require.Equal(c, []any{"m", obj{"k": 1.0}}, []any{told["error"], told["details"]})
	}
	d = c.program(`echo 'ORK_ERROR:{"message":"m","details":{"k":1}}'`, "", obj{})
	d.ended("completed")
	require.NotContains(c, d.attempts("a")[0], "details")
}

func programTellsNumbers(c *client) {
	d := c.program(`for n in 3 4; do echo 'ORK_METRIC:{"name":"rows","value":'$n',"labels":{"table":"a"}}'; done`, "", obj{})
	d.ended("completed")
	require.Equal(c, []any{obj{"name": "rows", "labels": obj{"table": "a"}, "count": 2.0,
		"sum": 7.0, "last": 4.0}}, d.attempts("a")[0]["metrics"])
}

func programPrintsBytes(c *client) {
	d := c.program(`printf 'a\377b\n'; head -c 1000000 /dev/zero | tr '\0' x; echo; echo end`, "", obj{})
	d.ended("completed")
	path := "/v1/jobs/" + d.attempts("a")[0]["job"].(string) + "/log"
	require.Eventually(c, func() bool { // a slow store gets the end of it later
		_, _, log := d.send("GET", path, nil)
		return strings.Contains(string(log), "a\uFFFDb") && strings.Contains(string(log), "xxx")
	}, deadline, 20*time.Millisecond)
}

func programEnvironment(c *client) {
	d := c.program(`env | cut -d= -f1 | LC_ALL=C sort | tr '\n' ' ' > names; printf `+
		`'ORK_OUTPUT:"%s"\n' "$(cat names)"; rm names`, "    timeout: 60", obj{})
	var own []string
	for _, name := range strings.Fields(d.ended("completed")["result"].(obj)["a"].(string)) {
		switch {
		case name == "PATH" || name == "HOME" || name == "LANG" || name == "TZ" ||
			name == "TMPDIR" || name == "USER" || strings.HasPrefix(name, "LC_"):
		// set by the shell itself
		case name == "PWD" || name == "_" || name == "OLDPWD" || name == "SHLVL":
		case strings.HasPrefix(name, "TROUPE_"):
		default:
			own = append(own, name)
		}
	}
	require.Equal(c, []string{"EXECUTION_ID", "ORK_ATTEMPT", "ORK_INPUT_JSON", "ORK_RUN_ID",
		"ORK_TASK_ID", "ORK_TASK_NAME", "ORK_WORKFLOW_NAME", "TRACEPARENT",
		"attempt", "command", "max_retries", "run_id", "task_name", "timeout_seconds", "workflow_name"}, own)
}

func pythonRuns(c *client) {
	dir := c.TempDir()
	require.NoError(c, os.WriteFile(filepath.Join(dir, "tasks.py"), []byte(`
from dataclasses import dataclass
from typing import List
from ork import Context, TaskError

@dataclass
class File:
    name: str
    size: int = 1

def discover(count: int = 2): return {"files": [File(name=str(i)) for i in range(count)]}
async def read(item: File, ctx: Context):
    ctx.log.info("reading %s", item.name)
    return {"index": ctx.parallel_index, "size": item.size + int(item.name)}
def total(read: List[dict]): return sum(r["size"] for r in read)
def fail():
    if True: raise TaskError("no luck", {"k": 1})
`), 0o600))
	d := c.dag(fmt.Sprintf(`
profile: ork
nodes:
  discover: {exec: {type: python, file: tasks.py, function: discover, root: %[1]q}}
  read: {exec: {type: python, module: tasks, function: read, root: %[1]q}, depends_on: [discover], each: {items: tasks.discover.output.files}}
  total: {exec: {type: python, file: tasks.py, function: total, root: %[1]q}, depends_on: [read]}`, dir), obj{"count": 3})
	require.Equal(c, obj{"total": 6.0}, d.ended("completed")["result"])
	d = c.dag(fmt.Sprintf("nodes: {a: {exec: {type: python, file: tasks.py, function: fail, root: %q}}}", dir), obj{})
	d.ended("failed")
	require.Equal(c, "no luck", d.attempts("a")[0]["error"])
}

func pythonLargeInput(c *client) {
	dir := c.TempDir()
	require.NoError(c, os.WriteFile(filepath.Join(dir, "f.py"), []byte("def main(text): return len(text)"), 0o600))
	d := c.dag(fmt.Sprintf("profile: ork\nnodes: {a: {exec: {type: python, file: f.py, root: %q}}}",
		dir), obj{"text": strings.Repeat("x", 300_000)})
	require.Equal(c, obj{"a": 300_000.0}, d.ended("completed")["result"])
}

func programInGraph(c *client) {
	d := c.dag(`
start: a
result: out
nodes:
  a: {exec: {type: process, command: cat}, post: {output_key: out}}
edges: []`, obj{"x": 1})
	require.Equal(c, obj{"x": 1.0}, d.ended("completed")["result"])
}
