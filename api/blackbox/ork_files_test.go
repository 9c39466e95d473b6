package blackbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// writesDown is a program that records its arguments.
var writesDown = []string{"#!/bin/sh", `line=$(for argument in "$@"; do printf '[%s]' "$argument"; done)`, `echo "$line" >> ../calls`}

// dbt copies a dbt project and installs a fake dbt program in the folder of the workflow.
func (f *orkFlow) dbt(project string) {
	f.Helper()
	folder := filepath.Join(f.root, "transform")
	require.NoError(f, os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "dialect", "ork", "dbt", "testdata", project))))
	f.file("transform/dbt", writesDown...)
	f.file("ork.yaml", "executors:", "  dbt: {type: dbt, config: {profiles_dir: profiles, target: prod eu}}")
}

func orkDbt(c *client) {
	for project, sales := range map[string]string{"plain": "fct_sales", "parsed": "fct_sales.v2"} {
		f := c.orkIn(c.TempDir())
		f.dbt(project)
		f.lead = "import: [{dbt: ./transform, models: [staging.stg_orders, marts.core.dim_*, marts.fct_sales]}]\n"
		f.register(sh("extract", "ls"), "dbt.staging.stg_orders: {depends_on: [extract]}",
			"test: {executor: dbt-test, config: {models: [staging.stg_orders, marts.fct_sales], "+
				"threads: 2}, depends_on: [dbt.marts.fct_sales]}")
		r := f.start(nil).ends("success")
		needs := map[string][]any{}
		for _, t := range objects(c, r.read()["tasks"]) {
			needs[t["name"].(string)] = t["depends_on"].([]any)
		}
		require.Equal(c, map[string][]any{"extract": {}, "dbt.staging.stg_orders": {"extract"},
			"dbt.marts.core.dim_customers": {"dbt.staging.stg_orders"},
			"dbt.marts.fct_sales":          {"dbt.staging.stg_orders", "dbt.marts.core.dim_customers"},
			"test":                         {"dbt.marts.fct_sales"}}, needs, project)
		const options = "[--profiles-dir][profiles][--target][prod eu]"
		require.Equal(c, []string{"[run][--models][stg_orders]" + options,
			"[run][--models][dim_customers]" + options, "[run][--models][" + sales + "]" + options,
			"[test][--models][staging.stg_orders][marts.fct_sales]" + options + "[--threads][2]"},
			strings.Split(strings.TrimSpace(r.written("calls")), "\n"), project)
	}
}

// orkDbtElsewhere registers a workflow that consists only of models from two folders.
func orkDbtElsewhere(c *client) {
	first, second := c.orkIn(c.TempDir()), c.orkIn(c.TempDir())
	second.name = first.name
	for _, f := range []*orkFlow{first, second} {
		f.dbt("plain")
		f.lead = "import: [{dbt: ./transform, models: [stg_orders]}]\n"
	}
	require.Equal(c, []any{"created", "unchanged"}, []any{first.register()["outcome"], second.register()["outcome"]})
}

func orkDbtWrong(c *client) {
	f := c.orkIn(c.TempDir())
	f.dbt("plain")
	f.lead = "import: [{dbt: transform, models: [fct_sales, nothing.*]}]\n"
	status, answer := f.tryRegister(sh("extract", "ls"))
	require.Equal(c, []any{400, "import[0].models[1]"}, []any{status, answer["path"]})
	require.Contains(c, answer["message"], `"nothing.*" is no model, and no folder with models`)

	f.lead = "import: [{dbt: transform}]\n"
	f.file("transform/models/marts/fct_sales.sql", "select *", "from {{ ref(var('orders')) }}")
	status, answer = f.tryRegister(sh("extract", "ls"))
	require.Equal(c, 400, status)
	problem := answer["problems"].([]any)[0].(obj)
	require.Equal(c, []any{"transform/models/marts/fct_sales.sql", 2.0, 9.0}, []any{problem["file"], problem["line"], problem["column"]})
	require.Contains(c, answer["message"], "transform/models/marts/fct_sales.sql:2:9: only dbt knows what this refers to")

	outside := c.orkIn(c.TempDir())
	require.NoError(c, os.Symlink(filepath.Join(f.root, "transform"), filepath.Join(outside.root, "transform")))
	outside.lead = f.lead
	status, answer = outside.tryRegister(sh("extract", "ls"))
	require.Equal(c, 400, status)
	require.NotContains(c, answer["message"], "only dbt knows", "a link leads nowhere outside of the workflow's folder")
}

func orkCustom(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("executors/shout.py", "from dataclasses import dataclass",
		"from ork import Context, executor", "@dataclass", "class Config:", "    word: str",
		"    times: int = 1",
		"@executor", "class Shout:", "    def __init__(self, config: Config):", "        self.text = config.word * config.times",
		"    def run(self, config_file: str, ctx: Context, upstream: dict = {}):",
		"        return {'text': self.text, 'file': open(config_file).read().strip(), 'task': ctx.task_name, 'upstream': upstream}")
	f.file("texts/a.txt", "hello")
	f.file("ork.yaml", "executors:", "  shout:", "    type: executors.shout:Shout", "    config: {word: 'ho${x}', times: 2}")
	f.register(sh("first", gives(`{"n":1}`)),
		"a-b: {executor: shout, config_file: texts/a.txt, depends_on: [first]}",
		"c: {executor: shout, config_file: texts/a.txt, config: {times: 1}}")
	r := f.start(nil).ends("success")
	require.Equal(c, obj{"text": "ho${x}ho${x}", "file": "hello", "task": "a-b",
		"upstream": obj{"first": obj{"n": 1.0}}}, r.task("a-b")["output"])
	require.Equal(c, obj{"text": "ho${x}", "file": "hello", "task": "c", "upstream": obj{}}, r.task("c")["output"])

	status, answer := f.tryRegister("a: {executor: shut, config_file: texts/a.txt}", "b: {executor: shout, config_file: texts/b.txt}")
	require.Equal(c, 400, status)
	require.Contains(c, answer["message"], "Unknown executor type: shut: did you mean shout?")
	require.Contains(c, answer["message"], "task b file not found at texts/b.txt")
}

func orkNamedWorkers(c *client) {
	url := orkWorker(c, func(obj) (int, any) { return 200, obj{"status": "success", "output": 7} })
	f := c.orkIn(c.TempDir())
	f.file("workers.yaml", "workers:", "  far: {url: '"+url+"'}", "  hasty: {timeout: 1, service_account: someone}", "default: hasty")
	answer := f.register("a: {executor: worker, worker: far, command: x}",
		sh("b", "sleep 60", "worker: hasty"), sh("c", "ls", "timeout: 600"))
	warning := answer["warnings"].([]any)[0].(obj)
	require.Equal(c, []any{"workers.yaml", "workers.hasty.service_account", 3.0}, []any{warning["file"], warning["path"], warning["line"]})
	r := f.start(nil).ends("failed")
	require.Equal(c, map[string]string{"a": "success", "b": "failed", "c": "success"}, r.statuses())
	require.Equal(c, []any{7.0, "execution timeout"}, []any{r.task("a")["output"], r.task("b")["error"]})
}
