package wire

import "encoding/json"

// WorkerRegistration is the registration of a worker.
type WorkerRegistration struct {
	Services []string `json:"services" minItems:"1" maxItems:"1000" doc:"Services that the worker offers."`
	Labels   []string `json:"labels,omitempty" maxItems:"100" doc:"Labels of the worker, such as gpu: a job with labels needs a worker with all of them."`
	URL      string   `json:"url,omitempty" maxLength:"2048" doc:"URL that the engine calls (POST <url>/exec/<service>); absent = the worker polls for jobs."`
	Secret   string   `json:"secret,omitempty" maxLength:"256" doc:"Secret for a worker with a url: the engine sends it with each call, as Authorization: Bearer <secret>."`
}

// RegistrationResult is the answer to a WorkerRegistration.
type RegistrationResult struct {
	OfflineAfterMS int64 `json:"offline_after_ms" doc:"Time without a heartbeat, in milliseconds, after which the worker counts as offline. Send heartbeats at a third of it."`
}

// Heartbeat is a worker's heartbeat. It extends the leases of its claims.
type Heartbeat struct {
	Load     int       `json:"load,omitempty" minimum:"0" doc:"Number of jobs in progress."`
	Claims   []HeldJob `json:"claims,omitempty" maxItems:"1000" doc:"Claims with leases to extend."`
	ExtendMS int64     `json:"extend_ms,omitempty" minimum:"0" maximum:"86400000" doc:"Length of the leases from now, in milliseconds; absent = the lease length of the job."`
}

// HeldJob is a claim that a worker holds.
type HeldJob struct {
	Job        string `json:"job" maxLength:"20000" doc:"ID of the job."`
	Token      string `json:"token" minLength:"1" maxLength:"256" doc:"Token of the claim."`
	StatusText string `json:"status_text,omitempty" maxLength:"256" doc:"Status text of the job, to show with the attempt."`
	PrintedLines
}

// PrintedLines holds the lines that a job printed since the last request.
type PrintedLines struct {
	Lines     []LogLine `json:"lines,omitempty" maxItems:"10000" doc:"Lines that the job printed since the last request, in order."`
	LinesFrom int64     `json:"lines_from,omitempty" minimum:"0" doc:"Number of the claim's lines that were sent before. Known lines are ignored, so lines can be sent again."`
}

// HeartbeatResult is the answer to a Heartbeat.
type HeartbeatResult struct {
	Registered  bool     `json:"registered" doc:"False if the worker is not registered: it should register again."`
	Canceled    []string `json:"canceled" doc:"IDs of jobs to stop: they are no longer needed, another worker has them, or they do not exist; never null."`
	Unreachable []string `json:"unreachable,omitempty" doc:"IDs of jobs with tasks that could not be reached at the moment. Their leases are not extended; send them again soon."`
}

// JobRequest selects the jobs that a worker wants.
type JobRequest struct {
	Services []string `json:"services" minItems:"1" maxItems:"1000" doc:"Services of the requested jobs."`
	Labels   []string `json:"labels,omitempty" maxItems:"1000" doc:"Labels of the worker; jobs with other labels are not returned."`
	Flow     string   `json:"flow,omitempty" maxLength:"128" doc:"Slug or ID of the flow, to get only its jobs."`
	Max      int      `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"Maximum number of jobs; absent = 1. An answer contains at most 8 MiB of jobs, or one job."`
}

// PollRequest is a request to claim jobs.
type PollRequest struct {
	JobRequest
	WaitMS int64 `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"Maximum time in milliseconds to wait for the first job; absent = do not wait."`
}

// ClaimedJobs is the answer to a PollRequest.
type ClaimedJobs struct {
	Jobs []ClaimedJob `json:"jobs" doc:"Jobs, oldest first; empty if there are none; never null."`
}

// ClaimedJob is a job that a worker has claimed.
type ClaimedJob struct {
	ID   string `json:"id" doc:"ID of the attempt; the same for each delivery, another one for the next attempt."`
	Key  string `json:"key" doc:"Idempotency key for external effects, such as a payment; the same for all attempts."`
	Task string `json:"task" doc:"ID of the task."`
	Flow string `json:"flow,omitempty" doc:"Slug of the task's flow; absent if it has none."`
	Step string `json:"step" doc:"Name of the step; a path for a step of an inner flow."`
	Place
	Units     int             `json:"units" doc:"Number of units of the step when the job was delivered."`
	Branch    string          `json:"branch,omitempty" doc:"Name of the unit."`
	Service   string          `json:"service" doc:"Service of the job."`
	Labels    []string        `json:"labels,omitempty" doc:"Labels of the job in order; its worker has all of them."`
	Input     json.RawMessage `json:"input" doc:"Input of the unit."`
	Params    json.RawMessage `json:"params,omitempty" doc:"Params of the node, an object; absent if params_key is set."`
	ParamsKey string          `json:"params_key,omitempty" doc:"Key of params larger than 4 KiB: jobs with the same key have the same params, which /v1/jobs/{job}/params returns."`
	RunInput  json.RawMessage `json:"run_input,omitempty" doc:"Params with which the task was started; absent for one of many jobs if they are larger than 4 KiB."`
	TimeoutMS int64           `json:"timeout_ms,omitempty" doc:"Time limit of the attempt in milliseconds; absent = none."`
	Trace     string          `json:"trace,omitempty" doc:"Span of the attempt as a traceparent header of W3C Trace Context, for spans of the worker below it."`

	Deliveries int    `json:"deliveries,omitempty" doc:"Number of earlier deliveries that were lost."`
	EnqueuedAt Time   `json:"enqueued_at" doc:"Time when the job was enqueued."`
	Token      string `json:"token" doc:"Token of the claim, to complete, fail, extend or release the job."`
	LeaseMS    int64  `json:"lease_ms" doc:"Length of the lease without a heartbeat, in milliseconds."`
	LeaseUntil Time   `json:"lease_until" doc:"Time when the claim ends without a heartbeat, and another worker can get the job."`
}

