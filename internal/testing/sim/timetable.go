package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/schedule"
	timers "github.com/troupe-engine/troupe/member/schedules"
	"github.com/troupe-engine/troupe/persistence"
)

// scheduleUser runs a schedule and checks that each slot has exactly one task, however often
// members change, and that the schedule's policies are respected.
type scheduleUser struct {
	*simRun
	spec  schedule.Spec
	after int64             // slots after this time count
	slots map[string]string // task of each slot
	ended bool
}

// Names of the schedule and its flow.
const (
	timetableName    = "timetable"
	timetableID      = "timetable-id"
	timetableVersion = "timetable-version"
	timetableFlow    = "timetable-flow"
)

// addTimetable draws a schedule, and a flow whose tasks take a while.
func (st *simRun) addTimetable() {
	second := time.Second.Milliseconds()
	t := &scheduleUser{simRun: st, slots: map[string]string{},
		spec: schedule.Spec{EveryMS: pickOne(st.w.rng, second, 2*second, 3*second),
			JitterMS: pickOne[int64](st.w.rng, 0, 0, 700),
			CatchUp: pickOne(st.w.rng, schedule.CatchUpAll, schedule.CatchUpAll,
				schedule.CatchUpOne, schedule.CatchUpNone),
			Overlap: pickOne(st.w.rng, schedule.OverlapAllow, schedule.OverlapSkip,
				schedule.OverlapQueue, schedule.OverlapCancel)}}
	definition, _ := json.Marshal(object{"start": "a",
		"nodes": object{"a": object{"kind": "timer",
			"params": object{"delay_ms": pickOne(st.w.rng, 0, 300, 2500, 6000)}}}})
	plan, err := planOf(definition, st.limits)
	if err != nil {
		st.w.failRun("flow %s: %v", definition, err)
		return
	}
	st.timetable, st.check.timetable = t, t
	st.check.notePlan(timetableVersion, plan)
	st.store.versions[timetableVersion] = persistence.Version{ID: timetableVersion,
		FlowID: timetableFlow, Number: 1, Status: "published", Definition: definition}
}

func planOf(text []byte, limits flow.Limits) (*flow.Plan, error) {
	d, err := definition.Parse(text)
	if err != nil {
		return nil, err
	}
	plan, problems := compile.Definition(d, limits)
	return plan, problems.Err()
}

// runSchedule sets the schedule, lets it fire for a while, and waits for the end of its tasks.
func (t *scheduleUser) runSchedule() {
	t.w.sleepFor(t.w.upTo(3 * time.Second))
	now := t.w.storeNow().UnixMilli()
	t.spec.EndAt = now + t.spec.EveryMS*int64(3+t.w.rng.IntN(10))
	t.spec, t.after = t.spec.OrDefault(), now
	s := persistence.Schedule{ID: timetableID, Name: timetableName, FlowID: timetableFlow,
		Spec: t.spec, Enabled: true, State: schedule.State{After: now}}
	if err := cmp.Or(s.Look(), t.store.PutSchedule(context.Background(), s)); err != nil {
		t.w.failRun("the schedule cannot be set: %v", err)
		return
	}
	t.w.addTrace("the schedule is %+v", t.spec)
	for !t.isOver() {
		t.w.sleepFor(200 * time.Millisecond)
	}
	t.verifySlots()
	t.ended = true
}

// isOver reports whether no slot is open.
func (t *scheduleUser) isOver() bool {
	s, err := t.store.Schedule(context.Background(), timetableName)
	if err != nil || t.w.storeNow().UnixMilli() < t.spec.EndAt || s.Due != 0 {
		return false
	}
	for _, task := range t.slots {
		if !t.check.tasks[task].ended {
			return false
		}
	}
	return true
}

// verifySlots compares the started tasks with the policies.
func (t *scheduleUser) verifySlots() {
	s, err := t.store.Schedule(context.Background(), timetableName)
	rule, bad := schedule.Read(t.spec)
	if err != nil || bad != nil {
		t.w.failRun("the schedule is gone, or makes no sense: %v %v", err, bad)
		return
	}
	all, _ := rule.Slots(t.after+1, t.spec.EndAt, schedule.MaxCatchUp)
	t.counts.Slots += len(t.slots)
	if s.State.Begun != int64(len(t.slots)) || s.State.Begun+s.State.Skipped != int64(len(all)) {
		t.w.failRun("the schedule says that %d slots had a task and %d were passed over, of %d; "+
			"there are %d tasks", s.State.Begun, s.State.Skipped, len(all), len(t.slots))
	}
	for i, slot := range all {
		due := t.spec.CatchUp == schedule.CatchUpAll || t.spec.CatchUp == schedule.CatchUpOne && i == len(all)-1
		if due && t.spec.Overlap == schedule.OverlapAllow && t.slots[slotText(slot)] == "" {
			t.w.failRun("slot %d was missed", slot)
		}
	}
}

