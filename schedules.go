package troupe

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// Schedule starts tasks of a flow at given times.
	Schedule = wire.Schedule
	// ScheduleSpec holds the times of a schedule, and the input of its tasks.
	ScheduleSpec = wire.ScheduleSpec
	// SetSchedule creates a schedule or changes it.
	SetSchedule = wire.ScheduleResult
	// Slot is one time of a schedule.
	Slot = wire.Slot
	// Slots lists times of a schedule.
	Slots = wire.Slots
	// ClockChange is a change between summer and winter time among slots.
	ClockChange = wire.ClockChange
	// Trigger starts a task of a schedule at once.
	Trigger = wire.TriggerRequest
	// Backfill starts the tasks of slots in the past.
	Backfill = wire.BackfillRequest
	// Backfilled reports the tasks that a backfill started.
	Backfilled = wire.BackfillResult
	// Triggered reports the task that a trigger started.
	Triggered = wire.StartResult
)

// Schedules lists schedules by name: those of one flow, or of all flows for "".
func (e *scheduleCalls) Schedules(ctx context.Context, flow string, p Paging) (*Page[Schedule], error) {
	return withTypedError(e.client.Schedules(ctx, flow, p))
}

// Schedule reads a schedule.
func (e *scheduleCalls) Schedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.Schedule(ctx, name))
}

// SetSchedule creates or changes a schedule: from now on tasks of the flow start by the clock.
func (e *scheduleCalls) SetSchedule(ctx context.Context, name string, spec ScheduleSpec) (*SetSchedule, error) {
	return withTypedError(e.client.SetSchedule(ctx, name, spec))
}

// DeleteSchedule deletes a schedule; its tasks stay as they are.
func (e *scheduleCalls) DeleteSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.DeleteSchedule(ctx, name))
}

// EnableSchedule enables a schedule. Slots that passed while it was disabled are not made up.
func (e *scheduleCalls) EnableSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.EnableSchedule(ctx, name))
}

// DisableSchedule disables a schedule.
func (e *scheduleCalls) DisableSchedule(ctx context.Context, name string) (*Schedule, error) {
	return withTypedError(e.client.DisableSchedule(ctx, name))
}

// NextSlots returns the next slots of a schedule from a time on; the zero time is now.
func (e *scheduleCalls) NextSlots(ctx context.Context, name string, count int, from time.Time) (*Slots, error) {
	return withTypedError(e.client.NextSlots(ctx, name, count, from))
}

// PreviewSchedule returns the slots that a schedule would have. Nothing is stored.
func (e *scheduleCalls) PreviewSchedule(ctx context.Context, spec ScheduleSpec, count int, from time.Time) (*Slots, error) {
	return withTypedError(e.client.PreviewSchedule(ctx, spec, count, from))
}

// TriggerSchedule starts a task of a schedule now, regardless of its slots and policies.
func (e *scheduleCalls) TriggerSchedule(ctx context.Context, name string, t Trigger) (*Triggered, error) {
	return withTypedError(e.client.TriggerSchedule(ctx, name, t))
}

// BackfillSchedule starts tasks for slots that have passed, or in a dry run lists those slots. A
// slot that already had its task gets no second one.
func (e *scheduleCalls) BackfillSchedule(ctx context.Context, name string, b Backfill) (*Backfilled, error) {
	return withTypedError(e.client.BackfillSchedule(ctx, name, b))
}