// ClaimJob is a request to claim a particular job.
type ClaimJob struct {
	Worker string `json:"worker" minLength:"1" maxLength:"256" doc:"ID of the worker."`
	Token  string `json:"token,omitempty" maxLength:"256" doc:"Token of the caller's choice, to send the request again safely; absent = the answer contains a new one."`
}

// JobParams holds the params that were too large to send with each job of a step.
type JobParams struct {
	Params   json.RawMessage `json:"params" doc:"Params of the node."`
	RunInput json.RawMessage `json:"run_input" doc:"Params with which the task was started."`
}

// JobMetrics holds the metrics that jobs report.
type JobMetrics struct {
	Metrics json.RawMessage `json:"metrics,omitempty" doc:"Metrics of the job, stored with the attempt whatever its outcome: a list of {name, labels, count, sum, last}."`
}

// JobOutput is a request to end a job with success.
type JobOutput struct {
	Worker string          `json:"worker,omitempty" maxLength:"256" doc:"ID of the worker."`
	Token  string          `json:"token" minLength:"1" maxLength:"256" doc:"Token of the claim."`
	Output json.RawMessage `json:"output,omitempty" doc:"Output, any JSON; absent = null."`
	Log    string          `json:"log,omitempty" doc:"Additional log output, as one text."`
	JobMetrics
	PrintedLines
}

// JobFailure is a request to end a job with an error.
type JobFailure struct {
	Worker  string          `json:"worker,omitempty" maxLength:"256" doc:"ID of the worker."`
	Token   string          `json:"token" minLength:"1" maxLength:"256" doc:"Token of the claim."`
	Error   string          `json:"error" minLength:"1" doc:"Reason of the failure."`
	Details json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON, stored with the attempt."`
	Fatal   bool            `json:"fatal,omitempty" doc:"True if a retry is useless."`
	Log     string          `json:"log,omitempty" doc:"Additional log output, as one text."`
	JobMetrics
	PrintedLines
}

// JobReport is the result of a job. Without an error, it is a success.
type JobReport struct {
	Job     string          `json:"job" maxLength:"20000" doc:"ID of the job."`
	Token   string          `json:"token" minLength:"1" maxLength:"256" doc:"Token of the claim."`
	Output  json.RawMessage `json:"output,omitempty" doc:"Output, any JSON; absent = null."`
	Error   string          `json:"error,omitempty" doc:"Reason of the failure; absent for a success."`
	Details json.RawMessage `json:"details,omitempty" doc:"With an error: details, any JSON, stored with the attempt."`
	Fatal   bool            `json:"fatal,omitempty" doc:"With an error: true if a retry is useless."`
	Log     string          `json:"log,omitempty" doc:"Additional log output, as one text."`
	JobMetrics
	PrintedLines
}

// JobReports holds several reports.
type JobReports struct {
	Reports []JobReport `json:"reports" minItems:"1" maxItems:"1000" doc:"Results of jobs."`
	Next    *JobRequest `json:"next,omitempty" doc:"Jobs to claim with this request: the oldest waiting ones, and those that start because of the reports; absent = none."`
}

// JobReportResult is the answer to a JobReport.
type JobReportResult struct {
	Job     string   `json:"job" doc:"ID of the job."`
	Changed bool     `json:"changed" doc:"True if the report had an effect; false if it was late or repeated."`
	Problem *Problem `json:"problem,omitempty" doc:"Reason for the rejection of this report."`
}

// JobReportResults is the answer to JobReports.
type JobReportResults struct {
	Items []JobReportResult `json:"items" doc:"Results in the order of the reports; never null."`
	Jobs  []ClaimedJob      `json:"jobs,omitempty" doc:"Claimed jobs; absent if there are none."`
}

// ReleaseClaims is a request to return claims that the worker will not carry out.
type ReleaseClaims struct {
	Claims []HeldJob `json:"claims" minItems:"1" maxItems:"1000" doc:"Claims to release."`
}
