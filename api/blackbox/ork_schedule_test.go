package blackbox

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// orkScheduled registers a workflow with a schedule. Its name must be escaped in paths.
func (c *client) orkScheduled(schedule string) (*orkFlow, obj) {
	c.Helper()
	f := c.orkIn(c.TempDir())
	f.name = unique("by clock")
	f.lead = "schedule: " + schedule + "\n"
	return f, f.register(sh("a", "ls"))
}

func (f *orkFlow) path() string { return "/workflows/" + url.PathEscape(f.name) }

func (f *orkFlow) patch(body any) (int, obj) {
	f.Helper()
	status, v := f.call("PATCH", f.path()+"/schedule", body)
	answer, _ := v.(obj)
	return status, answer
}

// begun returns the number of the workflow's runs.
func (f *orkFlow) begun() int {
	f.Helper()
	return int(f.get("/runs?limit=1&workflow=" + url.QueryEscape(f.name))["total"].(float64))
}

func (f *orkFlow) untilBegun(n int) {
	f.Helper()
	require.Eventually(f, func() bool { return f.begun() >= n }, deadline, 50*time.Millisecond, "%d runs begin", n)
}

func orkEachSecond(c *client) {
	f, _ := c.orkScheduled("'* * * * * *'")
	shown := f.get(f.path())
	require.Equal(c, []any{"* * * * * *", true, nil}, []any{shown["schedule"], shown["schedule_enabled"], shown["schedule_timezone"]})
	require.NotNil(c, shown["next_scheduled_at"])
	f.untilBegun(3)
	status, answer := f.patch(obj{"enabled": false})
	require.Equal(c, 200, status, "%v", answer)
	require.Equal(c, []any{"* * * * * *", false, nil},
		[]any{answer["schedule"], answer["schedule_enabled"], answer["next_scheduled_at"]},
		"the expression is kept")
	watch, _ := c.orkScheduled("'* * * * * *'") // shows that time passes
	watch.untilBegun(2)                         // after that, work in flight has begun
	ended := f.begun()
	watch.untilBegun(4)
	require.Equal(c, ended, f.begun(), "nothing begins any more")
	for _, r := range objects(c, f.get("/runs?workflow=" + url.QueryEscape(f.name))["items"]) {
		require.Equal(c, "schedule", r["triggered_by"])
		id := r["id"].(string)
		require.NoError(c, uuid.Validate(id))
		for _, known := range []string{id, "task-" + id} {
			whole := f.get("/runs/" + known)
			require.Equal(c, id, whole["run"].(obj)["id"])
			require.Contains(c, objects(c, whole["tasks"])[0]["id"], id)
		}
	}
	f.start(nil).ends("success")
	status, answer = f.patch(obj{"enabled": true})
	require.Equal(c, 200, status)
	require.NotNil(c, answer["next_scheduled_at"])
	f.untilBegun(ended + 2)
}

// orkCatchesUp kills the members before three slots and starts them afterwards: only the last slot
// gets a run.
func orkCatchesUp(shared *client) {
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	// so that all three are in the same minute
	first := time.Now().UTC().Add(20 * time.Second).Truncate(4 * time.Second)
	last := first.Add(2 * time.Second)
	f, _ := c.orkScheduled(fmt.Sprintf("'%d,%d,%d %d * * * *'", first.Second(), first.Second()+1, first.Second()+2, first.Minute()))
	p.end(shared.T)
	require.True(c, time.Now().Before(first), "the slots are still to come")
	require.Eventually(c, func() bool { return time.Now().After(last) }, deadline, 50*time.Millisecond, "the slots pass")
	p.start(shared.T)
	f.untilBegun(1)
	next, err := time.Parse(time.RFC3339, f.get(f.path())["next_scheduled_at"].(string))
	require.NoError(c, err)
	require.True(c, next.After(time.Now()))
	watch, _ := c.orkScheduled("'* * * * * *'") // shows that time passes
	watch.untilBegun(3)
	slots := f.slots()
	require.Len(c, slots, 1)
	require.Equal(c, last.Unix(), slots[0].Unix())
}

// slots returns the slots that got a run.
func (f *orkFlow) slots() (all []time.Time) {
	f.Helper()
	status, v := (&client{T: f.T, server: f.server}).call("GET", "/v1/tasks?limit=200&label="+url.QueryEscape("schedule:"+f.name), nil)
	require.Equal(f, 200, status, "%v", v)
	for _, t := range objects(f, v.(obj)["items"]) {
		at, err := time.Parse(time.RFC3339, t["labels"].(obj)["slot"].(string))
		require.NoError(f, err)
		all = append(all, at)
	}
	return all
}

func orkZone(c *client) {
	// before and after a change to summer time
	for cron, utc := range map[string]int{"0 12 15 1 *": 11, "0 12 15 7 *": 10} {
		f, _ := c.orkScheduled("{cron: " + quote(cron) + ", timezone: Europe/Berlin}")
		shown := f.get(f.path())
		next, err := time.Parse(time.RFC3339, shown["next_scheduled_at"].(string))
		require.NoError(c, err)
		require.Equal(c, []any{utc, 0, 15, "Europe/Berlin"}, []any{next.UTC().Hour(), next.Minute(),
			next.Day(), shown["schedule_timezone"]})
		status, answer := f.patch(obj{"schedule": "0 13 15 7 *"})
		require.Equal(c, 200, status, "%v", answer)
		require.Contains(c, answer["next_scheduled_at"], "-07-15T11:00:00", "the time zone is kept")
	}
}

