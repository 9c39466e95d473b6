package program_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
)

// tasks are typical functions of users.
const tasks = `
import datetime, enum, sys, uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Dict, List, Optional
from ork import Context, TaskError, task
from ork_sdk import BigQueryJob, CustomHttp
import neighbour

class Color(enum.Enum):
    RED = "red"

@dataclass
class Order:
    id: int
    at: Optional[datetime.date] = None
    lines: Optional[List["Order"]] = None

def nothing(): pass
def one(order): return order
def default(a: int = 1): return a
def typed(order: Order): return [type(order).__name__, order]
def two(a, b=2): return [a, b]
def rest(a, **others): return [a, others]
def only(a, b=3, /, *args, c=4): return [a, b, c]
def kinds(color: Color, price: Decimal, when: datetime.datetime, ids: Dict[str, uuid.UUID]):
    return [color is Color.RED, price + 1, when.year, {k: v.int for k, v in ids.items()}]
def optional(order: Optional[Order], orders: List[Order] = ()): return [type(order).__name__, [o.id for o in orders]]
def results(): return {"d": datetime.date(2026, 1, 2), "set": {3, 1, 2}, "dec": Decimal("1.10"), "e": Color.RED, "u": uuid.UUID(int=1), 1: (1, 2), "o": Order(7)}
async def later(a): return a + 1
@task
def told(x, ctx: Context): return [x, ctx.attempt, ctx.task_name, ctx.parallel_index, ctx.parallel_count]
@task(name="other")
def untyped(ctx): return ctx.run_id
def near(): return neighbour.value
def job(): return BigQueryJob("p", "j")
def jobs(): return [CustomHttp("http://x"), CustomHttp("http://y")]
def noisy():
    print("no end", end="")
    return 1
def nan(): return float("nan")
def generator(): yield 1
def boom(): raise ValueError("boom")
def lines(): raise ValueError("first\n  second\n")
def words(): raise TaskError("m", {"k": 1})
def code(): sys.exit(7)
def listen(): return sys.stdin.read()
def main(): return "main"
`

func taskFolder(t *testing.T) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in/tasks.py"), tasks, 0o644)
	write(t, filepath.Join(dir, "in/neighbour.py"), "value = 5", 0o644)
	return dir
}

// interpreters returns the default one, and those named by TROUPE_PYTHONS: python3.8,python3.13.
func interpreters() []string {
	return append([]string{""}, strings.FieldsFunc(os.Getenv("TROUPE_PYTHONS"), func(r rune) bool { return r == ',' })...)
}

func TestPythonResults(t *testing.T) {
	dir := taskFolder(t)
	for function, tt := range map[string]struct{ input, want string }{
		"nothing":   {`{"a":1}`, ""},
		"one":       {`{"a":1}`, `{"a": 1}`},
		"one ":      {`{"order":1,"more":2}`, "1"},
		"one  ":     {`[1]`, "[1]"},
		"default":   {`{}`, "1"},
		"default ":  {`{"a":5}`, "5"},
		"default  ": {`null`, "1"},
		"typed": {`{"id":1,"at":"2026-01-02","unknown":1,"lines":[{"id":2}]}`,
			`["Order", {"id": 1, "at": "2026-01-02", "lines": [{"id": 2, "at": null, "lines": null}]}]`},
		"typed ": {`{"order":{"id":1}}`, `["Order", {"id": 1, "at": null, "lines": null}]`},
		"two":    {`{"a":1,"c":3}`, "[1, 2]"},
		"rest":   {`{"a":1,"c":3}`, `[1, {"c": 3}]`},
		"only":   {`{"a":1,"c":3}`, "[1, 3, 3]"},
		"kinds": {`{"color":"red","price":1.10,"when":"2026-01-02T03:04:05Z","ids":{"a":"00000000-0000-0000-0000-000000000001"}}`,
			`[true, "2.1", 2026, {"a": 1}]`},
		"optional":  {`{"order":{"id":1},"orders":[{"id":2}]}`, `["Order", [2]]`},
		"optional ": {`{"order":null}`, `["NoneType", []]`},
		"results": {`{}`, `{"d": "2026-01-02", "set": [1, 2, 3], "dec": "1.10", "e": "red", ` +
			`"u": "00000000-0000-0000-0000-000000000001", "1": [1, 2], "o": {"id": 7, "at": ` +
			`null, "lines": null}}`},
		"later":   {`{"a":1}`, "2"},
		"told":    {`{"x":1}`, `[1, 2, "node", 0, 3]`},
		"untyped": {`{}`, `"run"`},
		"near":    {`{}`, "5"},
		"job": {`{}`, `{"deferred": [{"service_type": "bigquery", "job_id": "j", "project": ` +
			`"p", "location": "US"}]}`},
		"noisy":  {`{}`, "1"},
		"listen": {`{"a":1}`, `"{\"a\":1}\n"`},
		"":       {`{}`, `"main"`},
	} {
		for _, python := range interpreters() {
			t.Run(function+" "+python, func(t *testing.T) {
				res := runIn(t, dir, program.Job{Type: flow.ExecPython, Input: json.RawMessage(tt.input),
					Program: &flow.Program{File: "in/tasks.py", Function: strings.TrimSpace(function), Python: python},
					Facts:   program.Facts{Run: "run", Step: "node", Attempt: 2, Units: 3, Many: true}})
				require.Empty(t, res.Error)
				require.Equal(t, tt.want, string(res.Output))
			})
		}
	}
}

