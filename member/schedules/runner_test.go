package schedules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

// stage is a store with an engine that starts tasks in it: a start writes the first row of a task,
// like a member's commit, and the same key gives the same task.
type stage struct {
	engine.Engine
	t     *testing.T
	store persistence.Store
	me    string

	mu       sync.Mutex
	starts   int // number of requested starts
	canceled []string
}

func newStage(t *testing.T) *stage {
	store := model.New(model.Options{})
	storetest.Publish(t, store, "flow", "version")
	me, err := store.Join(t.Context(), persistence.Joining{Name: "m", TTL: 1000 * time.Hour})
	require.NoError(t, err)
	return &stage{t: t, store: store, me: me}
}

func (s *stage) Now() time.Time { return time.Now() }

func (s *stage) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	s.mu.Lock()
	s.starts++
	s.mu.Unlock()
	id, err := n.TaskID("flow")
	require.NoError(s.t, err)
	answers, err := s.store.Commit(ctx, s.me, []persistence.Commit{{Task: id, Seq: 1, Events: []byte("[1]"), At: time.Now().UnixMilli(),
		Create:  &persistence.Create{FlowID: "flow", VersionID: n.VersionID, Labels: n.Labels, CreatedAt: time.Now().UnixMilli()},
		Columns: &persistence.Columns{Status: string(flow.TaskRunning)}}})
	switch {
	case err != nil:
		return engine.Started{}, err
	case errors.Is(answers[0], persistence.ErrExists):
		return engine.Started{Task: id}, nil
	}
	return engine.Started{Task: id, Created: true}, answers[0]
}

func (s *stage) Do(_ context.Context, o engine.Order) (engine.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canceled = append(s.canceled, o.Task)
	return engine.Outcome{}, s.end(o.Task)
}

// end ends a task.
func (s *stage) end(task string) error {
	answers, err := s.store.Commit(context.Background(), s.me,
		[]persistence.Commit{{Task: task, Seq: 2, Events: []byte("[2]"), At: time.Now().UnixMilli(),
			Columns: &persistence.Columns{Status: string(flow.TaskCompleted), EndedAt: time.Now().UnixMilli()}}})
	if err != nil {
		return err
	}
	return answers[0]
}

// slots returns the slots with a task, in order.
func (s *stage) slots() []string {
	rows, err := s.store.ListTasks(s.t.Context(), persistence.TaskFilter{Limit: 100_000})
	require.NoError(s.t, err)
	slots := []string{}
	for _, row := range rows {
		slots = append(slots, row.Labels[schedule.LabelSlot])
	}
	slices.Sort(slots)
	return slots
}

// set creates or changes a schedule.
func (s *stage) set(spec schedule.Spec) *persistence.Schedule {
	s.t.Helper()
	set, _, err := persistence.SetSchedule(s.t.Context(), s.store,
		persistence.ScheduleChange{Name: "s", FlowID: "flow", Spec: spec, Now: time.Now().UnixMilli()})
	require.NoError(s.t, err)
	return set
}

func (s *stage) options() Options {
	return Options{Store: s.store, Engine: s, Shards: func() persistence.ShardSet { return nil }}
}

// every returns n times at a fixed interval.
func every(from time.Time, d time.Duration, n int) []string {
	times := []string{}
	for i := range n {
		times = append(times, from.Add(time.Duration(i)*d).UTC().Format(time.RFC3339))
	}
	return times
}

func TestEachSlotStartsATaskOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(schedule.Spec{Cron: "* * * * *", Timezone: "Europe/Berlin"})
		r := Start(s.options())
		begin := time.Now().Truncate(time.Minute)
		time.Sleep(time.Hour + time.Second)
		r.Stop()
		require.Equal(t, every(begin.Add(time.Minute), time.Minute, 60), s.slots())
		rows, err := s.store.ListTasks(t.Context(), persistence.TaskFilter{Limit: 100})
		require.NoError(t, err)
		for _, row := range rows {
			require.Equal(t, "schedule", row.Labels[schedule.LabelBy])
			require.Equal(t, row.Labels[schedule.LabelSlot],
				time.UnixMilli(row.CreatedAt).UTC().Format(time.RFC3339),
				"the store's time is what counts, to the second")
		}
		got, err := s.store.Schedule(t.Context(), "s")
		require.NoError(t, err)
		require.EqualValues(t, 60, got.State.Begun)
		require.Empty(t, got.State.Starts)
	})
}

