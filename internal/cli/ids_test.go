package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestAnIDMayBeShortened(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	first := strings.TrimSpace(cmd("task", "start", "approve").stdout)
	short := strings.TrimPrefix(first, "task-")[:16]
	for _, args := range [][]string{{"task", "show", short}, {"task", "history", short},
		{"task", "pause", short}, {"task", "resume", short},
		{"cluster", "shards", "--task", short}, {"task", "signal", short, "decision", "true", "--by", "ada"}, {"task", "watch", short}} {
		got := cmd(args...)
		require.Equal(t, 0, got.code, "%v: %s", args, got.stderr)
	}
	require.Regexp(t, `(?m)^decision +ada .* true$`, cmd("task", "show", short).stdout)
	require.Contains(t, cmd("task", "history", short).stdout, "key decision, by ada")

	second := strings.TrimSpace(cmd("task", "start", "approve").stdout)
	common := "task-" // the prefix of ids made by servers
	got := cmd("task", "cancel", common)
	require.Equal(t, exitUsage, got.code)
	for _, text := range []string{"several task IDs start with " + common, first,
		second, "approve, completed", "use a longer prefix"} {
		require.Contains(t, got.stderr, text)
	}
	require.Contains(t, cmd("task", "show", second).stdout, "running", "nothing was done")
	require.Contains(t, cmd("task", "show", "nope").stderr, `there is no task "nope"`)

	flows := parse[wire.Page[wire.Flow]](t, cmd("flow", "list", "-o", "json").stdout).Items
	require.Contains(t, cmd("flow", "show", flows[0].ID[:30]).stdout, flows[0].Slug)
}

func TestListsReportWhenThereIsMore(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	started := map[string]bool{}
	for range 5 {
		started[strings.TrimSpace(cmd("task", "start", "approve").stdout)] = true
	}
	got := cmd("task", "list", "--limit", "2")
	require.Equal(t, 3, strings.Count(got.stdout, "\n"), got.stdout)
	require.Contains(t, got.stderr, "More items follow. Next page: --cursor ")
	seen := map[string]bool{}
	cursor := ""
	for pages := 1; ; pages++ {
		p := parse[wire.Page[wire.TaskSummary]](t, cmd("task", "list", "--limit", "2", "--cursor", cursor, "-o", "json").stdout)
		for _, task := range p.Items {
			seen[task.ID] = true
		}
		if cursor = p.Next; cursor == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, started, seen)
	all := cmd("task", "list", "--all")
	require.Equal(t, 6, strings.Count(all.stdout, "\n"))
	require.Empty(t, all.stderr)
	require.Equal(t, 2, cmd("task", "list", "--limit", "0").code)
	require.Equal(t, 2, cmd("task", "list", "--all", "--cursor", "x").code)
	require.Equal(t, []any{}, parse[map[string]any](t, cmd("task", "list", "--state", "failed",
		"-o", "json").stdout)["items"], "never null")
}

func TestWorkersQueuesAndJobsAreListed(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "ship.yaml", "start: ship\nnodes:\n  ship: {exec_type: queue, service: ship}\n")
	require.Equal(t, 0, cmd("flow", "apply", path).code)
	task := strings.TrimSpace(cmd("task", "start", "ship").stdout)
	require.Eventually(t, func() bool { return strings.Contains(cmd("queue", "list").stdout, "ship") }, time.Minute, 10*time.Millisecond)
	require.Regexp(t, `(?m)^SERVICE +JOBS +TASKS +WORKERS +OLDEST +AGE\nship +1 +1 +0 +20`, cmd("queue", "list").stdout)
	require.Regexp(t, `(?m)^`+task+` +ship +pending`, cmd("job", "list", "--service", "ship").stdout)
	require.NotContains(t, cmd("job", "list", "--service", "other").stdout, task)

	// A worker that does not end its job before the test ends.
	_, _ = background(t, append([]string{"worker", "--id", "worker-one", "--label", "gpu",
		"--log-level", "error", "--stop-grace", "0s", "--exec", "ship=exec sleep 1000"}, at...)...)
	require.Eventually(t, func() bool {
		return strings.Contains(cmd("job", "list").stdout,
			"worker-one")
	}, time.Minute, 10*time.Millisecond)
	online := regexp.MustCompile(`(?m)^worker-one +online +pull +\d +ship +gpu +20`)
	require.Eventually(t, func() bool { // it may have a job before it is registered
		return online.MatchString(cmd("worker", "list", "--service", "ship").stdout)
	}, time.Minute, 10*time.Millisecond)
	require.NotContains(t, cmd("worker", "list", "--state", "offline").stdout, "worker-one")
	got := cmd("worker", "show", "worker")
	require.Regexp(t, `(?s)Worker: +worker-one\nState: +online\nMode: +pull.*Services: +ship.*`+
		task+` +ship +claimed +worker-one`, got.stdout)
	for _, args := range [][]string{{"worker", "list"}, {"worker", "show", "worker-one"}, {"queue", "list"}, {"job", "list"}} {
		require.True(t, json.Valid([]byte(cmd(append(args, "-o", "json")...).stdout)), args)
	}
	require.Contains(t, cmd("worker", "show", "nobody").stderr, `no worker "nobody" is registered`)
	require.Equal(t, 0, cmd("task", "cancel", task).code)
}

