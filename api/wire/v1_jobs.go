package wire

import "encoding/json"

// Job is an attempt that a carrier has to carry out, and its outcome after the end.
type Job struct {
	ID   string `json:"id" doc:"ID of the attempt."`
	Key  string `json:"key" doc:"Idempotency key for external effects, such as a payment; the same for all attempts."`
	Task string `json:"task" doc:"ID of the task."`
	Place
	Branch     string          `json:"branch,omitempty" doc:"Name of the unit."`
	Service    string          `json:"service,omitempty" doc:"Service of the job."`
	State      string          `json:"state" enum:"pending,claimed,completed,failed,timeout" doc:"State of the job."`
	Queue      bool            `json:"queue,omitempty" doc:"True if the job travels by the queue."`
	Worker     string          `json:"worker,omitempty" doc:"ID of the worker that has the job, or had it at the end."`
	StatusText string          `json:"status_text,omitempty" doc:"Status text from the worker."`
	Input      json.RawMessage `json:"input,omitempty" doc:"Input of the unit."`
	Output     json.RawMessage `json:"output,omitempty" doc:"Output of the attempt."`
	Error      string          `json:"error,omitempty" doc:"Error of the attempt."`
	Details    json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON from the worker."`

	StartedAt Time `json:"started_at" doc:"Time when the attempt started."`
	EndedAt   Time `json:"ended_at,omitzero" doc:"Time when the attempt ended."`
}

// Log is the output of a script or worker for a job.
type Log struct {
	Content string `json:"content" doc:"Output as one text."`
}

// LogLine is a line that a job has printed.
type LogLine struct {
	At     Time   `json:"at,omitzero" doc:"Time of the line; the default in a request is now."`
	Stream string `json:"stream,omitempty" enum:"log,stdout,stderr" default:"log" doc:"Stream of the line: stdout or stderr of a program, otherwise log."`
	Text   string `json:"text" doc:"Text of the line without its end."`
	Part   bool   `json:"part,omitempty" doc:"True if the line continues in the next one of its stream."`
}

// LogEntry is a line of a task's logs, printed by one of its attempts.
type LogEntry struct {
	ID  string `json:"id" doc:"Position among all lines of the task." example:"7.2"`
	Job string `json:"job" doc:"ID of the attempt's job."`
	Place
	LogLine
	Omitted *OmittedLog `json:"omitted,omitempty" doc:"Lines before it in the attempt's log that are no longer stored."`
}

// OmittedLog is the deleted beginning of an attempt's log.
type OmittedLog struct {
	Lines      int64 `json:"lines" doc:"Number of lines."`
	Characters int64 `json:"characters" doc:"Number of characters."`
}

// ReleaseClaim is a request to return a claimed job to the queue.
type ReleaseClaim struct {
	Token string `json:"token" minLength:"1" maxLength:"256" doc:"Token of the claim from the answer to the poll."`
}

// WaitingJob is an unfinished job in a queue.
type WaitingJob struct {
	ID         string `json:"id" doc:"ID of the job."`
	Task       string `json:"task" doc:"ID of the task."`
	Service    string `json:"service" doc:"Service of the job."`
	State      string `json:"state" enum:"pending,claimed" doc:"State of the job; claimed = a worker has it."`
	Worker     string `json:"worker,omitempty" doc:"ID of the worker that has it."`
	EnqueuedAt Time   `json:"enqueued_at" doc:"Time when the job was enqueued."`
}

// Queue counts the jobs for the pollers of a service, claimed jobs included.
type Queue struct {
	Service  string `json:"service" doc:"Service of the queue."`
	Waiting  int    `json:"waiting" doc:"Number of jobs, including claimed ones."`
	Tasks    int    `json:"tasks" doc:"Number of tasks with jobs in the queue, as listed by GET /v1/tasks?queued=SERVICE."`
	Workers  int    `json:"workers" doc:"Number of online workers that offer the service."`
	OldestAt Time   `json:"oldest_at" doc:"Time when the oldest job was enqueued."`
}

// Worker is a registered worker as /v1 shows it.
type Worker struct {
	ID              string   `json:"id" doc:"ID of the worker."`
	URL             string   `json:"url,omitempty" doc:"URL of a push worker; absent for others."`
	Type            string   `json:"type" enum:"push,pull,attached,local" doc:"Way in which it gets jobs. push: the engine calls it. pull: it polls. attached: it has a stream. local: functions of a member."`
	Services        []string `json:"services" doc:"Services that it offers; never null."`
	Labels          []string `json:"labels,omitempty" doc:"Labels in order; a job with labels needs a worker with all of them."`
	Load            int      `json:"load" doc:"Number of jobs in progress, as the worker reports it."`
	State           string   `json:"state" enum:"online,offline" doc:"State of the worker."`
	LastHeartbeatAt Time     `json:"last_heartbeat_at" doc:"Time of the last heartbeat."`
	RegisteredAt    Time     `json:"registered_at,omitzero" doc:"Time of the first registration."`
}