// held is an engine with a member that does not answer.
type held struct {
	*stage
	of string // prefix of the names of schedules whose tasks that member has
}

func (h held) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	if strings.HasPrefix(n.Labels[schedule.LabelName], h.of) {
		<-ctx.Done()
		return engine.Started{}, ctx.Err()
	}
	return h.stage.StartTask(ctx, n)
}

func TestStalledSchedulesDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		for i := range 2*maxLanes + 1 {
			_, _, err := persistence.SetSchedule(t.Context(), s.store,
				persistence.ScheduleChange{Name: fmt.Sprintf("other%d", i), FlowID: "flow",
					Spec: schedule.Spec{Cron: "* * * * * *"}, Now: time.Now().UnixMilli()})
			require.NoError(t, err)
		}
		s.set(schedule.Spec{Cron: "* * * * * *", CatchUp: schedule.CatchUpNone})
		o := s.options()
		o.Engine = held{s, "other"}
		r := Start(o)
		begin := time.Now().Truncate(time.Second)
		time.Sleep(time.Minute + time.Second/2)
		r.Stop()
		require.Equal(t, every(begin.Add(time.Second), time.Second, 60), s.slots())
	})
}

func TestAChangedScheduleIsSeenAtOnceAndWithoutANoticeSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		r := Start(s.options())
		defer r.Stop()
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		s.set(schedule.Spec{EveryMS: 1000})
		r.Look()
		time.Sleep(3500 * time.Millisecond)
		require.Len(t, s.slots(), 3)
		_, err := persistence.EnableSchedule(t.Context(), s.store, "s", false, time.Now().UnixMilli())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Len(t, s.slots(), 3, "a disabled one begins nothing")
		_, err = persistence.EnableSchedule(t.Context(), s.store, "s", true, time.Now().UnixMilli())
		require.NoError(t, err)
		time.Sleep(2 * lookInterval)
		require.GreaterOrEqual(t, len(s.slots()), 3+4, "nobody told, and it was found")
	})
}

func TestAnOutageIsLoggedOnceAndItsSlotsAreCaughtUp(t *testing.T) {
	for call, told := range map[string]string{"DueSchedules": "reading schedules failed",
		"PutSchedule": "starting tasks of a schedule failed"} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				s.set(schedule.Spec{Cron: "* * * * *", CatchUp: schedule.CatchUpAll})
				var away atomic.Bool
				var log bytes.Buffer
				o := s.options()
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				o.Store = faulty.Wrap(s.store, faulty.Hooks{Call: func(_ context.Context, name string) error {
					if name == call && away.Load() {
						return faulty.ErrFailed
					}
					return nil
				}})
				r := Start(o)
				begin := time.Now().Truncate(time.Minute)
				time.Sleep(time.Second)
				away.Store(true)
				time.Sleep(10 * time.Minute)
				away.Store(false)
				time.Sleep(2 * lookInterval)
				r.Stop()
				require.Equal(t, every(begin.Add(time.Minute), time.Minute, 10), s.slots())
				require.Equal(t, 1, strings.Count(log.String(), told), log.String())
			})
		})
	}
}

// TestCrashesLoseAndRepeatNoSlot runs several runners for the same schedule.
// Each believes that it owns the schedule, may be stopped at any point, and uses a store that fails
// and loses answers.
func TestCrashesLoseAndRepeatNoSlot(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				var mu sync.Mutex
				draw := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(n)
				}
				unlucky := func() bool { return draw(4) == 0 }
				s := newStage(t)
				s.set(schedule.Spec{Cron: "* * * * *", CatchUp: schedule.CatchUpAll})
				begin := time.Now().Truncate(time.Minute)
				options := s.options()
				options.Store = &lossy{faulty.Wrap(s.store, faulty.Hooks{Call: func(context.Context, string) error {
					if unlucky() {
						return persistence.ErrUnavailable
					}
					return nil
				}}), unlucky}
				options.Engine = &lossyEngine{s, unlucky}
				runners := []*Runner{Start(options), Start(options)}
				for range 100 {
					time.Sleep(time.Duration(draw(90_000)) * time.Millisecond)
					i := draw(len(runners))
					runners[i].Stop()
					runners[i] = Start(options)
				}
				time.Sleep(10 * time.Minute)
				for _, r := range runners {
					r.Stop()
				}
				end := time.Now()
				got := s.slots()
				require.Equal(t, every(begin.Add(time.Minute), time.Minute, len(got)), got)
				require.Less(t, end.Sub(begin)-time.Duration(len(got))*time.Minute, 2*time.Minute, "none is missing at the end")
			})
		})
	}
}