func TestAJobIsShownByWhatItsIDBeginsWith(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "pack.yaml", "start: all\nnodes:\n  all: {kind: foreach, exec_type: queue, "+
		"service: pack, parallel_mode: concurrent, prep: {input_key: $params.items}}\n")
	require.Equal(t, 0, cmd("flow", "apply", path).code)
	task := strings.TrimSpace(cmd("task", "start", "pack", "-p", "items=[\"a\",\"b\"]").stdout)
	require.Eventually(t, func() bool {
		return strings.Count(cmd("job", "list").stdout,
			task) == 4
	}, time.Minute, 10*time.Millisecond, "a task and a job in each row")

	got := cmd("job", "show", task[:20])
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "several job IDs start with "+task[:20]+":\n  "+task+".1.0.1.")
	require.Contains(t, got.stderr, "all#1 unit 1 attempt 1, running\nhint: use a longer prefix")
	for _, id := range []string{task[:20] + ".1.1", task + ".1.1", jobOf(t, cmd("job", "list", "-o", "json").stdout, task+".1.1.")} {
		got := cmd("job", "show", id)
		require.Equal(t, 0, got.code, got.stderr)
		require.Regexp(t, `(?s)^Job: +`+task+`\.1\.1\.1\.\S+\nTask: +`+task+
			`\nStep: +all#1 unit 1 attempt 1\n.*Service: +pack\nState: +pending\nStarted: `+
			`.*Input: +"b"\n`, got.stdout)
	}
	require.Equal(t, "b", parse[map[string]any](t, cmd("job", "show", task+".1.1", "-o", "json").stdout)["input"])
	require.Contains(t, call(t, "__complete", "--", "job", "show", "--server", at[1], "").stdout, task+".1.0.1.")
	for _, id := range []string{"nope", task + ".2", task + ".1.1.1.x"} {
		got := cmd("job", "show", id)
		require.Equal(t, exitFailed, got.code)
		require.Contains(t, got.stderr, `there is no job "`+id+`"`)
	}
	require.Equal(t, 0, cmd("task", "cancel", task).code)
	require.Regexp(t, `(?s)State: +failed\n.*Ended: .*Error: +canceled\n`, cmd("job", "show", task+".1.0").stdout)
}

// jobOf returns the id of a job in a list, from its beginning.
func jobOf(t *testing.T, list, begin string) string {
	t.Helper()
	for _, j := range parse[wire.Page[wire.WaitingJob]](t, list).Items {
		if strings.HasPrefix(j.ID, begin) {
			return j.ID
		}
	}
	require.Fail(t, "no such job", begin)
	return ""
}

func TestAFlowIsDeletedOnceThatIsConfirmed(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	require.Equal(t, 0, cmd("task", "start", "approve").code)
	got := cmd("flow", "delete", "approve")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "confirm it, or set --yes")
	answered := func(answer string) (int, string) {
		var stdout, stderr output
		code := run(t.Context(), append([]string{"flow", "delete", "approve"}, at...), strings.NewReader(answer), &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	code, said := answered("no\n")
	require.Equal(t, 1, code)
	require.Contains(t, said, "the name does not match")
	require.Contains(t, cmd("flow", "list").stdout, "approve")
	code, said = answered("approve\n")
	require.Equal(t, 0, code)
	require.Contains(t, said, "approve deleted with 1 task\n")
	require.NotContains(t, cmd("flow", "list").stdout, "approve")
	require.Equal(t, "double deleted with 0 tasks\n", cmd("flow", "delete", "double", "--force").stdout)
	require.Contains(t, cmd("flow", "delete", "double", "--yes").stderr, "there is no flow")
}