func TestPythonSignatures(t *testing.T) {
	dir := taskFolder(t)
	for _, python := range interpreters() {
		t.Run(python, func(t *testing.T) {
			res := runIn(t, dir, program.Job{Type: flow.ExecPython, Inspect: true,
				Program: &flow.Program{File: "in/tasks.py", Python: python}})
			require.Empty(t, res.Error)
			var told struct {
				Types     map[string]json.RawMessage
				Functions map[string]json.RawMessage
			}
			require.NoError(t, json.Unmarshal(res.Output, &told))
			require.JSONEq(t, `{"id": "int", "at": "date?", "lines": ["types.Order"]}`, string(told.Types["Order"]))
			require.JSONEq(t, `{"input_type": {"order": "types.Order?", "orders": `+
				`["types.Order"]}, "required": ["order"], "output_type": null}`,
				string(told.Functions["optional"]))
			require.JSONEq(t, `{"input_type": {"a": null}, "required": ["a"], "output_type": `+
				`null, "more": true}`, string(told.Functions["rest"]))
			require.JSONEq(t, `{"input_type": {"x": null}, "required": ["x"], "output_type": null}`, string(told.Functions["told"]))
		})
	}
}

func TestPythonJobsElsewhereAreAList(t *testing.T) {
	res := runIn(t, taskFolder(t), program.Job{Type: flow.ExecPython, Program: &flow.Program{File: "in/tasks.py", Function: "jobs"}})
	var out struct{ Deferred []map[string]any }
	require.NoError(t, json.Unmarshal(res.Output, &out))
	require.Len(t, out.Deferred, 2)
	require.Equal(t, "custom_http", out.Deferred[1]["service_type"])
	require.Equal(t, "http://y", out.Deferred[1]["url"])
}

func TestPythonFailures(t *testing.T) {
	dir := taskFolder(t)
	for function, want := range map[string]string{
		"boom":      "exit status 1: ValueError: boom",
		"lines":     "ValueError: first\n  second",
		"words":     "m",
		"code":      "exit status 7",
		"nan":       "exit status 1: ValueError: the result is no JSON: Out of range float values are not JSON compliant",
		"generator": "exit status 1: TypeError: a result of type generator is no JSON",
		"none":      "exit status 1: AttributeError: there is no function 'none' in",
	} {
		res := runIn(t, dir, program.Job{Type: flow.ExecPython, Program: &flow.Program{File: "in/tasks.py", Function: function}})
		require.True(t, strings.HasPrefix(res.Error, want), "%s: %s", function, res.Error)
		require.Nil(t, res.Output)
	}
	res := runIn(t, dir, program.Job{Type: flow.ExecPython, Program: &flow.Program{File: "in/none.py"}})
	require.Contains(t, res.Error, `there is no file "in/none.py" in`)
}