// lossy loses answers of writes.
type lossy struct {
	persistence.Store
	unlucky func() bool
}

func (l *lossy) PutSchedule(ctx context.Context, s persistence.Schedule) error {
	if err := l.Store.PutSchedule(ctx, s); err != nil || !l.unlucky() {
		return err
	}
	return persistence.ErrUnavailable
}

// lossyEngine refuses starts, and loses answers.
type lossyEngine struct {
	*stage
	unlucky func() bool
}

func (l *lossyEngine) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	if l.unlucky() {
		return engine.Started{}, flow.Errorf(flow.Busy, "full")
	}
	started, err := l.stage.StartTask(ctx, n)
	if l.unlucky() {
		return engine.Started{}, engine.Unable(flow.Errorf(flow.Busy, "the answer was lost"))
	}
	return started, err
}

func TestCatchUpDeterminesTheSlotsAfterADowntime(t *testing.T) {
	for catchup, want := range map[schedule.CatchUp]int{schedule.CatchUpOne: 1, schedule.CatchUpNone: 0, schedule.CatchUpAll: 180} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			s.set(schedule.Spec{Cron: "* * * * *", CatchUp: catchup})
			r := Start(s.options())
			time.Sleep(10*time.Minute + time.Second)
			r.Stop()
			require.Len(t, s.slots(), 10)
			time.Sleep(3*time.Hour + 29*time.Second)
			r = Start(s.options())
			defer r.Stop()
			time.Sleep(time.Second)
			require.Len(t, s.slots(), 10+want, catchup)
			got, err := s.store.Schedule(t.Context(), "s")
			require.NoError(t, err)
			require.EqualValues(t, 180-want, got.State.Skipped)
			time.Sleep(time.Minute)
			require.Len(t, s.slots(), 10+want+1, "then it goes on")
		})
	}
}

func TestASlotWaitsForTheRunningTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(schedule.Spec{Cron: "* * * * *", Overlap: schedule.OverlapQueue})
		r := Start(s.options())
		defer r.Stop()
		begin := time.Now().Truncate(time.Minute)
		time.Sleep(5*time.Minute + time.Second)
		require.Equal(t, every(begin.Add(time.Minute), time.Minute, 1), s.slots())
		rows, err := s.store.ListTasks(t.Context(), persistence.TaskFilter{Limit: 1})
		require.NoError(t, err)
		require.NoError(t, s.end(rows[0].ID))
		time.Sleep(2 * lookInterval)
		require.Equal(t, every(begin.Add(time.Minute), time.Minute, 2), s.slots(), "the second one waited, the others were skipped")
	})
}

func TestARunningTaskIsCanceledForTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(schedule.Spec{Cron: "* * * * *", Overlap: schedule.OverlapCancel})
		r := Start(s.options())
		defer r.Stop()
		time.Sleep(3*time.Minute + time.Second)
		require.Len(t, s.slots(), 3)
		require.Len(t, s.canceled, 2)
	})
}

func TestASlotWithoutATaskIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.set(schedule.Spec{Cron: "* * * * *"})
		options := s.options()
		options.Engine = &refusing{s}
		r := Start(options)
		defer r.Stop()
		time.Sleep(2*time.Minute + time.Second)
		got, err := s.store.Schedule(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, "params: no", got.State.Error)
		require.EqualValues(t, 2, got.State.Skipped)
		require.Empty(t, s.slots())
	})
}

type refusing struct{ *stage }

func (*refusing) StartTask(context.Context, engine.NewTask) (engine.Started, error) {
	return engine.Started{}, flow.Errorf(flow.Invalid, "params: no")
}

func TestOnlySchedulesOfOwnedShardsAreProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		set := s.set(schedule.Spec{Cron: "* * * * *"})
		mine := persistence.ShardSet{(persistence.ShardOf(set.ID) + 1) % persistence.Shards}
		var mu sync.Mutex
		options := s.options()
		options.Shards = func() persistence.ShardSet {
			mu.Lock()
			defer mu.Unlock()
			return mine
		}
		r := Start(options)
		defer r.Stop()
		time.Sleep(3*time.Minute + 30*time.Second)
		require.Empty(t, s.slots())
		mu.Lock()
		mine = persistence.ShardSet{persistence.ShardOf(set.ID)}
		mu.Unlock()
		r.Look()
		time.Sleep(time.Second)
		require.Len(t, s.slots(), 1, "whoever gets the shard catches up")
	})
}
