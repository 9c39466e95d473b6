package storetest

import (
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/persistence"
)

// newSchedule returns a new schedule with nothing special.
func newSchedule(name string, due int64) persistence.Schedule {
	return persistence.Schedule{ID: "id-" + name, Name: name, FlowID: "flow", Due: due, Enabled: true, Spec: schedule.Spec{Cron: "@daily"}}
}

func (w *testEnv) putSchedule(s persistence.Schedule) persistence.Schedule {
	w.Helper()
	require.NoError(w, w.PutSchedule(w.ctx(), s))
	s.Revision++
	return s
}

func namesOf(list []persistence.Schedule) []string {
	names := []string{}
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

var schedules = []storeBehavior{
	{"a schedule comes back as it was put", func(w *testEnv) {
		want := w.putSchedule(persistence.Schedule{
			ID: "id", Name: "nightly", FlowID: "flow", Due: 7, Enabled: true, Version: 3, CreatedAt: 1, UpdatedAt: 2,
			Spec: schedule.Spec{Cron: "30 2 * * *", Timezone: "Europe/Berlin",
				CatchUp: schedule.CatchUpAll, Overlap: schedule.OverlapQueue, JitterMS: 9,
				StartAt: 4, EndAt: 5},
			// Only equality as JSON counts.
			Params: json.RawMessage(`{"n":12345678901234567890,"a":"ü"}`), Labels: map[string]string{"team": "a"},
			State: schedule.State{After: 6, Starts: []schedule.Start{{Slot: 5,
				Cancel: []string{"task"}}}, Queued: 6, LastSlot: 4, LastTask: "t", Error: "e",
				Begun: 2, Skipped: 1},
		})
		got, err := w.Schedule(w.ctx(), "nightly")
		require.NoError(w, err)
		require.Equal(w, &want, got)
		_, err = w.Schedule(w.ctx(), "other")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"of those who read the same revision one writes", func(w *testEnv) {
		s := w.putSchedule(newSchedule("a", 1))
		s.Due = 2
		changed := w.putSchedule(s)
		s.Due = 3
		require.ErrorIs(w, w.PutSchedule(w.ctx(), s), persistence.ErrStale)
		got, err := w.Schedule(w.ctx(), "a")
		require.NoError(w, err)
		require.Equal(w, &changed, got)
	}},
	{"a name and an id are one schedule's", func(w *testEnv) {
		w.putSchedule(newSchedule("a", 1))
		require.ErrorIs(w, w.PutSchedule(w.ctx(), newSchedule("a", 2)), persistence.ErrDuplicate)
		other := newSchedule("a", 2)
		other.ID = "other"
		require.ErrorIs(w, w.PutSchedule(w.ctx(), other), persistence.ErrDuplicate)
	}},
	{"there is no schedule of a flow that is not there", func(w *testEnv) {
		s := newSchedule("a", 1)
		s.FlowID = "x"
		require.ErrorIs(w, w.PutSchedule(w.ctx(), s), persistence.ErrNotFound)
		s.FlowID = "flow"
		s = w.putSchedule(s)
		s.FlowID = "x"
		require.ErrorIs(w, w.PutSchedule(w.ctx(), s), persistence.ErrNotFound)
	}},
	{"a deleted schedule is not written again", func(w *testEnv) {
		s := w.putSchedule(newSchedule("a", 1))
		require.NoError(w, w.DeleteSchedule(w.ctx(), s.ID))
		require.NoError(w, w.DeleteSchedule(w.ctx(), s.ID))
		require.ErrorIs(w, w.PutSchedule(w.ctx(), s), persistence.ErrStale)
		_, err := w.Schedule(w.ctx(), "a")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"schedules are listed by name, and by flow", func(w *testEnv) {
		Publish(w.T, w.Store, "other", "version-of-other")
		for _, name := range []string{"b", "a", "C", "d"} {
			s := newSchedule(name, 1)
			if name == "d" {
				s.FlowID = "other"
			}
			w.putSchedule(s)
		}
		for _, tt := range []struct {
			filter persistence.ScheduleFilter
			want   []string
		}{
			{persistence.ScheduleFilter{}, []string{"C", "a", "b", "d"}},
			{persistence.ScheduleFilter{Limit: 2}, []string{"C", "a"}},
			{persistence.ScheduleFilter{After: "a", Limit: 2}, []string{"b", "d"}},
			{persistence.ScheduleFilter{FlowID: "flow", After: "a"}, []string{"b"}},
			{persistence.ScheduleFilter{FlowID: "x"}, []string{}},
		} {
			require.Equal(w, tt.want, namesOf(requireList[persistence.Schedule](w)(w.ListSchedules(w.ctx(), tt.filter))), "%+v", tt.filter)
		}
	}},
	{"due schedules of shards are listed, earliest first", func(w *testEnv) {
		var shards persistence.ShardSet
		for i, due := range []int64{5, 3, 0, 9, 4} {
			s := w.putSchedule(newSchedule(fmt.Sprint("s", i), due))
			if i != 1 {
				shards = append(shards, persistence.ShardOf(s.ID))
			}
		}
		due := func(shards persistence.ShardSet, limit int) []string {
			return namesOf(requireList[persistence.Schedule](w)(w.DueSchedules(w.ctx(), shards, 5, limit)))
		}
		require.Equal(w, []string{"s1", "s4", "s0"}, due(nil, 9))
		require.Equal(w, []string{"s1", "s4"}, due(nil, 2))
		require.Equal(w, []string{"s4", "s0"}, due(shards, 9))
		require.Equal(w, []string{"s4"}, due(shards, 1))
		require.Empty(w, due(persistence.ShardSet{}, 9))
	}},
	{"schedules go with their flow, with its first tasks already", func(w *testEnv) {
		Publish(w.T, w.Store, "other", "version-of-other")
		w.mustCommit(createCommit("t1"), createCommit("t2"))
		w.putSchedule(newSchedule("a", 1))
		s := newSchedule("b", 1)
		s.FlowID = "other"
		w.putSchedule(s)
		n, err := w.DeleteFlow(w.ctx(), "flow", 1)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Equal(w, []string{"b"}, namesOf(requireList[persistence.Schedule](w)(
			w.ListSchedules(w.ctx(), persistence.ScheduleFilter{}))))
	}},
}