func orkWeekday(c *client) {
	_, answer := c.orkScheduled("'0 0 9 * * 1'")
	warning := answer["warnings"].([]any)[0].(obj)
	require.Contains(c, warning["message"], "this one means Monday")
	require.Equal(c, 2.0, warning["line"])
	f, _ := c.orkScheduled("'0 9 * * 1'")
	_, answer = f.patch(obj{"schedule": "0 0 9 * * 5"})
	require.Contains(c, answer["warning"], "this one means Friday")
}

func orkReschedules(c *client) {
	f, _ := c.orkScheduled("'@daily'")
	for text, body := range map[string]obj{"must be a cron expression": {"schedule": 7,
		"enabled": true}, "nothing is to change": {}, "hour": {"schedule": "0 99 * * *"}} {
		status, answer := f.patch(body)
		require.Equal(c, 400, status, text)
		require.Contains(c, answer["message"], text)
	}
	require.Equal(c, "@daily", f.get(f.path())["schedule"], "it is as it was")
	status, _ := c.call("PATCH", "/workflows/nobody/schedule", obj{"enabled": true})
	require.Equal(c, 404, status)

	_, answer := f.patch(obj{"schedule": "@hourly", "enabled": false})
	require.Equal(c, []any{"@hourly", false}, []any{answer["schedule"], answer["schedule_enabled"]})
	f.lead = "schedule: {cron: '@weekly', enabled: true}\n"
	require.Equal(c, "replaced", f.register(sh("a", "ls"))["outcome"])
	shown := f.get(f.path())
	require.Equal(c, []any{"@weekly", true}, []any{shown["schedule"], shown["schedule_enabled"]}, "it is replaced with its workflow")
	status, answer = f.patch(obj{"schedule": nil})
	require.Equal(c, 200, status)
	require.Equal(c, []any{nil, false, nil}, []any{answer["schedule"], answer["schedule_enabled"], answer["next_scheduled_at"]})
	status, answer = f.patch(obj{"enabled": true})
	require.Equal(c, 400, status, "%v", answer)

	status, answer = f.patch(obj{"schedule": "@yearly"})
	require.Equal(c, 200, status, "%v", answer)
	f.lead = "schedule: '@monthly'\n"
	f.register(sh("a", "ls"))
	require.Equal(c, "@monthly", f.get(f.path())["schedule"])
	f.lead = ""
	f.register(sh("a", "ls"))
	require.Nil(c, f.get(f.path())["schedule"])
	f.lead = "schedule: '61 * * * *'\n"
	status, answer = f.tryRegister(sh("a", "ls"))
	require.Equal(c, []any{400, "schedule.cron"}, []any{status, answer["path"]}, "%v", answer)
	require.Equal(c, 2.0, answer["problems"].([]any)[0].(obj)["line"])
}

func orkRefusesSchedules(c *client) {
	f, _ := c.orkScheduled("'@daily'")
	for spec, why := range map[string]string{
		"@every 1500us":         `@every: "1500us" is finer than a millisecond, the smallest part that is kept: write it like 250ms`,
		"@every 1.0005s":        `@every: "1.0005s" is finer than a millisecond, the smallest part that is kept: write it like 250ms`,
		"@every 100ms":          "the interval is shorter than 1s: write 1s or more, such as 15m",
		"@every 0s":             "@every 0 is no time between slots: write one of 1s or more, such as 15m",
		"@every -5s":            `@every: "-5s" is negative: write a duration from 0 on, such as 30s`,
		"@every 90":             `@every: "90" is no duration: write it like 250ms, 90s, 1h30m, 1d12h or 2w`,
		"@often":                `there is no "@often": write @hourly, @daily, @weekly, @monthly or @yearly, or @every 15m`,
		"61 * * * *":            `the minute "61" is none: write 0 to 59`,
		"CRON_TZ=UTC 0 3 * * *": `CRON_TZ= is not a part of an expression: write timezone: UTC, and "0 3 * * *" as the expression`,
		"":                      "nothing says when it fires: write cron, such as 30 2 * * *, or every, such as 15m",
	} {
		status, answer := f.patch(obj{"schedule": spec})
		require.Equal(c, []any{400, "schedule", "schedule: " + why}, []any{status, answer["path"], answer["message"]}, spec)
		for _, written := range []string{quote(spec), "{cron: " + quote(spec) + "}"} {
			f.lead = "schedule: " + written + "\n"
			status, answer = f.tryRegister(sh("a", "ls"))
			column := 1 + len("schedule: ") + strings.LastIndex(written, quote(spec))
			require.Equal(c, []any{400, "schedule.cron", fmt.Sprintf("2:%d: schedule.cron: %s", column, why)},
				[]any{status, answer["path"], answer["message"]}, f.lead)
		}
	}
	require.Equal(c, "@daily", f.get(f.path())["schedule"], "it is as it was")
}
