package wire

import "encoding/json"

// QueuePoll asks for queue jobs. Only worker_id and services belong to the graph dialect; who sends
// max, flow or labels, whatever their values, gets the list form of the answer: QueueTasks. Else it
// is one QueueJob. In both forms 204 says that there is none.
type QueuePoll struct {
	WorkerID string   `json:"worker_id"`
	Services []string `json:"services"`

	Max    int      `json:"max,omitempty"`    // jobs at most; 1, in the list form 10
	WaitMS int64    `json:"wait_ms"`          // how long to wait for the first job; 0, in the list form 2000
	Flow   string   `json:"flow,omitempty"`   // slug of the only flow whose jobs are wanted; without services all of its
	Labels []string `json:"labels,omitempty"` // of the worker: a job that asks for labels goes to those who have them all
}

// QueueTasks is the list form of a poll's answer.
type QueueTasks struct {
	Tasks []QueueTask `json:"tasks"`
}

// QueueTask is a queue job in a poller's hands, in the list form.
type QueueTask struct {
	ID string `json:"id"`
	// Key is the idempotency key: the same for all attempts, while ID is another one for each.
	Key       string          `json:"key"`
	FlowSlug  string          `json:"flow_slug"` // "" of a flow without one
	RunID     string          `json:"run_id"`    // id of the task that the job is of
	StepSlug  string          `json:"step_slug"`
	TaskIndex int             `json:"task_index"` // the unit's
	TaskCount int             `json:"task_count"` // how many units the step had when the job was given out
	Input     json.RawMessage `json:"input"`
	FlowInput json.RawMessage `json:"flow_input,omitempty"` // left out of a job that is one of many when it is large
	Attempt   int             `json:"attempt"`
	Timeout   float64         `json:"timeout"` // of the attempt, in seconds; 0 = none

	Service string `json:"service"`
	// Labels are those that the job asks for: its worker has them all.
	Labels []string        `json:"labels,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// ParamsKey is there instead of params that are large. QueueParams tells them, once for all
	// jobs with the key.
	ParamsKey string `json:"params_key,omitempty"`
	// Token proves the claim. Heartbeats and completions check it if it is sent.
	Token string `json:"token"`
	// VisibilityMS is how long the claim holds without a heartbeat.
	VisibilityMS int64 `json:"visibility_ms"`
}

// QueueJob is a queue job in a poller's hands. Times are Unix seconds.
//
// It carries the input twice, because its first clients read InputJSON: the text of
// {"input":any,"params":{…},"run_id":s}.
type QueueJob struct {
	ID string `json:"id"`
	// Key is the idempotency key: the same for all attempts, while ID is another one for each.
	Key       string `json:"key"`
	TaskID    string `json:"task_id"`
	NodeKey   string `json:"node_key"`
	Service   string `json:"service"`
	InputJSON string `json:"input_json,omitempty"`
	Status    string `json:"status"` // claimed
	WorkerID  string `json:"worker_id"`
	CreatedAt int64  `json:"created_at"`
	StartedAt int64  `json:"started_at"`
	TimeoutAt int64  `json:"timeout_at"`

	Input  json.RawMessage `json:"input,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	RunID  string          `json:"run_id,omitempty"`
	// Token proves the claim. Heartbeats and completions check it if it is sent.
	Token string `json:"token,omitempty"`
	// VisibilityMS is how long the claim holds without a heartbeat.
	VisibilityMS int64 `json:"visibility_ms,omitempty"`
}

// QueueInput is what QueueJob.InputJSON is the text of.
type QueueInput struct {
	Input  json.RawMessage `json:"input"`
	Params json.RawMessage `json:"params"`
	RunID  string          `json:"run_id"`
}

// QueueParams asks for what a claimed job was not sent along.
type QueueParams struct {
	QueueID string `json:"queue_id"`
	Token   string `json:"token,omitempty"`
}

// QueueParamsAnswer is what it is.
type QueueParamsAnswer struct {
	Params    json.RawMessage `json:"params"`
	FlowInput json.RawMessage `json:"flow_input"`
}

// QueueHeartbeat prolongs claims: one by queue_id (with its token, or as its worker), or several of
// one worker by queue_ids.
type QueueHeartbeat struct {
	QueueID  string   `json:"queue_id,omitempty"`
	QueueIDs []string `json:"queue_ids,omitempty"`
	Token    string   `json:"token,omitempty"`
	WorkerID string   `json:"worker_id,omitempty"`
	// Extend is for how many seconds from now; 0 = as long as a claim holds.
	Extend float64 `json:"extend,omitempty"`
}

// IDs are the queue ids that are meant.
func (h *QueueHeartbeat) IDs() []string {
	if h.QueueID == "" {
		return h.QueueIDs
	}
	return append([]string{h.QueueID}, h.QueueIDs...)
}

// QueueHeartbeatAnswer says which of the claims nobody waits for any longer.
type QueueHeartbeatAnswer struct {
	OK       string   `json:"ok"`       // "1"
	Canceled []string `json:"canceled"` // queue ids, never null
	// Unheard are queue ids whose runs could not be reached for the moment: their claims last as
	// long as before.
	Unheard []string `json:"unheard,omitempty"`
}

// QueueRelease gives back claims that their worker will not see to, so that others get the jobs at
// once: one by queue_id and token, or several. What is no longer claimed with that token stays as
// it is.
type QueueRelease struct {
	QueueID string       `json:"queue_id,omitempty"`
	Token   string       `json:"token,omitempty"`
	Claims  []QueueClaim `json:"claims,omitempty"`
}

// QueueClaim is a claim as the answer of a poll told it.
type QueueClaim struct {
	QueueID string `json:"queue_id"`
	Token   string `json:"token"`
}

// All are the claims that are meant.
func (q *QueueRelease) All() []QueueClaim {
	if q.QueueID == "" {
		return q.Claims
	}
	return append([]QueueClaim{{q.QueueID, q.Token}}, q.Claims...)
}

// QueueComplete ends a claimed job. An empty or null error means it went well. It is answered with
// OK also when it is late or repeated, and then has no effect.
type QueueComplete struct {
	QueueID  string          `json:"queue_id"`
	Result   json.RawMessage `json:"result"`
	Error    string          `json:"error"`
	Fatal    bool            `json:"fatal,omitempty"` // with an error: trying again is of no use
	Token    string          `json:"token,omitempty"`
	WorkerID string          `json:"worker_id,omitempty"`
	RunID    string          `json:"run_id,omitempty"`
	// Log is what the worker has to say about the job beside its result.
	Log string `json:"log,omitempty"`
	// LogPath is accepted and never opened: paths are the worker's own.
	LogPath string `json:"log_path,omitempty"`
}

// QueueUpdateRun tells what a worker calls the state of a claimed job's run.
type QueueUpdateRun struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}
