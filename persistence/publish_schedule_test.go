package persistence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// publishing returns a function that publishes versions of the flow report, one second apart.
func publishing(t *testing.T) (store persistence.Store, publish func(schedule string) error) {
	store = model.New(model.Options{})
	now := int64(1_000_000)
	return store, func(schedule string) error {
		now += 1000
		_, err := persistence.Publish(t.Context(), store, persistence.Publication{Slug: "report",
			Now: now, Definition: []byte("start: a\nnodes: {a: {func: f}}\n" + schedule)})
		return err
	}
}

func TestAVersionSetsTheScheduleOfItsFlow(t *testing.T) {
	store, publish := publishing(t)
	require.NoError(t, publish("schedule: '@daily'\n"))
	first, err := store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	require.Equal(t, []any{"@daily", true, 1}, []any{first.Spec.Cron, first.Enabled, first.Version})

	require.NoError(t, publish("schedule: {cron: '@hourly', timezone: Europe/Berlin, enabled: false, overlap: skip, params: {n: 1}}\n"))
	second, err := store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, []any{"@hourly", "Europe/Berlin", false, 2, `{"n":1}`, schedule.OverlapSkip},
		[]any{second.Spec.Cron, second.Spec.Timezone, second.Enabled, second.Version, string(second.Params), second.Spec.Overlap})
	require.Zero(t, second.Due)
	require.Greater(t, second.State.After, first.State.After, "what was before is not caught up")

	require.NoError(t, publish("# nothing\n"))
	_, err = store.Schedule(t.Context(), "report")
	require.ErrorIs(t, err, persistence.ErrNotFound, "a version without one removes it")
}

func TestTheSameVersionLeavesItsScheduleAsItIs(t *testing.T) {
	store, publish := publishing(t)
	require.NoError(t, publish("schedule: '@daily'\n"))
	_, err := persistence.EnableSchedule(t.Context(), store, "report", false, 5)
	require.NoError(t, err)
	require.NoError(t, publish("schedule: '@daily'\n"))
	kept, err := store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	require.False(t, kept.Enabled)

	require.NoError(t, publish("schedule: '@hourly'\n"))
	kept, err = store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	require.False(t, kept.Enabled, "a version that does not say so does not enable what somebody has disabled")

	require.NoError(t, store.DeleteSchedule(t.Context(), kept.ID))
	require.NoError(t, publish("schedule: '@hourly'\n"))
	_, err = store.Schedule(t.Context(), "report")
	require.NoError(t, err, "publishing it again brings it back")
}

func TestAScheduleSetByHandStays(t *testing.T) {
	store, publish := publishing(t)
	require.NoError(t, publish(""))
	f, err := store.FlowBySlug(t.Context(), "report")
	require.NoError(t, err)
	_, created, err := persistence.SetSchedule(t.Context(), store,
		persistence.ScheduleChange{Name: "report", FlowID: f.ID,
			Spec: schedule.Spec{Cron: "@weekly"}, Now: 1})
	require.NoError(t, err)
	require.True(t, created)
	err = publish("schedule: '@daily'\n")
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err), "%v", err)
	require.ErrorContains(t, err, "set by hand")
	_, err = store.FindVersion(t.Context(), f.ID, 2)
	require.ErrorIs(t, err, persistence.ErrNotFound, "nothing was published")
	require.NoError(t, publish("name: other\n"))
	kept, err := store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	require.Equal(t, "@weekly", kept.Spec.Cron)
}

func TestAScheduleOfADefinitionCannotBecomeAnotherFlows(t *testing.T) {
	store, publish := publishing(t)
	require.NoError(t, publish("schedule: '@daily'\n"))
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "other", Slug: "other"}))
	_, _, err := persistence.SetSchedule(t.Context(), store,
		persistence.ScheduleChange{Name: "report", FlowID: "other",
			Spec: schedule.Spec{Cron: "@daily"}, Now: 1})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	made, err := store.Schedule(t.Context(), "report")
	require.NoError(t, err)
	changed, _, err := persistence.SetSchedule(t.Context(), store,
		persistence.ScheduleChange{Name: "report", FlowID: made.FlowID,
			Spec: schedule.Spec{Cron: "@weekly"}, Now: 1})
	require.NoError(t, err)
	require.Equal(t, 1, changed.Version, "a change by hand holds until the next version")
}
