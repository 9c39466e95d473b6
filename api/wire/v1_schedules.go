package wire

import "encoding/json"

// ScheduleSpec is a schedule for tasks of a flow. Either cron or every sets the times.
type ScheduleSpec struct {
	Flow     string            `json:"flow" minLength:"1" maxLength:"128" doc:"Slug of the flow, or its ID."`
	Cron     string            `json:"cron,omitempty" maxLength:"1000" doc:"Minute, hour, day of the month, month and weekday as in crontab. With six fields, the first one is the second. Or @hourly, @daily, @weekly, @monthly, @yearly." example:"30 2 * * 1-5"`
	Every    string            `json:"every,omitempty" maxLength:"100" doc:"Interval of the slots, instead of cron; it counts from start, or from the beginning of 1970." example:"15m"`
	Timezone string            `json:"timezone,omitempty" maxLength:"100" doc:"Time zone of cron: a name of the IANA database; absent = UTC." example:"Europe/Berlin"`
	DST      string            `json:"dst,omitempty" maxLength:"40" doc:"Handling of clock changes for cron, as one word or one of each kind. Times that occur twice because the clock goes back: once (the first time) or twice. Times that do not exist because it goes forward: skip (no task) or shift (the task starts when the clock changes). The default fits the expression: twice,skip if it fires every hour, twice,shift if it has steps of minutes within some hours, otherwise once,shift." example:"once,shift"`
	Enabled  *bool             `json:"enabled,omitempty" doc:"False: the schedule does not fire. Absent: unchanged; a new schedule fires."`
	CatchUp  string            `json:"catchup,omitempty" enum:"one,none,all" doc:"Handling of missed slots: the last one fires (one, the default), none fires, or all fire, at most 1,000."`
	Overlap  string            `json:"overlap,omitempty" enum:"allow,skip,queue,cancel_running" doc:"Handling of a slot while a task of the schedule is running: it fires (allow, the default), it is skipped, one waits and others are skipped (queue), or the running tasks are canceled."`
	Jitter   string            `json:"jitter,omitempty" maxLength:"100" doc:"Maximum delay of a task after its slot, at most 1h. The delay of a slot is the same on all members." example:"30s"`
	Start    Time              `json:"start,omitzero" doc:"Time before which there are no slots."`
	End      Time              `json:"end,omitzero" doc:"Time from which on there are no slots."`
	Params   json.RawMessage   `json:"params,omitempty" doc:"Params of its tasks."`
	Labels   map[string]string `json:"labels,omitempty" maxProperties:"61" nullable:"true" doc:"Labels of its tasks, in addition to triggered_by, schedule and slot, which name their origin."`
}

// Schedule starts tasks of a flow by the clock.
type Schedule struct {
	Name     string            `json:"name" doc:"Name of the schedule."`
	Flow     string            `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	Cron     string            `json:"cron,omitempty"`
	Every    string            `json:"every,omitempty"`
	Timezone string            `json:"timezone" doc:"Time zone of cron."`
	DST      string            `json:"dst,omitempty" doc:"Handling of clock changes for cron, including the default." example:"once,shift"`
	Enabled  bool              `json:"enabled" doc:"False if the schedule does not fire."`
	CatchUp  string            `json:"catchup" enum:"one,none,all"`
	Overlap  string            `json:"overlap" enum:"allow,skip,queue,cancel_running"`
	Jitter   string            `json:"jitter,omitempty"`
	Start    Time              `json:"start,omitzero"`
	End      Time              `json:"end,omitzero"`
	Params   json.RawMessage   `json:"params,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`

	Version      int          `json:"version,omitempty" doc:"Number of the flow's version that defines it; absent if it was set by a request."`
	NextAt       Time         `json:"next_at,omitzero" doc:"Time of the next slot; absent if there is none, or the schedule does not fire."`
	ClockChange  *ClockChange `json:"clock_change,omitempty" doc:"Effect of the next clock change in the time zone on its slots; absent if there is none, or for every."`
	WaitingSlot  Time         `json:"waiting_slot,omitzero" doc:"Slot that waits for the end of running tasks."`
	LastSlot     Time         `json:"last_slot,omitzero" doc:"Last slot with a task."`
	LastTask     string       `json:"last_task,omitempty" doc:"ID of the task of the last slot."`
	Error        string       `json:"error,omitempty" doc:"Reason why a later slot could not start a task."`
	StartedCount int64        `json:"started_count" doc:"Number of slots that started a task."`
	SkippedCount int64        `json:"skipped_count" doc:"Number of slots without a task because of catchup, overlap or an error; of very many missed ones not all are counted."`
	CreatedAt    Time         `json:"created_at" doc:"Time when the schedule was created."`
	UpdatedAt    Time         `json:"updated_at" doc:"Time of the last change by a request or a definition."`
}

