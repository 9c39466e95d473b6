package troupe

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// Schedule starts tasks of a flow at given times.
	Schedule = wire.Schedule
	// ScheduleSpec says when a schedule starts tasks, and with which input.
	ScheduleSpec = wire.ScheduleSpec
	// SetSchedule creates a schedule or changes it.
	SetSchedule = wire.SetSchedule
	// Slot is one time of a schedule.
	Slot = wire.Slot
	// Slots lists times of a schedule.
	Slots = wire.Slots
	// ClockChange is a change between summer and winter time among slots.
	ClockChange = wire.ClockChange
	// Trigger starts a task of a schedule at once.
	Trigger = wire.Trigger
	// Backfill starts the tasks of slots in the past.
	Backfill = wire.Backfill
	// Backfilled reports the tasks that a backfill started.
	Backfilled = wire.Backfilled
	// Triggered reports the task that a trigger started.
	Triggered = wire.Started
)

// Schedules lists schedules by name, those of one flow or, for "", of all.
func (e *Engine) Schedules(ctx context.Context, flow string, p Paging) (*Page[Schedule], error) {
	return withTypedError(e.client.Schedules(ctx, flow, p))
}

// Schedule reads a schedule.
func (e *Engine) Schedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.Schedule(ctx, name))
}

// SetSchedule makes a schedule, or changes it: from now on tasks of a flow begin by the clock.
func (e *Engine) SetSchedule(ctx context.Context, name string, spec ScheduleSpec) (*SetSchedule, error) {
	return withTypedError(e.client.SetSchedule(ctx, name, spec))
}

// DeleteSchedule deletes a schedule; its tasks stay as they are.
func (e *Engine) DeleteSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.DeleteSchedule(ctx, name))
}

// EnableSchedule has a schedule fire. What was due while it did not is not caught up.
func (e *Engine) EnableSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.EnableSchedule(ctx, name))
}

// DisableSchedule has a schedule fire no longer.
func (e *Engine) DisableSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.DisableSchedule(ctx, name))
}

// NextSlots returns the next slots of a schedule from a time on, the zero one = from now on.
func (e *Engine) NextSlots(ctx context.Context, name string, count int, from time.Time) (*Slots, error) {
	return withTypedError(e.client.NextSlots(ctx, name, count, from))
}

// PreviewSchedule returns the slots that a schedule would have. Nothing is kept.
func (e *Engine) PreviewSchedule(ctx context.Context, spec ScheduleSpec, count int, from time.Time) (*Slots, error) {
	return withTypedError(e.client.PreviewSchedule(ctx, spec, count, from))
}

// TriggerSchedule begins a task of a schedule now, whatever its slots and policies say.
func (e *Engine) TriggerSchedule(ctx context.Context, name string, t Trigger) (*Triggered, error) {
	return withTypedError(e.client.TriggerSchedule(ctx, name, t))
}

// BackfillSchedule begins tasks for slots that have passed, or tells in a dry run for which. A slot
// that has had its task gets no other one.
func (e *Engine) BackfillSchedule(ctx context.Context, name string, b Backfill) (*Backfilled, error) {
	return withTypedError(e.client.BackfillSchedule(ctx, name, b))
}