func slotText(slot int64) string { return time.UnixMilli(slot).UTC().Format(time.RFC3339) }

// checkBegin checks the new task of a slot.
func (t *scheduleUser) checkBegin(c *persistence.Commit) {
	slot := c.Create.Labels[schedule.LabelSlot]
	at, err := time.Parse(time.RFC3339, slot)
	switch before := t.slots[slot]; {
	case err != nil || c.Create.Labels[schedule.LabelName] != timetableName:
		t.w.failRun("task %s begins by the clock with the labels %v", c.Task, c.Create.Labels)
	case before != "":
		t.w.failRun("slot %s has task %s, and %s", slot, before, c.Task)
	case t.w.storeNow().Add(t.w.faults.clockLead()).Before(at):
		t.w.failRun("slot %s has a task %s before its time", slot, at.Sub(t.w.storeNow()))
	}
	for _, other := range t.slots {
		if o := t.check.tasks[other]; !o.ended && !t.canOverlap(o) {
			t.w.failRun("slot %s has a task while that of another one goes on, and overlap is %s", slot, t.spec.Overlap)
		}
	}
	t.slots[slot] = c.Task
}

// canOverlap reports whether a task may still run when the next task of the schedule starts.
func (t *scheduleUser) canOverlap(o *taskShadow) bool {
	return t.spec.Overlap == schedule.OverlapAllow || t.spec.Overlap == schedule.OverlapCancel && o.state.CancelAt != 0
}

// startSchedules starts the member's schedule runner.
func (a *simMember) startSchedules(store persistence.Store) {
	if a.st.timetable == nil {
		return
	}
	var asked engine.Engine = a.Member
	if a.clusterMember != nil {
		asked = a.clusterMember.router
	}
	if a.st.options.Keyless {
		asked = keylessEngine{asked}
	}
	a.timer = timers.Start(timers.Options{Store: store, Engine: asked, Shards: a.Shards, Host: a.h.baseHost(), Logger: a.st.log})
}

// keylessEngine starts tasks without an idempotency key.
type keylessEngine struct{ engine.Engine }

func (k keylessEngine) StartTask(ctx context.Context, n engine.NewTask) (engine.Started, error) {
	n.Key = ""
	return k.Engine.StartTask(ctx, n)
}

func (m *storeModel) PutSchedule(_ context.Context, s persistence.Schedule) error {
	err := m.schedules.Put(s)
	m.w.addTrace("schedule %d is put: %+v due %d: %v", s.Revision, s.State, s.Due, err)
	return err
}

func (m *storeModel) Schedule(_ context.Context, name string) (*persistence.Schedule, error) {
	some := m.schedules.Of(func(s *persistence.Schedule) bool { return s.Name == name })
	if len(some) == 0 {
		return nil, persistence.ErrNotFound
	}
	return &some[0], nil
}

func (m *storeModel) DueSchedules(_ context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	return m.schedules.Due(shards, by, limit), nil
}

// ListTasks implements only the queries for tasks of schedules.
func (m *storeModel) ListTasks(_ context.Context, f persistence.TaskFilter) (rows []persistence.TaskRow, err error) {
	for _, t := range m.tasks {
		name := f.Labels[schedule.LabelName]
		if t.FlowID == f.FlowID && t.Labels[schedule.LabelName] == name && slices.Contains(f.Statuses, t.Status) {
			rows = append(rows, t.TaskRow)
		}
	}
	slices.SortFunc(rows, func(a, b persistence.TaskRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows, nil
}

func (d *storeConn) PutSchedule(ctx context.Context, s persistence.Schedule) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.PutSchedule(ctx, s) })
	return err
}

func (d *storeConn) DueSchedules(ctx context.Context, shards persistence.ShardSet, by int64, limit int) ([]persistence.Schedule, error) {
	return callStore(d, func() ([]persistence.Schedule, error) { return d.Store.DueSchedules(ctx, shards, by, limit) })
}

func (d *storeConn) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	return callStore(d, func() ([]persistence.TaskRow, error) { return d.Store.ListTasks(ctx, f) })
}
