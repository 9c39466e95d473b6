package errands

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/troupe-engine/troupe/api/wire"
)

// testSchedule is a schedule that starts tasks during a run.
type testSchedule struct {
	name string
	step time.Duration
	spec wire.ScheduleSpec
}

// testSchedules have a slot at each multiple of their step.
var testSchedules = []testSchedule{
	{"tick", time.Second, wire.ScheduleSpec{Flow: "tick", Every: "1s"}},
	{"toll", 3 * time.Second, wire.ScheduleSpec{Flow: "toll", Cron: "*/3 * * * * *"}},
}

// Clocks are schedules with a task for each slot, including slots that were handled late.
type Clocks struct {
	from, until time.Time
	first       map[string]time.Time // the first slot after the creation of each schedule
}

// startClocks creates the schedules, which start firing soon.
func startClocks(ctx context.Context, c *Client) (*Clocks, error) {
	k := &Clocks{from: time.Now().Add(4 * time.Second).Truncate(3 * time.Second), first: map[string]time.Time{}}
	for _, clock := range testSchedules {
		spec, on := clock.spec, true
		spec.Enabled, spec.CatchUp, spec.Overlap, spec.Start = &on, "all", "allow", wire.Time{Time: k.from}
		spec.Params = json.RawMessage(`{"n": 21}`)
		var set wire.ScheduleResult
		if err := c.Insist(ctx, Request{Method: "PUT", Path: "/v1/schedules/" + clock.name, Body: spec}, &set); err != nil {
			return nil, err
		}
		if set.NextAt.IsZero() {
			return nil, fmt.Errorf("the schedule %s has no next slot", clock.name)
		}
		k.first[clock.name] = set.NextAt.Time
	}
	return k, nil
}

// awaitSlots waits until each slot up to now has had its task and all these tasks have ended.
func (k *Clocks) awaitSlots(ctx context.Context, c *Client) error {
	k.until = time.Now()
	for _, clock := range testSchedules {
		path := "/v1/schedules/" + clock.name
		err := pollUntil(ctx, func() (bool, error) {
			var s wire.Schedule
			err := c.Insist(ctx, Request{Method: "GET", Path: path}, &s)
			return s.LastSlot.Add(clock.step).After(k.until), err
		})
		if err != nil {
			return fmt.Errorf("the slots of schedule %s up to %v: %w", clock.name, k.until, err)
		}
		if err := c.Insist(ctx, Request{Method: "POST", Path: path + "/disable"}, &wire.Schedule{}); err != nil {
			return err
		}
		if err := pollUntil(ctx, func() (bool, error) { return c.isScheduleIdle(ctx, clock.name) }); err != nil {
			return fmt.Errorf("the tasks of schedule %s: %w", clock.name, err)
		}
	}
	return nil
}

// isScheduleIdle reports whether all tasks of a schedule have ended. It waits first, so that a task
// about to start when the schedule was disabled has started.
func (c *Client) isScheduleIdle(ctx context.Context, schedule string) (bool, error) {
	sleepContext(ctx, 500*time.Millisecond)
	var running wire.Page[wire.TaskSummary]
	path := "/v1/tasks?label=schedule:" + schedule + "&state=pending&state=running&state=canceling"
	err := c.Insist(ctx, Request{Method: "GET", Path: path}, &running)
	return len(running.Items) == 0, err
}

// pollUntil calls done repeatedly until it returns true or an error.
func pollUntil(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		sleepContext(ctx, retryPause)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// checkSlots checks that each slot of the run has exactly one task, and returns the number of
// slots.
func (k *Clocks) checkSlots(t *testing.T, f Figures) (slots int) {
	t.Helper()
	for _, clock := range testSchedules {
		tasks := f.slots[clock.name]
		for slot := k.first[clock.name]; !slot.After(k.until); slot = slot.Add(clock.step) {
			slots++
			assert.Len(t, tasks[slot.UTC().Format(time.RFC3339)], 1, "tasks of schedule %s for its slot %v", clock.name, slot)
		}
		for slot, ids := range tasks {
			assert.Len(t, ids, 1, "tasks of schedule %s for %s", clock.name, slot)
			at, err := time.Parse(time.RFC3339, slot)
			assert.NoError(t, err)
			assert.False(t, at.Before(k.from) || at.Sub(k.from)%clock.step != 0, "schedule %s has no slot %s", clock.name, slot)
		}
	}
	return slots
}