// ScheduleResult is the answer to a ScheduleSpec.
type ScheduleResult struct {
	Schedule
	Created  bool     `json:"created" doc:"True if the schedule was created; false if it existed already."`
	Warnings []string `json:"warnings,omitempty" doc:"Settings that may be mistakes."`
	Notes    []string `json:"notes,omitempty" doc:"Effects of the expression that may surprise."`
}

// ClockChange is a change of the clock in a time zone, and its effect on slots.
type ClockChange struct {
	At     Time   `json:"at" doc:"Time of the change."`
	Before string `json:"before" doc:"Local time just before the change, with its offset from UTC." example:"2026-10-25T03:00:00+02:00"`
	After  string `json:"after" doc:"Local time just after the change, with its offset from UTC." example:"2026-10-25T02:00:00+01:00"`
	Note   string `json:"note" doc:"Effect on the slots." example:"in Europe/Berlin the clock is put back from 2026-10-25 03:00 to 2026-10-25 02:00: 2026-10-25 02:30 comes twice, and fires the first time"`
}

// Slot is a time at which a schedule fires.
type Slot struct {
	Slot  Time     `json:"slot" doc:"Time of the slot."`
	Local string   `json:"local" doc:"Local time of the slot, with its offset from UTC." example:"2026-10-25T02:30:00+02:00"`
	Notes []string `json:"notes,omitempty" doc:"Effects of clock changes: local times before it that do not exist, or that occur twice."`
}

// Slots lists the next slots of a schedule.
type Slots struct {
	Items       []Slot       `json:"items" doc:"Slots in order of time, fewer than requested if there are no more; never null."`
	ClockChange *ClockChange `json:"clock_change,omitempty" doc:"First clock change in this time; absent if there is none."`
}

// TriggerRequest is a request to start a task of a schedule now, regardless of slots and policies.
type TriggerRequest struct {
	Params         json.RawMessage `json:"params,omitempty" doc:"Params instead of those of the schedule."`
	IdempotencyKey string          `json:"idempotency_key,omitempty" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task."`
}

// BackfillRequest is a request to start tasks for past slots.
type BackfillRequest struct {
	From   Time `json:"from" doc:"Earliest time of the slots."`
	To     Time `json:"to" doc:"Time before which the slots are; it must not be in the future."`
	DryRun bool `json:"dry_run,omitempty" doc:"True to list the slots and start nothing."`
}

// BackfillResult is the answer to a BackfillRequest.
type BackfillResult struct {
	Items   []BackfilledSlot `json:"items" doc:"Slots and their tasks; never null."`
	Created int              `json:"created" doc:"Number of started tasks."`
}

// BackfilledSlot is a past slot and its task.
type BackfilledSlot struct {
	Slot    Time   `json:"slot" doc:"Time of the slot."`
	Task    string `json:"task" doc:"ID of the task; in a dry run, of the existing task or of the one that would be started."`
	Created bool   `json:"created" doc:"True if the task was started; false if the slot had a task before, or would start none."`
}
