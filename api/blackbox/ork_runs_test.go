package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

func orkOne(c *client) {
	r := c.ork(sh("a", "echo ok")).start(nil).ends("success")
	run, a := r.read()["run"].(obj), r.task("a")
	require.Equal(c, "success", a["status"])
	require.Equal(c, "process", a["executor"])
	require.Equal(c, 1.0, a["attempt"])
	require.Nil(c, a["output"])
	require.Nil(c, a["error"])
	require.Nil(c, a["parallel_index"])
	require.Equal(c, "manual", run["triggered_by"])
	times := []string{run["created_at"].(string), a["dispatched_at"].(string),
		a["started_at"].(string), a["finished_at"].(string), run["finished_at"].(string)}
	require.IsNonDecreasing(c, times)
	require.True(c, strings.HasSuffix(times[0], "Z"))
}

func orkExit(c *client) {
	r := c.ork(sh("a", "echo why >&2; exit 3")).start(nil).ends("failed")
	require.Equal(c, "exit status 3: why", r.task("a")["error"])
	require.Nil(c, r.task("a")["output"])
	require.Equal(c, "a: exit status 3: why", r.read()["run"].(obj)["error"])
}

func orkChain(c *client) {
	r := c.ork(sh("a", gives(`1`)), sh("b", gives(`2`), "depends_on: [a]"),
		sh("c", gives(`3`), "depends_on: [b]")).start(nil).ends("success")
	require.LessOrEqual(c, r.task("a")["finished_at"].(string), r.task("b")["dispatched_at"].(string))
	require.LessOrEqual(c, r.task("b")["finished_at"].(string), r.task("c")["dispatched_at"].(string))
	require.Equal(c, 3.0, r.task("c")["output"])
	require.Equal(c, []any{"b"}, r.task("c")["depends_on"])
}

// meet returns a shell line that creates one of two files and ends when both exist.
func meet(mine, other string) string {
	return "touch " + mine + "; while [ ! -e " + other + " ]; do sleep 0.05; done"
}

func orkJoin(c *client) {
	f := c.ork(sh("a", meet("a", "b")), sh("b", meet("b", "a")+"; sleep 0.3"), sh("j", "ls", "depends_on: [a, b]"))
	r := f.start(nil).ends("success")
	require.LessOrEqual(c, r.task("b")["finished_at"].(string), r.task("j")["dispatched_at"].(string))
}

func orkSkips(c *client) {
	r := c.ork(sh("a", "exit 1"), sh("b", "touch b", "depends_on: [a]"),
		sh("c", "touch c", "depends_on: [b]"), sh("x", "sleep 0.5; "+gives(`"x"`))).start(nil).ends("failed")
	require.Equal(c, map[string]string{"a": "failed", "b": "skipped", "c": "skipped", "x": "success"}, r.statuses())
	require.Nil(c, r.task("b")["dispatched_at"])
	require.NoFileExists(c, filepath.Join(r.root, "b"))
	require.LessOrEqual(c, r.task("x")["finished_at"].(string), r.read()["run"].(obj)["finished_at"].(string))
}

func orkCleanUp(c *client) {
	echo := `printf ORK_OUTPUT:; cat`
	f := c.ork(sh("a", `[ "$BAD" ] && exit 1; `+gives(`{"y":3}`), "env: {BAD: 1}"), sh("b", "ls", "depends_on: [a]"),
		sh("n", echo, "depends_on: [a, b]", "on_failure: run"), sh("d", echo, "depends_on: [n]"))
	r := f.start(nil).ends("failed")
	require.Equal(c, map[string]string{"a": "failed", "b": "skipped", "n": "success", "d": "success"}, r.statuses())
	require.Equal(c, obj{"a": nil, "b": nil}, r.task("n")["output"])
	require.Equal(c, obj{"n": obj{"a": nil, "b": nil}}, r.task("d")["output"])

	r = c.ork(sh("a", gives("1")+"; echo ORK_OUTPUT:no")).start(nil).ends("success")
	require.Equal(c, 1.0, r.task("a")["output"], "a marked line that is no JSON is only logged")

	f.register(sh("a", gives(`{"y":3}`)), sh("n", echo, "depends_on: [a]", "on_failure: run"))
	r = f.start(nil).ends("success")
	require.Equal(c, obj{"a": obj{"y": 3.0}}, r.task("n")["output"])
}

