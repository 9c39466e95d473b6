package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestASchedulesLifeOnTheCommandLine(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }

	got := cmd("schedule", "set", "nightly", "--flow", "double", "--cron", "30 2 * * mon-fri",
		"--timezone", "Europe/Berlin", "--catchup", "none", "--overlap", "skip",
		"--jitter", "30s", "-p", "n=4", "--label", "team=a")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `^nightly: next at \d{4}-`, got.stdout)
	require.Regexp(t, `(?m)^nightly +double +30 2 \* \* mon-fri +Europe/Berlin +enabled`, cmd("schedule", "list").stdout)

	shown := told[wire.Schedule](t, append([]string{"schedule", "show", "nightly"}, at...)...)
	require.Equal(t, []any{"double", "none", "skip", "30s", "a"},
		[]any{shown.Flow, shown.CatchUp, shown.Overlap, shown.Jitter, shown.Labels["team"]})
	require.JSONEq(t, `{"n": 4}`, string(shown.Params))
	require.Regexp(t, `(?s)Catch-up: +none.*WALL CLOCK`, cmd("schedule", "show", "nightly").stdout)

	got = cmd("schedule", "trigger", "nightly", "-p", "of=hand")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `Params: +\{"n":4,"of":"hand"\}`, cmd("task", "show", strings.TrimSpace(got.stdout)).stdout,
		"-p changes the params of the schedule")
	got = cmd("schedule", "trigger", "nightly")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `(?s)Labels: +schedule=nightly team=a triggered_by=manual`,
		cmd("task", "show", got.stdout[:len(got.stdout)-1]).stdout)

	got = cmd("schedule", "backfill", "nightly", "--from", "soon", "--to", "2026-01-12T00:00:00Z", "--dry-run")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, `--from: invalid time "soon": use 2026-01-31 or 2026-01-31T02:30:00Z`)
	dates := cmd("schedule", "backfill", "nightly", "--from", "2026-01-05", "--to", "2026-01-11 23:59:59.000Z", "--dry-run")
	require.Equal(t, 0, dates.code, dates.stderr)
	got = cmd("schedule", "backfill", "nightly", "--from", "2026-01-05T00:00:00Z", "--to", "2026-01-12T00:00:00Z", "--dry-run")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `(?m)would start$`, got.stdout)
	for _, want := range []int{5, 0} {
		done := told[wire.BackfillResult](t, append([]string{"schedule", "backfill", "nightly",
			"--from", "2026-01-05T00:00:00Z", "--to", "2026-01-12T00:00:00Z"}, at...)...)
		require.Len(t, done.Items, 5)
		require.Equal(t, want, done.Created)
	}

	require.Zero(t, cmd("schedule", "next", "nightly", "-n", "2").code)
	got = cmd("schedule", "next", "nightly", "--timezone", "UTC")
	require.Equal(t, exitUsage, got.code, got.stdout)
	require.Contains(t, got.stderr, "the schedule nightly has its own settings")

	require.Equal(t, "nightly: disabled\n", cmd("schedule", "disable", "nightly").stdout)
	require.Regexp(t, `(?m)disabled`, cmd("schedule", "list", "--flow", "double").stdout)
	require.Regexp(t, `^nightly: next at`, cmd("schedule", "enable", "nightly").stdout)
	require.Equal(t, "nightly\tdouble 30 2 * * mon-fri\n",
		call(t, append(append([]string{"__complete"}, at...), "--", "schedule", "show", "n")...).stdout)
	require.Equal(t, "nightly: deleted\n", cmd("schedule", "delete", "nightly").stdout)
	require.Equal(t, 1, cmd("schedule", "show", "nightly").code)
}

