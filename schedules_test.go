package troupe

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// atOnce is a flow that completes without a worker.
const atOnce = `{"start":"a","nodes":{"a":{"kind":"choice","default_action":"done"}},"edges":[]}`

// scheduledTasks returns the tasks that a schedule has started, by slot.
func scheduledTasks(t *testing.T, e *Engine, name string) map[string]*wire.TaskSummary {
	t.Helper()
	page, err := e.Tasks(t.Context(), client.TaskQuery{Labels: map[string]string{"schedule": name}, Paging: Paging{Limit: 500}})
	require.NoError(t, err)
	tasks := map[string]*wire.TaskSummary{}
	for i, task := range page.Items {
		slot := task.Labels["slot"]
		require.NotContains(t, tasks, slot, "two tasks of a slot")
		tasks[slot] = &page.Items[i]
	}
	return tasks
}

// fires waits until a schedule has started the given number of tasks.
func fires(t *testing.T, e *Engine, name string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(scheduledTasks(t, e, name)) >= n }, 60*time.Second, 20*time.Millisecond)
}

func TestTasksStartByTheClockUntilTheScheduleIsDisabled(t *testing.T) {
	e := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", []byte(atOnce)))
	set, err := e.SetSchedule(t.Context(), "tick", ScheduleSpec{Flow: "f", Cron: "* * * * * *",
		Labels: map[string]string{"team": "a"}, Params: []byte(`{"n":1}`)})
	require.NoError(t, err)
	require.True(t, set.Created)
	require.False(t, set.NextAt.IsZero())
	fires(t, e, "tick", 3)
	for slot, task := range scheduledTasks(t, e, "tick") {
		require.Equal(t, map[string]string{"triggered_by": "schedule", "schedule": "tick", "slot": slot, "team": "a"}, task.Labels)
	}
	off, err := e.DisableSchedule(t.Context(), "tick")
	require.NoError(t, err)
	require.False(t, off.Enabled)
	require.True(t, off.NextAt.IsZero())
	began := len(scheduledTasks(t, e, "tick"))
	time.Sleep(2500 * time.Millisecond) // at least two slots
	require.LessOrEqual(t, len(scheduledTasks(t, e, "tick")), began+1, "what was under way when it was disabled may still begin")
}

func TestARestartCatchesUpOneMissedSlot(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	e := open(t, store)
	require.NoError(t, e.Publish(t.Context(), "f", []byte(atOnce)))
	_, err := e.SetSchedule(t.Context(), "seldom", ScheduleSpec{Flow: "f", Every: "3s"})
	require.NoError(t, err)
	fires(t, e, "seldom", 1)
	require.NoError(t, e.Close())
	time.Sleep(7 * time.Second) // at least two slots

	e = open(t, store)
	defer func() { require.NoError(t, e.Close()) }()
	_, err = e.Member(t.Context())
	require.NoError(t, err)
	fires(t, e, "seldom", 2)
	s, err := e.Schedule(t.Context(), "seldom")
	require.NoError(t, err)
	require.True(t, s.NextAt.After(s.LastSlot.Time))
	require.Positive(t, s.SkippedCount, "of several missed slots the last one fires")
}

func TestTwoMembersStartOneTaskPerSlot(t *testing.T) {
	dsn := pgtest.DSN(t)
	member := func(name string) *Engine {
		return join(t, Config{Store: dsn, Name: name, Listen: freeAddress(t), Gossip: freeAddress(t)})
	}
	a, b := member("a"), member("b")
	shared(t, a, b)
	require.NoError(t, a.Publish(t.Context(), "f", []byte(atOnce)))
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		_, err := a.SetSchedule(t.Context(), name, ScheduleSpec{Flow: "f", Cron: "* * * * * *", CatchUp: "all"})
		require.NoError(t, err)
	}
	fires(t, b, "six", 2)
	require.NoError(t, a.Close(), "its schedules are the other member's now")
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		fires(t, b, name, 5)
		_, err := b.DisableSchedule(t.Context(), name)
		require.NoError(t, err)
		var last time.Time
		tasks := scheduledTasks(t, b, name)
		for slot := range tasks {
			at, err := time.Parse(time.RFC3339, slot)
			require.NoError(t, err)
			if at.After(last) {
				last = at
			}
		}
		for i := range len(tasks) {
			require.Contains(t, tasks, last.Add(-time.Duration(i)*time.Second).UTC().Format(time.RFC3339), "no slot is missing")
		}
	}
}

