package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestATaskIsStartedForEachValueOfAFile(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	var lines strings.Builder
	for n := range 1200 {
		fmt.Fprintf(&lines, "{\"n\": %d}\n", n)
	}
	file := write(t, "numbers.jsonl", lines.String())
	got := cmd("task", "start", "double", "--each", file, "--key", "once", "--label", "lot=1")
	require.Equal(t, 0, got.code, got.stderr)
	ids := strings.Fields(got.stdout)
	require.Len(t, ids, 1200)
	task := parse[wire.Task](t, cmd("task", "show", ids[700], "-o", "json").stdout)
	require.JSONEq(t, `{"n": 700}`, string(task.Params))
	require.Equal(t, "1", task.Labels["lot"])

	again := cmd("task", "start", "double", "--each", file, "--key", "once", "--label", "lot=1", "-o", "json")
	require.Equal(t, 0, again.code, again.stderr)
	for i, line := range strings.Split(strings.TrimSpace(again.stdout), "\n") {
		item := parse[wire.BatchStartResult](t, line)
		require.Equal(t, wire.BatchStartResult{ID: ids[i]}, item, "it was there")
	}
}

func TestInvalidValuesInAFileAreReported(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	got := cmd("task", "start", "double", "--each", write(t, "some.jsonl", "{\"n\": 1}\n7\n\n{\"n\": 2}\n"))
	require.Equal(t, 1, got.code)
	require.Len(t, strings.Fields(got.stdout), 2)
	require.Regexp(t, `some.jsonl: value 2: .*object`, got.stderr)
	require.Contains(t, got.stderr, "1 of 3 tasks were not started")

	got = cmd("task", "start", "double", "--each", write(t, "half.jsonl", "{\"n\": 1}\n{\"n\": \n"))
	require.Equal(t, 1, got.code)
	require.Len(t, strings.Fields(got.stdout), 1)
	require.Contains(t, got.stderr, "half.jsonl: value 2 is invalid: unexpected EOF")

	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append([]string{"task", "start", "double", "--each", "-"}, at...),
		strings.NewReader(`{"n":1} {"n":2}`), &stdout, &stderr)
	require.Equal(t, 0, code, stderr.String())
	require.Len(t, strings.Fields(stdout.String()), 2)

	for _, args := range [][]string{{"--wait"}, {"--wait-until", "a"}, {"--dry-run"}, {"-p", "n=1"}, {"--input", "1"}} {
		require.Equal(t, exitUsage, cmd(append([]string{"task", "start", "double", "--each", "-"}, args...)...).code, args)
	}
	got = cmd("task", "start", "double", "--each", t.TempDir())
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "is a directory")
}
