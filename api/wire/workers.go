package wire

import "encoding/json"

// Worker is a registered worker as the graph routes show it.
type Worker struct {
	ID            string   `json:"id"`
	URL           string   `json:"url"`
	Services      []string `json:"services"`
	Load          int      `json:"load"`
	LastHeartbeat int64    `json:"last_heartbeat"` // Unix seconds
	Status        string   `json:"status"`         // online, offline
	Type          string   `json:"type"`           // http, async, local, …
	Labels        []string `json:"labels,omitempty"`
}

// ExecRequest is what the engine posts to <worker url>/exec/<service>. The header Idempotency-Key
// has the key, those below tell more about the job.
type ExecRequest struct {
	Input  json.RawMessage `json:"input"`
	Params json.RawMessage `json:"params"`
	Key    string          `json:"key"` // the same for all attempts
}

// Headers of an ExecRequest that say where its job comes from. Texts are escaped as in the path of
// a URL.
const (
	HeaderKey     = "Idempotency-Key" // the same for all attempts
	HeaderJob     = "Troupe-Job"      // id of the attempt
	HeaderTask    = "Troupe-Task"
	HeaderFlow    = "Troupe-Flow" // slug; absent when the flow has none
	HeaderStep    = "Troupe-Step"
	HeaderUnit    = "Troupe-Unit"  // of the step, from 0
	HeaderUnits   = "Troupe-Units" // how many it had when the job was given out
	HeaderAttempt = "Troupe-Attempt"

	HeaderTrace      = "Traceparent" // of W3C Trace Context, also of requests to members
	HeaderTraceState = "Tracestate"
)

// HeaderBatch is in the answers of a worker that takes several jobs at once, posted to <worker
// url>/exec as one ExecJob behind the other. In such a request it names the batch. The answer has a
// line for each job as soon as it has ended: its place in the request, a blank, and its ExecAnswer.
const HeaderBatch = "Troupe-Batch"

// ExecJob is one of several jobs, or says that nobody waits any longer for the one at a place of an
// earlier request with the same name.
type ExecJob struct {
	Job       string `json:"job"` // its id
	Service   string `json:"service"`
	Task      string `json:"task"`
	Flow      string `json:"flow,omitempty"`
	Step      string `json:"step"`
	Unit      int    `json:"unit"`
	Units     int    `json:"units"`
	Attempt   int    `json:"attempt"`
	Trace     string `json:"trace"`
	State     string `json:"trace_state,omitempty"`
	Withdrawn *int   `json:"withdrawn,omitempty"`
	ExecRequest
}

// ExecAnswer is a push worker's answer, whatever its HTTP status.
type ExecAnswer struct {
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty"` // of the error: any JSON
	Metrics json.RawMessage `json:"metrics,omitempty"` // numbers that the job tells of itself: a list of {name, labels, count, sum, last}
	Fatal   bool            `json:"fatal,omitempty"`   // with an error: trying again is of no use
}