func orkRetries(c *client) {
	r := c.ork(sh("a", `echo $ORK_ATTEMPT >> tries; [ $ORK_ATTEMPT = 3 ]`, "retries: 2")).start(nil).ends("success")
	require.Equal(c, 3.0, r.task("a")["attempt"])
	require.Nil(c, r.task("a")["error"], "it has succeeded")
	text, err := os.ReadFile(filepath.Join(r.root, "tries"))
	require.NoError(c, err)
	require.Equal(c, "1\n2\n3\n", string(text))

	r = c.ork(sh("a", "exit 4", "retries: 2"), sh("b", "ls", "depends_on: [a]")).start(nil).ends("failed")
	require.Equal(c, 3.0, r.task("a")["attempt"])
	require.Equal(c, 2.0, r.task("a")["max_retries"])
	require.Equal(c, "skipped", r.task("b")["status"])
}

func orkRetryDelay(c *client) {
	r := c.ork(sh("a", `date +%s.%N >> tries; [ $ORK_ATTEMPT = 2 ]`, "retries: 1", "retry_delay: 5")).start(nil)
	r.until("it waits for its retry", func() bool { a := r.task("a"); return a["status"] == "pending" && a["retry_at"] != nil })
	r.ends("success")
	text, err := os.ReadFile(filepath.Join(r.root, "tries"))
	require.NoError(c, err)
	lines := strings.Fields(string(text))
	require.Len(c, lines, 2)
	first, second := seconds(c, lines[0]), seconds(c, lines[1])
	require.GreaterOrEqual(c, second-first, 4.9)
}

func seconds(c *client, text string) float64 {
	d, err := time.ParseDuration(text + "s")
	require.NoError(c, err)
	return d.Seconds()
}

func orkTimeout(c *client) {
	r := c.ork(sh("a", "echo $$ > pid; sleep 300", "timeout: 3", "retries: 1")).start(nil).ends("failed")
	require.Equal(c, "execution timeout", r.task("a")["error"])
	require.Equal(c, 2.0, r.task("a")["attempt"])
	c.gone(filepath.Join(r.root, "pid"))
}

// gone waits until the process with the number in a file has ended.
func (c *client) gone(file string) {
	c.Helper()
	text, err := os.ReadFile(file)
	require.NoError(c, err)
	require.Eventually(c, func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(string(text)))
		return os.IsNotExist(err)
	}, deadline, 20*time.Millisecond)
}

func orkParallel(c *client) {
	r := c.ork(sh("a", `echo "ORK_OUTPUT:[$ORK_PARALLEL_INDEX,$ORK_PARALLEL_COUNT]"`, "parallel: 4")).start(nil).ends("success")
	all := r.tasks("a")
	require.Len(c, all, 4)
	for i, t := range all {
		require.Equal(c, []any{float64(i), 4.0}, []any{t["parallel_index"], t["parallel_count"]})
		require.Equal(c, []any{float64(i), 4.0}, t["output"])
	}
	r = c.ork(sh("discover", waits("go")+"; "+gives(`{"count":10}`)),
		sh("p", "ls", "parallel: discover.count", "depends_on: [discover]")).start(nil)
	require.Empty(c, r.tasks("p"), "nobody knows how many there will be")
	r.touch("go")
	r.ends("success")
	require.Len(c, r.tasks("p"), 10)
	require.LessOrEqual(c, r.task("discover")["finished_at"].(string), r.task("p")["dispatched_at"].(string))
}

