package wire

import "encoding/json"

// ScheduleSpec is a schedule for tasks of a flow. Either cron or every sets the times.
type ScheduleSpec struct {
	Flow     string            `json:"flow" minLength:"1" maxLength:"128" doc:"slug of the flow, or its id"`
	Cron     string            `json:"cron,omitempty" maxLength:"1000" doc:"minute, hour, day of the month, month and weekday as in crontab, with a sixth field for the second in front if there are six; or @hourly, @daily, @weekly, @monthly, @yearly" example:"30 2 * * 1-5"`
	Every    string            `json:"every,omitempty" maxLength:"100" doc:"in place of cron: a slot each such time, counted from start or else from the beginning of 1970" example:"15m"`
	Timezone string            `json:"timezone,omitempty" maxLength:"100" doc:"of cron, a name of the IANA database; absent = UTC" example:"Europe/Berlin"`
	DST      string            `json:"dst,omitempty" maxLength:"40" doc:"of cron: what becomes of times that come twice because the clock is put back (once, the first time; or twice) and of those that do not exist because it is put forward (skip: they are left out; shift: they fire when it is), one word or one of each. What is not said suits the expression: one that fires every hour goes through both (twice,skip), one with steps of minutes within some hours does twice,shift, others once,shift" example:"once,shift"`
	Enabled  *bool             `json:"enabled,omitempty" doc:"false: it does not fire; absent = as it was, a new one fires"`
	CatchUp  string            `json:"catchup,omitempty" enum:"one,none,all" doc:"what becomes of slots that nobody looked at in time: the last one of them fires (one, the default), none, or all, 1,000 at most"`
	Overlap  string            `json:"overlap,omitempty" enum:"allow,skip,queue,cancel_running" doc:"what becomes of a slot while a task of the schedule has not ended: it fires (allow, the default), it is skipped, one waits and others are skipped (queue), or those that run are canceled"`
	Jitter   string            `json:"jitter,omitempty" maxLength:"100" doc:"how much later than its slot a task may begin, 1h at most; for each slot it is the same whoever computes it" example:"30s"`
	Start    Time              `json:"start,omitzero" doc:"no slot is before it"`
	End      Time              `json:"end,omitzero" doc:"all slots are before it"`
	Params   json.RawMessage   `json:"params,omitempty" doc:"that its tasks are started with"`
	Labels   map[string]string `json:"labels,omitempty" maxProperties:"61" nullable:"true" doc:"of its tasks, beside triggered_by, schedule and slot, which tell what started them"`
}

// Schedule starts tasks of a flow by the clock.
type Schedule struct {
	Name     string            `json:"name"`
	Flow     string            `json:"flow" doc:"slug of the flow, or its id when it has none"`
	Cron     string            `json:"cron,omitempty"`
	Every    string            `json:"every,omitempty"`
	Timezone string            `json:"timezone" doc:"of cron"`
	DST      string            `json:"dst,omitempty" doc:"of cron: what becomes of times that come twice, and of those that do not exist, also where nothing was said about it" example:"once,shift"`
	Enabled  bool              `json:"enabled"`
	CatchUp  string            `json:"catchup" enum:"one,none,all"`
	Overlap  string            `json:"overlap" enum:"allow,skip,queue,cancel_running"`
	Jitter   string            `json:"jitter,omitempty"`
	Start    Time              `json:"start,omitzero"`
	End      Time              `json:"end,omitzero"`
	Params   json.RawMessage   `json:"params,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`

	Version     int          `json:"version,omitempty" doc:"number of the flow's version whose definition says when it fires; absent when it was set by hand"`
	Next        Time         `json:"next,omitzero" doc:"the next slot; absent when there is none, or it does not fire"`
	ClockChange *ClockChange `json:"clock_change,omitempty" doc:"what becomes of its slots when the clock of its time zone is next put forward or back; absent when it never is, or for every"`
	Waiting     Time         `json:"waiting,omitzero" doc:"the slot that waits for the end of what runs"`
	LastSlot    Time         `json:"last_slot,omitzero" doc:"the last one that had a task …"`
	LastTask    string       `json:"last_task,omitempty" doc:"… and its id"`
	Error       string       `json:"error,omitempty" doc:"why a later slot could have no task"`
	Begun       int64        `json:"begun" doc:"how many slots had a task"`
	Skipped     int64        `json:"skipped" doc:"how many were passed over by catchup and overlap, or could have no task; of very many missed ones not all are counted"`
	CreatedAt   Time         `json:"created_at"`
	UpdatedAt   Time         `json:"updated_at" doc:"when it was changed by somebody"`
}

// SetSchedule is the answer to a ScheduleSpec.
type SetSchedule struct {
	Schedule
	Created  bool     `json:"created" doc:"false when there was one of this name"`
	Warnings []string `json:"warnings,omitempty" doc:"what may not be what was meant"`
	Notes    []string `json:"notes,omitempty" doc:"what the expression does that may surprise"`
}

// ClockChange is a change of the clock in a time zone, and its effect on slots.
type ClockChange struct {
	At     Time   `json:"at"`
	Before string `json:"before" doc:"what the wall clock has come to then, with its distance from UTC" example:"2026-10-25T03:00:00+02:00"`
	After  string `json:"after" doc:"what it shows from then on" example:"2026-10-25T02:00:00+01:00"`
	Note   string `json:"note" doc:"what that does to the slots" example:"in Europe/Berlin the clock is put back from 2026-10-25 03:00 to 2026-10-25 02:00: 2026-10-25 02:30 comes twice, and fires the first time"`
}

// Slot is a time at which a schedule fires.
type Slot struct {
	Slot  Time     `json:"slot"`
	Local string   `json:"local" doc:"what the wall clock shows then, with its distance from UTC" example:"2026-10-25T02:30:00+02:00"`
	Notes []string `json:"notes,omitempty" doc:"what becomes of times of the wall clock before it that do not exist, or if it comes twice"`
}

// Slots holds the next slots.
type Slots struct {
	Items       []Slot       `json:"items" doc:"never null; fewer than asked for when there are no more"`
	ClockChange *ClockChange `json:"clock_change,omitempty" doc:"the first change of the clock from then on; absent when there is none"`
}

// Trigger is a request to start a task of a schedule now, regardless of its slots and policies.
type Trigger struct {
	Params         json.RawMessage `json:"params,omitempty" doc:"in place of those of the schedule"`
	IdempotencyKey string          `json:"idempotency_key,omitempty" maxLength:"200" doc:"the same key for the same flow is the same task"`
}

// Backfill is a request to start tasks for past slots.
type Backfill struct {
	From   Time `json:"from" doc:"the first slot is then or later"`
	To     Time `json:"to" doc:"all slots are before it, and have passed"`
	DryRun bool `json:"dry_run,omitempty" doc:"tells the slots and starts nothing"`
}

// Backfilled is the answer to a Backfill.
type Backfilled struct {
	Items   []BackfilledSlot `json:"items" doc:"never null"`
	Created int              `json:"created" doc:"how many tasks began"`
}

// BackfilledSlot is a past slot and its task.
type BackfilledSlot struct {
	Slot    Time   `json:"slot"`
	Task    string `json:"task" doc:"id of the task; in a dry run that of the one that there is or would be"`
	Created bool   `json:"created" doc:"false when the slot had a task before, or would have none begin"`
}
