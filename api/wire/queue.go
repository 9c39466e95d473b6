package wire

import "encoding/json"

// QueuePoll asks for queue jobs. Only worker_id and services belong to the graph dialect; who sends max,
// flow or labels, whatever their values, gets the list form of the answer: a QueueJobs, always 200. Else it
// is one QueueJob, or 204 for none. No job is kept back because of its flow or of labels.
type QueuePoll struct {
	WorkerID string   `json:"worker_id"`
	Services []string `json:"services"`

	Max    int               `json:"max,omitempty"`     // jobs at most; 1
	WaitMS int64             `json:"wait_ms,omitempty"` // how long to wait for the first job
	Flow   string            `json:"flow,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// QueueJobs is the list form of a poll's answer.
type QueueJobs struct {
	Jobs []QueueJob `json:"jobs"` // never null
}

// QueueJob is a queue job in a poller's hands. Times are Unix seconds.
//
// The single form carries the input twice, because its first clients read InputJSON: the text of
// {"input":any,"params":{…},"run_id":s}. The list form leaves InputJSON out.
type QueueJob struct {
	ID        string `json:"id"`
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

// QueueHeartbeat prolongs claims: one by queue_id (with its token, or as its worker), or several of
// one worker by queue_ids.
type QueueHeartbeat struct {
	QueueID  string   `json:"queue_id,omitempty"`
	QueueIDs []string `json:"queue_ids,omitempty"`
	Token    string   `json:"token,omitempty"`
	WorkerID string   `json:"worker_id,omitempty"`
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
}

// QueueRelease gives back claims that their worker will not see to, so that others get the jobs at once:
// one by queue_id and token, or several. What is no longer claimed with that token stays as it is.
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