func orkForeach(c *client) {
	f := c.orkIn(c.TempDir())
	f.file("slow.sh", "#!/bin/sh", `[ "$ORK_PARALLEL_INDEX" = 0 ] && sleep 0.5`, `echo "ORK_OUTPUT:$ORK_ITEM_JSON"`)
	f.register(sh("d", gives(`{"files":["x","y","z"]}`)), "f: {executor: process, file: slow.sh, foreach: d.files, depends_on: [d]}",
		sh("agg", "printf ORK_OUTPUT:; cat", "depends_on: [f]"))
	r := f.start(nil).ends("success")
	require.Equal(c, obj{"f": []any{"x", "y", "z"}}, r.task("agg")["output"])
	for i, t := range r.tasks("f") {
		require.Equal(c, []string{"x", "y", "z"}[i], t["params"].(obj)["item"])
	}
}

func orkConcurrency(c *client) {
	line := `mkdir -p on; touch on/$ORK_PARALLEL_INDEX; ls on | wc -l >> most; sleep 0.3; rm on/$ORK_PARALLEL_INDEX`
	r := c.ork(sh("d", gives(`{"n":[1,2,3,4,5,6,7,8,9,10,11,12]}`)),
		sh("f", line, "foreach: d.n", "depends_on: [d]", "concurrency: 4")).start(nil).ends("success")
	text, err := os.ReadFile(filepath.Join(r.root, "most"))
	require.NoError(c, err)
	counts := strings.Fields(string(text))
	require.Len(c, counts, 12)
	for _, n := range counts {
		require.Contains(c, []string{"1", "2", "3", "4"}, n)
	}
}

func orkForeachEnds(c *client) {
	tasks := func(value string) []string {
		return []string{sh("d", gives(`{"v":`+value+`}`)), sh("f", `[ "$ORK_PARALLEL_INDEX" != 1 ]`, "foreach: d.v", "depends_on: [d]"),
			sh("agg", "printf ORK_OUTPUT:; cat", "depends_on: [f]")}
	}
	r := c.ork(tasks(`[]`)...).start(nil).ends("success")
	require.Equal(c, []any{}, r.task("f")["output"])
	require.Equal(c, obj{"f": []any{}}, r.task("agg")["output"])

	r = c.ork(tasks(`7`)...).start(nil).ends("failed")
	require.Equal(c, map[string]string{"d": "success", "f": "failed", "agg": "skipped"}, r.statuses())
	require.Equal(c, "preprocessing_error", r.task("f")["reason"])
	require.Nil(c, r.task("f")["parallel_index"], "there are no instances")

	r = c.ork(tasks(`[1,2,3]`)...).start(nil).ends("failed")
	var states []any
	for _, t := range r.tasks("f") {
		states = append(states, t["status"])
	}
	require.Equal(c, []any{"success", "failed", "success"}, states)
	require.Equal(c, "skipped", r.task("agg")["status"])
}

func orkMerged(c *client) {
	r := c.ork(sh("a", gives(`{"y":3}`)), sh("b", "printf ORK_OUTPUT:; cat", "depends_on: [a]",
		"input: {x: 1, z: 5}")).start(obj{"x": 2}).ends("success")
	require.Equal(c, obj{"x": 2.0, "z": 5.0, "a": obj{"y": 3.0}}, r.task("b")["output"])
}

func orkBound(c *client) {
	r := c.ork(sh("a", gives(`{"deep":{"n":7},"s":"t"}`)),
		sh("b", "printf ORK_OUTPUT:; cat", "depends_on: [a]",
			"inputs: {k: {const: [1, two]}, n: {ref: tasks.a.output.deep.n}, all: {ref: tasks.a.output}}"),
		sh("bad", "ls", "depends_on: [a]", "inputs: {n: {ref: tasks.a.output.none}}")).start(nil).ends("failed")
	require.Equal(c, obj{"k": []any{1.0, "two"}, "n": 7.0, "all": obj{"deep": obj{"n": 7.0}, "s": "t"}}, r.task("b")["output"])
	require.Equal(c, "failed", r.task("bad")["status"])
	require.Contains(c, r.task("bad")["error"], "none")
}
