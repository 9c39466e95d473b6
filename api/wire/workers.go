package wire

import "encoding/json"

// RegisteredWorker is a registered worker in the graph dialect.
type RegisteredWorker struct {
	ID            string   `json:"id"`
	URL           string   `json:"url"`
	Services      []string `json:"services"`
	Load          int      `json:"load"`
	LastHeartbeat int64    `json:"last_heartbeat"` // Unix seconds
	Status        string   `json:"status"`         // online, offline
	Type          string   `json:"type"`           // http, async, local, …
	Labels        []string `json:"labels,omitempty"`
}

// ExecRequest is the request that the engine posts to <worker url>/exec/<service>. The headers
// below describe the job further.
type ExecRequest struct {
	Input  json.RawMessage `json:"input"`
	Params json.RawMessage `json:"params"`
	Key    string          `json:"key"` // idempotency key, the same for all attempts
}

// These headers of an ExecRequest describe the origin of the job. Texts are escaped as in the path
// of a URL.
const (
	HeaderKey     = "Idempotency-Key" // idempotency key, the same for all attempts
	HeaderJob     = "Troupe-Job"      // id of the attempt
	HeaderTask    = "Troupe-Task"
	HeaderFlow    = "Troupe-Flow" // slug; absent if the flow has none
	HeaderStep    = "Troupe-Step"
	HeaderUnit    = "Troupe-Unit"  // slug of the flow; absent if the flow has none
	HeaderUnits   = "Troupe-Units" // index of the unit in the step, from 0
	HeaderAttempt = "Troupe-Attempt"
	// HeaderLabels lists the required labels of the job, separated by commas. It is absent if there
	// are none.
	HeaderLabels = "Troupe-Labels"

	HeaderTrace      = "Traceparent" // as in W3C Trace Context; also in requests to members
	HeaderTraceState = "Tracestate"
)

// HeaderBatch is in the answers of a worker that accepts several jobs at once. The engine posts
// them to <worker url>/exec as a sequence of ExecJob, and the header of this request names the
// batch. The answer has one line per ended job: the index in the request, a space, and the
// ExecAnswer.
const HeaderBatch = "Troupe-Batch"

// ExecJob is one job of a batch. It can also cancel the job at an index of an earlier request with
// the same batch name.
type ExecJob struct {
	Job     string `json:"job"` // id of the job
	Service string `json:"service"`
	Task    string `json:"task"`
	Flow    string `json:"flow,omitempty"`
	Step    string `json:"step"`
	Unit    int    `json:"unit"`
	Units   int    `json:"units"`
	Attempt int    `json:"attempt"`
	// Labels holds the labels that the job requires.
	Labels    []string `json:"labels,omitempty"`
	Trace     string   `json:"trace"`
	State     string   `json:"trace_state,omitempty"`
	Withdrawn *int     `json:"withdrawn,omitempty"`
	ExecRequest
}

// ExecAnswer is the answer of a push worker, for any HTTP status.
type ExecAnswer struct {
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty"` // details of the error: any JSON
	// metrics that the job reports: a list of {name, labels, count, sum, last}
	Metrics json.RawMessage `json:"metrics,omitempty"`
	Fatal   bool            `json:"fatal,omitempty"` // with an error: a retry is useless
}
