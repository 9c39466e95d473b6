package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const audit = `
mode: dag
nodes:
  read: {route: direct}
  check: {route: direct, depends_on: [read]}
  file: {route: direct, depends_on: [check], prep: {input_map: {year: $run.year}}}
`

func TestAFailedTaskIsRetriedWithAnotherVersion(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	got := cmd("flow", "apply", write(t, "audit.yaml", audit))
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	id := strings.TrimSpace(cmd("task", "start", "audit", "-p", "year=2025").stdout)
	require.Equal(t, 0, cmd("task", "complete", id, "read", "1").code)
	require.Equal(t, 0, cmd("task", "complete", id, "check", "--error", "wrong sum").code)
	require.Equal(t, 1, cmd("task", "watch", id).code)
	mended := strings.Replace(audit, "depends_on: [read]", "depends_on: [read], prep: {input_map: {sum: $deps.read}}", 1)
	got = cmd("flow", "apply", write(t, "audit.yaml", mended))
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)

	got = cmd("task", "retry", id, "--version", "newest", "--dry-run")
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Regexp(t, `(?s)^A new task of version 2 from `+id+
		`: 1 step kept, \d steps? run again\n.*read +kept.*check +run again +the node `+
		`changed in that version`, got.stdout)
	got = cmd("task", "retry", id, "--version", "2", "-p", "year=2026")
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	next, _, _ := strings.Cut(got.stdout, " ")
	require.NotEqual(t, id, next)
	require.Equal(t, 0, cmd("task", "complete", next, "check", "2").code)
	require.Regexp(t, `Forked from: +`+id, cmd("task", "show", next).stdout)
	require.Contains(t, cmd("task", "show", next).stdout, `{"year":2026}`)
	require.Equal(t, 0, cmd("task", "complete", next, "file", "3").code)
	require.Equal(t, 0, cmd("task", "watch", next).code)

	require.Equal(t, 2, cmd("task", "retry", id, "--version", "new").code)
	got = cmd("task", "retry", next, "--from", "nowhere")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "the flow has no node nowhere to go on from")
}

func TestParamsOfARetryAreOfTheTypesThatItsVersionDeclares(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	definition := "inputs: {sku: text, note: any = 0}\nstart: x\nnodes:\n  x: {func: nobody_knows}\n"
	require.Equal(t, 0, cmd("flow", "apply", write(t, "stock.yaml", definition)).code)
	id := strings.TrimSpace(cmd("task", "start", "stock", "-p", "sku=1").stdout)
	require.Equal(t, 1, cmd("task", "watch", id).code)
	for _, version := range [][]string{nil, {"--version", "1"}, {"--version", "newest"}} {
		got := cmd(append([]string{"task", "retry", id, "-p", "sku=7", "-p", `note:="8"`}, version...)...)
		require.Equal(t, 0, got.code, got.stderr)
		next, _, _ := strings.Cut(got.stdout, " ")
		require.Contains(t, cmd("task", "show", next).stdout, `{"note":"8","sku":"7"}`, "%v", version)
	}
	require.Equal(t, exitUsage, cmd("task", "retry", id, "-p", "sku:=x").code)
}

func TestATaskIsDoneAgainInANewOne(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	id := strings.TrimSpace(cmd("task", "start", "double", "-p", "n=21").stdout)
	require.Equal(t, 0, cmd("task", "watch", id).code)
	got := cmd("task", "rerun", id, "-p", "n=4", "--wait")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `Result: +8\n`, got.stdout)
	got = cmd("task", "rerun", id, "--version", "newest")
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `^\S+  rerun of `+id+` with version 1\n$`, got.stdout)
	next, _, _ := strings.Cut(got.stdout, " ")
	require.Regexp(t, `Forked from: +`+id, cmd("task", "show", next).stdout)
	require.Equal(t, exitUsage, cmd("task", "rerun", id, "--version", "new").code)
	got = cmd("task", "rerun", id, "--params-file", write(t, "null.json", "null"), "-p", "n=4")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "-p needs params that are a JSON object")

	require.Equal(t, 0, cmd("task", "watch", next).code)
	got = cmd("task", "compare", id, next)
	require.Equal(t, 0, got.code, got.stderr)
	require.Regexp(t, `(?s)A  `+id+`  double v1  completed.*B  `+next+
		`.*1 equal, 0 different, 0 only in A, 0 only in B\n.*double +completed +completed`, got.stdout)
	other := strings.TrimSpace(cmd("task", "start", "double", "-p", "n=3").stdout)
	require.Equal(t, 0, cmd("task", "watch", other).code)
	require.Regexp(t, `double +completed +completed .*output: 42 / 6\n`, cmd("task", "compare", id, other, "--different").stdout)
}

func TestOneStepIsHeldAndRetried(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Equal(t, 0, cmd("flow", "apply",
		write(t, "apart.yaml", "mode: dag\non_error: continue\nnodes:\n  a: {route: direct}\n  "+
			"b: {route: direct}\n  c: {route: direct, depends_on: [a]}\n")).code)
	id := strings.TrimSpace(cmd("task", "start", "apart").stdout)
	require.Equal(t, 0, cmd("task", "pause", id, "--node", "c").code)
	require.Regexp(t, `c +executor +created +blocked`, cmd("task", "show", id, "--steps").stdout)
	require.Equal(t, 0, cmd("task", "complete", id, "a", "--error", "no").code)
	require.Equal(t, 0, cmd("task", "complete", id, "b", "--error", "no").code)
	require.Equal(t, 1, cmd("task", "watch", id).code)
	got := cmd("task", "retry", id, "--node", "a")
	require.Equal(t, 0, got.code, "%s%s", got.stdout, got.stderr)
	require.Equal(t, 0, cmd("task", "complete", id, "a", "1").code)
	require.Equal(t, 0, cmd("task", "complete", id, "c", "1").code)
	require.Equal(t, 1, cmd("task", "watch", id).code, "b has failed")
	require.Equal(t, 2, cmd("task", "retry", id, "--node", "a", "--version", "newest").code)
	require.Equal(t, 1, cmd("task", "resume", id, "--node", "c").code)
}
