package wire

import "encoding/json"

// QueuePoll is a request for queue jobs. The graph dialect has only worker_id and services. With
// max, flow or labels, the answer is in list form: QueueTasks. Otherwise the answer is one
// QueueJob. In both forms, 204 means that there is no job.
type QueuePoll struct {
	WorkerID string   `json:"worker_id"`
	Services []string `json:"services"`

	Max int `json:"max,omitempty"` // maximum number of jobs; default 1, in list form 10
	// how long to wait for the first job; default 0, in list form 2000
	WaitMS int64 `json:"wait_ms"`
	// slug of the only flow; without services, all of its jobs match
	Flow string `json:"flow,omitempty"`
	// labels of the worker, which must have all labels of a job
	Labels []string `json:"labels,omitempty"`
}

// QueueTasks is the list form of the answer to a poll.
type QueueTasks struct {
	Tasks []QueueTask `json:"tasks"`
}

// QueueTask is a claimed queue job, in the list form.
type QueueTask struct {
	ID string `json:"id"`
	// Key is the idempotency key, which is the same for all attempts. ID differs.
	Key       string `json:"key"`
	FlowSlug  string `json:"flow_slug"` // "" if the flow has none
	RunID     string `json:"run_id"`    // id of the job's task
	StepSlug  string `json:"step_slug"`
	TaskIndex int    `json:"task_index"` // index of the unit
	// number of units of the step when the job was dispatched
	TaskCount int             `json:"task_count"`
	Input     json.RawMessage `json:"input"`
	// omitted if it is large and the step has many jobs
	FlowInput json.RawMessage `json:"flow_input,omitempty"`
	Attempt   int             `json:"attempt"`
	Timeout   float64         `json:"timeout"` // timeout of the attempt in seconds; 0 means none

	Service string `json:"service"`
	// Labels holds the labels that the job requires.
	Labels []string        `json:"labels,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// ParamsKey replaces large params. QueueParams returns the params, which are equal for all jobs
	// with the same key.
	ParamsKey string `json:"params_key,omitempty"`
	// Token identifies the claim. Heartbeats and completions check the token if it is sent.
	Token string `json:"token"`
	// VisibilityMS is how long the claim lasts without a heartbeat.
	VisibilityMS int64 `json:"visibility_ms"`
}

// QueueJob is a claimed queue job. Times are Unix seconds.
//
// It carries the input twice, because its first clients read InputJSON: the text of
// {"input":any,"params":{…},"run_id":s}.
type QueueJob struct {
	ID string `json:"id"`
	// Key is the idempotency key, which is the same for all attempts. ID differs.
	Key       string `json:"key"`
	TaskID    string `json:"task_id"`
	NodeKey   string `json:"node_key"`
	Service   string `json:"service"`
	InputJSON string `json:"input_json,omitempty"`
	Status    string `json:"status"` // always claimed
	WorkerID  string `json:"worker_id"`
	CreatedAt int64  `json:"created_at"`
	StartedAt int64  `json:"started_at"`
	TimeoutAt int64  `json:"timeout_at"`

	Input  json.RawMessage `json:"input,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	RunID  string          `json:"run_id,omitempty"`
	// Token identifies the claim. Heartbeats and completions check the token if it is sent.
	Token string `json:"token,omitempty"`
	// VisibilityMS is how long the claim lasts without a heartbeat.
	VisibilityMS int64 `json:"visibility_ms,omitempty"`
}

// QueueInput is the content of QueueJob.InputJSON.
type QueueInput struct {
	Input  json.RawMessage `json:"input"`
	Params json.RawMessage `json:"params"`
	RunID  string          `json:"run_id"`
}

// QueueParams is a request for params that were not sent with a claimed job.
type QueueParams struct {
	QueueID string `json:"queue_id"`
	Token   string `json:"token,omitempty"`
}

// QueueParamsAnswer is the answer to QueueParams.
type QueueParamsAnswer struct {
	Params    json.RawMessage `json:"params"`
	FlowInput json.RawMessage `json:"flow_input"`
}

// QueueHeartbeat extends claims: one claim by queue_id and token or worker, or several claims of
// one worker by queue_ids.
type QueueHeartbeat struct {
	QueueID  string   `json:"queue_id,omitempty"`
	QueueIDs []string `json:"queue_ids,omitempty"`
	Token    string   `json:"token,omitempty"`
	WorkerID string   `json:"worker_id,omitempty"`
	// Extend is the new duration in seconds from now. 0 means the default duration of a claim.
	Extend float64 `json:"extend,omitempty"`
}

// IDs returns the queue ids of the request.
func (h *QueueHeartbeat) IDs() []string {
	if h.QueueID == "" {
		return h.QueueIDs
	}
	return append([]string{h.QueueID}, h.QueueIDs...)
}

// QueueHeartbeatAnswer lists the claims that were withdrawn.
type QueueHeartbeatAnswer struct {
	OK       string   `json:"ok"`       // always "1"
	Canceled []string `json:"canceled"` // queue ids, never null
	// Unheard holds queue ids of runs that are unreachable at the moment. Their claims are not
	// extended.
	Unheard []string `json:"unheard,omitempty"`
}

// QueueRelease returns claims that the worker will not carry out, so that other workers get the
// jobs immediately. It names one claim by queue_id and token, or several. A job that has no claim
// with that token is unchanged.
type QueueRelease struct {
	QueueID string       `json:"queue_id,omitempty"`
	Token   string       `json:"token,omitempty"`
	Claims  []QueueClaim `json:"claims,omitempty"`
}

// QueueClaim is a claim from the answer to a poll.
type QueueClaim struct {
	QueueID string `json:"queue_id"`
	Token   string `json:"token"`
}

// All returns the claims of the request.
func (q *QueueRelease) All() []QueueClaim {
	if q.QueueID == "" {
		return q.Claims
	}
	return append([]QueueClaim{{q.QueueID, q.Token}}, q.Claims...)
}

// QueueComplete ends a claimed job. An empty or null error means success. A late or repeated
// request is answered with OK and has no effect.
type QueueComplete struct {
	QueueID  string          `json:"queue_id"`
	Result   json.RawMessage `json:"result"`
	Error    string          `json:"error"`
	Fatal    bool            `json:"fatal,omitempty"` // with an error: a retry is useless
	Token    string          `json:"token,omitempty"`
	WorkerID string          `json:"worker_id,omitempty"`
	RunID    string          `json:"run_id,omitempty"`
	// Log is log output of the worker about the job.
	Log string `json:"log,omitempty"`
	// LogPath is accepted but never opened, because the path belongs to the worker's machine.
	LogPath string `json:"log_path,omitempty"`
}

// QueueUpdateRun reports a status text of the worker for the run of a claimed job.
type QueueUpdateRun struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}
