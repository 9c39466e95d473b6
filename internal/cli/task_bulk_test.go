package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestManyTasksArePickedByAFilter(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	for _, customer := range []string{"7", "7", "8"} {
		require.Equal(t, 0, cmd("task", "start", "approve", "--label", "customer="+customer).code)
	}
	got := cmd("task", "pause", "--filter", "flow=approve")
	require.Equal(t, exitUsage, got.code, "nobody confirmed it")
	require.Contains(t, got.stderr, "Pause 3 tasks? Type yes to confirm: ")
	require.Contains(t, got.stderr, "3 tasks left unchanged")

	said := func(answer string, args ...string) result {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(args, at...), strings.NewReader(answer), &stdout, &stderr)
		return result{code, stdout.String(), stderr.String()}
	}
	got = said("no\n", "task", "pause", "--filter", "flow=approve")
	require.Equal(t, 1, got.code)
	got = said("yes\n", "task", "pause", "--filter", "flow=approve&label=customer:7")
	require.Equal(t, []any{0, "2 tasks: 2 paused\n"}, []any{got.code, got.stdout}, got.stderr)
	got = cmd("task", "pause", "--filter", "since=1h", "--filter", "state=running", "--yes")
	require.Equal(t, 1, got.code, "two refuse it")
	require.Regexp(t, `(?s)^3 tasks: 1 paused, 2 rejected\n\nTASK +REASON|^3 tasks: 1 `+
		`paused, 2 rejected\nTASK +REASON`, got.stdout)
	done := parse[wire.BulkResult](t, cmd("task", "resume", "--filter", "flow=approve", "-y", "-o", "json").stdout)
	require.Equal(t, []int{3, 3, 0}, []int{done.Tasks, done.Changed, done.Failed})
	require.Equal(t, "3 tasks: 3 canceled\n", cmd("task", "cancel", "--force", "--filter", "flow=approve", "--yes").stdout)
	done = parse[wire.BulkResult](t, cmd("task", "rerun", "--filter", "flow=approve&label=customer:7", "-y", "-o", "json").stdout)
	require.Equal(t, []int{2, 2, 0}, []int{done.Tasks, done.Changed, done.Failed})
	require.Len(t, done.Started, 2)
	require.Equal(t, "3 tasks: 3 forked\n", cmd("task", "retry", "--from", "ask", "--filter", "flow=approve", "-y").stdout)
	require.Equal(t, "5 tasks: 5 canceled\n", cmd("task", "cancel", "--force", "--filter", "flow=approve", "--yes").stdout)
	got = cmd("task", "retry", "--filter", "flow=approve")
	require.Equal(t, result{0, "", "No tasks to retry.\n"}, got)

	for _, args := range [][]string{{"cancel"}, {"cancel", "x", "--filter", "flow=approve"},
		{"pause", "--node", "ask", "--filter", "flow=approve"},
		{"retry", "--filter", "flow=approve", "--version", "newest"},
		{"rerun", "--filter", "flow=approve", "--wait"}, {"rerun"},
		{"retry", "--filter", "version=new"}, {"retry", "--filter", "since=once"}} {
		require.Equal(t, exitUsage, cmd(append([]string{"task"}, args...)...).code, args)
	}
	require.Contains(t, cmd("task", "cancel", "--filter", "flwo=approve").stderr, `unknown filter "flwo"; did you mean flow?`)
}