func TestTheNextSlotsOfAnExpressionArePrinted(t *testing.T) {
	at := server(t)
	got := call(t, append([]string{"schedule", "next", "--cron", "30 2 * * *", "--timezone",
		"Europe/Berlin", "--from", "2026-10-24T12:00:00Z", "-n", "1"}, at...)...)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "2026-10-25T02:30:00+02:00")
	require.Contains(t, got.stdout, "comes twice, and fires the first time")
	got = call(t, append([]string{"schedule", "next", "--cron", "30 25 * * *"}, at...)...)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `the hour "25" is none: write 0 to 23 (body.cron)`)
	require.Equal(t, 2, call(t, append([]string{"schedule", "next"}, at...)...).code)
	for _, none := range []string{"0", "0s", "0m"} {
		got = call(t, append([]string{"schedule", "set", "x", "--flow", "double", "--every", none}, at...)...)
		require.NotZero(t, got.code)
		require.Contains(t, got.stderr, "--every")
		require.Contains(t, got.stderr, "15m")
	}
}

func TestDatesWithoutAZoneAreThoseOfTheSchedule(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	got := cmd("schedule", "set", "nightly", "--flow", "double", "--cron", "@daily", "--timezone",
		"Asia/Kolkata", "--start", "2026-01-01", "--end", "2100-01-01T00:00:00Z")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "--start 2026-01-01 is 2026-01-01T00:00:00+05:30, in the time zone of the schedule (Asia/Kolkata)\n")
	require.NotContains(t, got.stderr, "--end")
	require.Equal(t, "2025-12-31T18:30:00Z",
		told[wire.Schedule](t, append([]string{"schedule", "show", "nightly"},
			at...)...).Start.UTC().Format(time.RFC3339))

	got = cmd("schedule", "next", "nightly", "--from", "2026-03-01", "-n", "1")
	require.Contains(t, got.stdout, "2026-03-01T00:00:00+05:30")
	require.Contains(t, got.stderr, "--from 2026-03-01 is 2026-03-01T00:00:00+05:30")
	got = cmd("schedule", "next", "--cron", "@daily", "--timezone", "America/New_York", "--from", "2026-03-01 00:00", "-n", "1")
	require.Contains(t, got.stdout, "2026-03-01T00:00:00-05:00")

	got = cmd("schedule", "backfill", "nightly", "--from", "2026-03-01", "--to", "2026-03-03", "--dry-run")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "--to 2026-03-03 is 2026-03-03T00:00:00+05:30")
	require.Equal(t, 2, strings.Count(got.stdout, "T00:00:00+05:30"))
}

func TestASetScheduleReportsTheNextClockChange(t *testing.T) {
	at := server(t)
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	got := cmd("schedule", "set", "nightly", "--flow", "double", "--cron", "30 2 * * *",
		"--timezone", "Europe/Berlin", "--dst", "twice,skip")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `(?m)^nightly: in Europe/Berlin the clock is put (back from .* comes `+
		`twice, and fires both times|forward from .* does not exist, and is left out)$`, got.stdout)
	shown := cmd("schedule", "show", "nightly").stdout
	require.Regexp(t, `DST: +twice,skip`, shown)
	require.Regexp(t, `Clock change: +in Europe/Berlin the clock is put`, shown)

	got = cmd("schedule", "set", "nightly", "--flow", "double", "--cron", "30 2 * * *", "--dst", "thrice")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "write once or twice")
	got = cmd("schedule", "set", "odd", "--flow", "double", "--cron", "*/40 0 13 * fri")
	require.Contains(t, got.stderr, "note: both the day of the month and the weekday are set")
	require.Contains(t, got.stderr, "note: the minute */40 counts anew from 0 in each hour")
}

func TestADefinitionMayContainASchedule(t *testing.T) {
	at := server(t)
	got := call(t, append([]string{"flow", "apply", write(t, "tick.yaml", double+"\nschedule: '* * * * * *'\n")}, at...)...)
	require.Zero(t, got.code, got.stderr)
	require.Eventually(t, func() bool {
		return len(told[wire.Page[wire.TaskSummary]](t, append([]string{"task", "list", "--label", "schedule=tick"}, at...)...).Items) > 0
	}, 30*time.Second, 100*time.Millisecond)
	require.Equal(t, 1, told[wire.Schedule](t, append([]string{"schedule", "show", "tick"}, at...)...).Version)
}