func TestABackfillStartsEachMissingSlotOnce(t *testing.T) {
	e := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", []byte(atOnce)))
	_, err := e.SetSchedule(t.Context(), "hourly", ScheduleSpec{Flow: "f", Cron: "@hourly"})
	require.NoError(t, err)
	day := func(n int) wire.Time { return wire.Time{Time: time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)} }
	plan, err := e.BackfillSchedule(t.Context(), "hourly", Backfill{From: day(1), To: day(2), DryRun: true})
	require.NoError(t, err)
	require.Len(t, plan.Items, 24)
	require.Zero(t, plan.Created-24)
	require.Empty(t, scheduledTasks(t, e, "hourly"))
	for _, want := range []int{24, 0} {
		done, err := e.BackfillSchedule(t.Context(), "hourly", Backfill{From: day(1), To: day(2)})
		require.NoError(t, err)
		require.Equal(t, want, done.Created)
		require.Equal(t, plan.Items[3].Task, done.Items[3].Task)
	}
	require.Len(t, scheduledTasks(t, e, "hourly"), 24)
	_, err = e.BackfillSchedule(t.Context(), "hourly", Backfill{From: day(1), To: wire.Time{Time: day(1).AddDate(0, 6, 0)}})
	require.ErrorContains(t, err, "more than 1000 slots")

	first, err := e.TriggerSchedule(t.Context(), "hourly", Trigger{IdempotencyKey: "once", Params: []byte(`{"by":"hand"}`)})
	require.NoError(t, err)
	again, err := e.TriggerSchedule(t.Context(), "hourly", Trigger{IdempotencyKey: "once", Params: []byte(`{"by":"hand"}`)})
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	task, err := e.Task(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, "manual", task.Labels["triggered_by"])
}

func TestFaultsOfAScheduleAreReportedWithTheirPlaces(t *testing.T) {
	e := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	defer func() { require.NoError(t, e.Close()) }()
	require.NoError(t, e.Publish(t.Context(), "f", []byte(atOnce)))
	for _, tt := range []struct {
		name string
		spec ScheduleSpec
		want string
	}{
		{"s", ScheduleSpec{Flow: "f", Cron: "61 * * * *"}, `cron: the minute "61" is none`},
		{"s", ScheduleSpec{Flow: "f", Cron: "@daily", Timezone: "Europe/Bonn"}, "timezone: there is no time zone"},
		{"s", ScheduleSpec{Flow: "f", Every: "soon"}, "every"},
		{"s", ScheduleSpec{Flow: "x", Cron: "@daily"}, "there is no flow"},
		{"no name", ScheduleSpec{Flow: "f", Cron: "@daily"}, "is no name for a schedule"},
		{"s", ScheduleSpec{Flow: "f", Cron: "@daily", Params: []byte(`[1]`)}, "params"},
	} {
		_, err := e.SetSchedule(t.Context(), tt.name, tt.spec)
		require.ErrorContains(t, err, tt.want)
	}
	_, err := e.Schedule(t.Context(), "s")
	require.ErrorIs(t, err, ErrNotFound)
	set, err := e.SetSchedule(t.Context(), "s", ScheduleSpec{Flow: "f", Cron: "0 0 9 * * 1"})
	require.NoError(t, err)
	require.Contains(t, set.Warnings[0], "Monday")
}

func TestTheNextSlotsIncludeClockChanges(t *testing.T) {
	e := open(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db"))
	defer func() { require.NoError(t, e.Close()) }()
	slots, err := e.PreviewSchedule(t.Context(), ScheduleSpec{Flow: "none", Cron: "30 2 * * *",
		Timezone: "Europe/Berlin"}, 2, time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, "2026-03-29T03:00:00+02:00", slots.Items[0].Local)
	require.Contains(t, slots.Items[0].Notes[0], "2026-03-29 02:30 does not exist, and fires at 2026-03-29 03:00")
	require.Empty(t, slots.Items[1].Notes)
	require.Contains(t, slots.ClockChange.Note, "does not exist")
	require.Equal(t, "2026-03-29T03:00:00+02:00", slots.ClockChange.After)

	require.NoError(t, e.Publish(t.Context(), "f", []byte(`{"start": "a", "nodes": {"a": {"func": "f"}}}`)))
	set, err := e.SetSchedule(t.Context(), "s", ScheduleSpec{Flow: "f", Cron: "*/15 * * * *", Timezone: "Europe/Berlin", DST: "once"})
	require.NoError(t, err)
	require.Equal(t, "once,skip", set.DST)
	require.Contains(t, set.ClockChange.Note, "in Europe/Berlin the clock is put")
}