func TestPythonModules(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "pkg/mod.py"), "def main(a): return a", 0o644)
	write(t, filepath.Join(dir, "ork.py"), "class Context: pass\nown = True", 0o644)
	write(t, filepath.Join(dir, "own.py"), "import ork\ndef main(): return ork.own", 0o644)
	write(t, filepath.Join(dir, "pyproject.toml"), "", 0o644)
	res := runIn(t, dir, program.Job{Type: flow.ExecPython, Input: json.RawMessage(`{"a":1}`), Program: &flow.Program{Module: "pkg.mod"}})
	require.Equal(t, "1", string(res.Output), res.Error)
	res = runIn(t, dir, program.Job{Type: flow.ExecPython, Program: &flow.Program{Module: "own"}})
	require.Equal(t, "true", string(res.Output), "an installed package of the same name wins: %s", res.Error)
}

func TestPythonGetsALargeInput(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f.py"), "def main(text): return len(text)", 0o644)
	input := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 300_000))
	res := runIn(t, dir, program.Job{Type: flow.ExecPython, Input: json.RawMessage(input), Program: &flow.Program{File: "f.py"}})
	require.Equal(t, "300000", string(res.Output), res.Error)
}

// Here uv is a script that prints its arguments.
func TestPythonRunsByUV(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "pyproject.toml"), "", 0o644)
	write(t, filepath.Join(dir, "f.py"), "", 0o644)
	write(t, filepath.Join(bin, "uv"), "#!/bin/sh\necho \"ORK_OUTPUT:\\\"$1 $2 $3 ${UV_CACHE_DIR:+cache}\\\"\"", 0o755)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	res := runIn(t, dir, program.Job{Type: flow.ExecPython, Program: &flow.Program{File: "f.py"}})
	require.Equal(t, `"run python3 -u cache"`, string(res.Output), res.Error)
}

// A version manager may be slow to name its interpreter.
func TestInterpreterLookupEndsWithItsTask(t *testing.T) {
	dir, shims := taskFolder(t), filepath.Join(t.TempDir(), "shims")
	write(t, filepath.Join(shims, "python3"), "#!/bin/sh\necho $$ > asked\nsleep 1000\n", 0o755)
	t.Setenv("PATH", shims+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan program.Result)
	go func() {
		done <- program.New(program.Options{Dir: dir}).Run(ctx, program.Job{Type: flow.ExecPython,
			Program: &flow.Program{File: "tasks.py", Root: "in"}})
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "in/asked"))
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	select {
	case res := <-done:
		require.Equal(t, context.Canceled.Error(), res.Error)
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on asking")
	}
}

// models are functions whose arguments are pydantic models, as in users' code.
const models = `
from datetime import date
from typing import List, Optional
from pydantic import BaseModel, Field
from ork import Context, task

class Line(BaseModel):
    sku: str
    n: int = Field(gt=0)

class Order(BaseModel):
    id: int
    day: date
    lines: List[Line]
    note: Optional[str] = None

@task
def total(order: Order, ctx: Context, more: Optional[Order] = None) -> Order:
    assert more is None
    return order.model_copy(update={"id": sum(line.n for line in order.lines) + ctx.attempt})
`

func TestPythonModels(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "models.py"), models, 0o644)
	run := func(input string, inspect bool) program.Result {
		return runIn(t, dir, program.Job{Type: flow.ExecPython, Inspect: inspect, Input: json.RawMessage(input),
			Program: &flow.Program{File: "models.py", Function: "total"}, Facts: program.Facts{Attempt: 1}})
	}
	res := run(`{"order":{"id":"7","day":"2026-01-02","lines":[{"sku":"a","n":2},{"sku":"b","n":"3"}]},"more":null}`, false)
	if strings.Contains(res.Error, "No module named 'pydantic'") {
		t.Skip("pydantic is not installed here")
	}
	require.Empty(t, res.Error)
	require.JSONEq(t, `{"id":6,"day":"2026-01-02","lines":[{"sku":"a","n":2},{"sku":"b","n":3}],"note":null}`, string(res.Output))
	wrong := run(`{"order":{"id":1,"day":"2026-01-02","lines":[{"sku":"a","n":0}]}}`, false).Error
	require.Contains(t, wrong, "ValidationError: 1 validation error for Order\nlines.0.n\n  Input should be greater than 0")
	told := run("null", true)
	require.Empty(t, told.Error)
	require.JSONEq(t, `{"types":{"Order":{"id":"int","day":"date","lines":["types.Line"],"note":"str?"},"Line":{"sku":"str","n":"int"}},
		"functions":{"total":{"input_type":{"order":"types.Order","more":"types.Order?"},"required":["order"],"output_type":"types.Order"}}}`, string(told.Output))
}
