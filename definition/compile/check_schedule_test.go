package compile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

func TestASchedulesFaultsHaveTheirPlaces(t *testing.T) {
	for _, tt := range []struct{ name, schedule, want string }{
		{"a text", `"30 2 * * *"`, ""},
		{"all of it", `{cron: "30 2 * * mon-fri", timezone: Europe/Berlin, enabled: false, ` +
			`catchup: all, overlap: queue, jitter: 30s, start: 2026-01-01T00:00:00Z, end: ` +
			`"2027-01-01T00:00:00+01:00", params: {day: x}}`, ""},
		{"dates are those of the zone", `{cron: "@hourly", timezone: Europe/Berlin, dst: once, start: 2026-01-01, end: 2026-02-01}`, ""},
		{"no dst", `{cron: "@daily", dst: maybe}`, "schedule.dst"},
		{"dst of an interval", `{every: 15m, dst: once}`, "schedule.dst"},
		{"day or weekday", `"0 0 13 * fri"`, "note"},
		{"an interval", `{every: 15m}`, ""},
		{"no cron", `"at noon"`, "schedule.cron"},
		{"no zone", `{cron: "@daily", timezone: Berlin}`, "schedule.timezone"},
		{"no word", `{cron: "@daily", overlap: maybe}`, "schedule.overlap"},
		{"no time", `{cron: "@daily", end: tomorrow}`, "schedule.end"},
		{"no duration", `{cron: "@daily", jitter: 5}`, "schedule.jitter"},
		{"params that do not fit", `{cron: "@daily", params: {day: 5}}`, "schedule.params"},
		{"a numbered weekday in six fields", `"0 0 9 * * 1"`, "warning"},
	} {
		_, problems := Text([]byte("start: a\ninputs: {day: optional text}\nnodes: {a: {func: "+
			"f}}\nschedule: "+tt.schedule+"\n"), flow.Limits{})
		switch tt.want {
		case "":
			require.Empty(t, problems, tt.name)
		case "note":
			require.Len(t, problems, 1)
			require.Equal(t, definition.SeverityNote, problems[0].Severity)
			require.Contains(t, problems[0].Msg, "when one of them fits")
		case "warning":
			require.NoError(t, problems.Err())
			require.Contains(t, problems[0].Msg, "Monday")
		default:
			require.Len(t, problems, 1, "%s: %v", tt.name, problems)
			require.Equal(t, tt.want, problems[0].Path, tt.name)
			require.Positive(t, problems[0].Line)
		}
	}
}

func TestEveryFaultOfAScheduleHasItsPlace(t *testing.T) {
	_, problems := Text([]byte("start: a\nnodes: {a: {func: f}}\nschedule: {cron: at noon, "+
		"timezone: Berlin, overlap: maybe, start: soon, end: later}\n"), flow.Limits{})
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	require.ElementsMatch(t, []string{"schedule.cron", "schedule.timezone", "schedule.overlap", "schedule.start", "schedule.end"}, paths)
}

func TestAScheduleInANestedFlowIsAWarning(t *testing.T) {
	_, problems := Text([]byte("start: a\nnodes: {a: {kind: subflow, flow: {start: b, schedule: "+
		"'@daily', nodes: {b: {func: f}}}}}\n"), flow.Limits{})
	require.NoError(t, problems.Err())
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Msg, "only the whole flow is started by the clock")
}
