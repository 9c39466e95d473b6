package wire

import "encoding/json"

// Job is an attempt that a worker has to carry out, and later its outcome.
type Job struct {
	ID   string `json:"id" doc:"names the attempt"`
	Key  string `json:"key" doc:"idempotency key for effects outside, such as a payment: the same for all attempts"`
	Task string `json:"task"`
	Place
	Branch  string          `json:"branch,omitempty" doc:"the unit's name"`
	Service string          `json:"service,omitempty"`
	State   string          `json:"state" enum:"pending,claimed,completed,failed,timeout"`
	Queue   bool            `json:"queue,omitempty" doc:"it travels by the queue"`
	Worker  string          `json:"worker,omitempty" doc:"who has it, or had it at the end"`
	Note    string          `json:"note,omitempty" doc:"what its worker calls its state"`
	Input   json.RawMessage `json:"input,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   string          `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON that its carrier has told beside the text"`

	StartedAt Time `json:"started_at" doc:"when the attempt began"`
	EndedAt   Time `json:"ended_at,omitzero"`
}

// Log is the output of a script or a worker while it carried out a job.
type Log struct {
	Content string `json:"content"`
}

// LogLine is a line that a job has printed.
type LogLine struct {
	At     Time   `json:"at,omitzero" doc:"when; absent in what is sent = now"`
	Stream string `json:"stream,omitempty" enum:"log,stdout,stderr" default:"log" doc:"where it was printed: by a program to stdout or stderr, or else by whoever carries out the job"`
	Text   string `json:"text" doc:"without the end of the line"`
	Part   bool   `json:"part,omitempty" doc:"the line goes on with the next one of its stream"`
}

// LogEntry is a line of a task's logs, printed by one of its attempts.
type LogEntry struct {
	ID  string `json:"id" doc:"position among all lines of the task" example:"7.2"`
	Job string `json:"job" doc:"id of the attempt's job"`
	Place
	LogLine
	Missing *LogMissing `json:"missing,omitempty" doc:"what was before it in the attempt's log and is not kept any more"`
}

// LogMissing is the part of an attempt's log that was cut off. The newest part of each log is kept.
type LogMissing struct {
	Lines int64 `json:"lines"`
	Chars int64 `json:"chars"`
}

// Release returns a claimed job to the queue.
type Release struct {
	Token string `json:"token" minLength:"1" maxLength:"256" doc:"of the claim, as the answer of the poll told it"`
}

// WaitingJob is a job in the queue that is not finished.
type WaitingJob struct {
	ID         string `json:"id"`
	Task       string `json:"task"`
	Service    string `json:"service"`
	State      string `json:"state" enum:"pending,claimed" doc:"claimed = a poller has it"`
	Worker     string `json:"worker,omitempty" doc:"who has it"`
	EnqueuedAt Time   `json:"enqueued_at"`
}

// Queue counts the jobs for the pollers of a service, claimed jobs included.
type Queue struct {
	Service string `json:"service"`
	Waiting int    `json:"waiting"`
	Tasks   int    `json:"tasks" doc:"whose jobs they are: how many GET /v1/tasks?queued=SERVICE lists"`
	Workers int    `json:"workers" doc:"that are online and offer the service"`
	Oldest  Time   `json:"oldest" doc:"since when the first one waits"`
}

// KnownWorker is a registered worker as /v1 shows it.
type KnownWorker struct {
	ID            string   `json:"id"`
	URL           string   `json:"url,omitempty"`
	Type          string   `json:"type" example:"http"`
	Services      []string `json:"services" doc:"never null"`
	Labels        []string `json:"labels,omitempty" doc:"in order; jobs that ask for labels go to workers that have them all"`
	Load          int      `json:"load" doc:"jobs in progress, as it says"`
	State         string   `json:"state" enum:"online,offline"`
	LastHeartbeat Time     `json:"last_heartbeat"`
	RegisteredAt  Time     `json:"registered_at,omitzero" doc:"for the first time"`
}
