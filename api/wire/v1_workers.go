package wire

import "encoding/json"

// Registration is a worker's description of itself.
type Registration struct {
	Services []string `json:"services" minItems:"1" maxItems:"1000" doc:"what it can do"`
	Labels   []string `json:"labels,omitempty" maxItems:"100" doc:"what it has, such as gpu: a job that asks for labels goes to workers that have them all"`
	URL      string   `json:"url,omitempty" maxLength:"2048" doc:"where the engine calls it (POST <url>/exec/<service>); absent = it polls for its jobs"`
	Secret   string   `json:"secret,omitempty" maxLength:"256" doc:"with a url: the engine sends it with every call, as Authorization: Bearer <secret>"`
}

// Registered is the answer to a Registration.
type Registered struct {
	OfflineAfterMS int64 `json:"offline_after_ms" doc:"a worker that has not been heard of for so long counts as offline; a heartbeat in a third of that time is often enough"`
}

// Heartbeat is a worker's heartbeat. It extends the leases of its claims.
type Heartbeat struct {
	Load     int         `json:"load,omitempty" minimum:"0" doc:"jobs in progress"`
	Claims   []HeldClaim `json:"claims,omitempty" maxItems:"1000" doc:"those whose leases are to be prolonged"`
	ExtendMS int64       `json:"extend_ms,omitempty" minimum:"0" maximum:"86400000" doc:"for how long from now, in milliseconds; absent = as long as a lease of the job is"`
}

// HeldClaim is a claim that a worker holds.
type HeldClaim struct {
	Job   string `json:"job" maxLength:"20000" doc:"its id"`
	Token string `json:"token" minLength:"1" maxLength:"256" doc:"as it came with the job"`
	Note  string `json:"note,omitempty" maxLength:"256" doc:"what the worker calls the state of the job, for whoever watches"`
	Said
}

// Said holds the lines that a job has printed since the last report.
type Said struct {
	Lines     []LogLine `json:"lines,omitempty" maxItems:"10000" doc:"what the job has printed since the last time, in order"`
	LinesFrom int64     `json:"lines_from,omitempty" minimum:"0" doc:"how many of the claim's lines were sent before; those that are there already are left out, so lines may be sent again"`
}

// HeartbeatAnswer reports changes to a worker.
type HeartbeatAnswer struct {
	Registered bool     `json:"registered" doc:"false: nobody knows the worker, it is to register (again)"`
	Canceled   []string `json:"canceled" doc:"ids of jobs that nobody waits for any longer, that others have, or that there are not: stop working on them; never null"`
	Unheard    []string `json:"unheard,omitempty" doc:"ids of jobs whose tasks could not be reached for the moment: their claims last as long as before, send them again soon"`
}

// Wanted selects the jobs that a worker wants.
type Wanted struct {
	Services []string `json:"services" minItems:"1" maxItems:"1000" doc:"what jobs may be for"`
	Labels   []string `json:"labels,omitempty" maxItems:"1000" doc:"of the worker: jobs that ask for others are not for it"`
	Flow     string   `json:"flow,omitempty" maxLength:"128" doc:"slug or id of the only flow whose jobs are wanted"`
	Max      int      `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"how many jobs at most; absent = 1. An answer has 8 MiB of them at most, or one job"`
}

// Poll is a request for jobs. Those in the answer are claimed.
type Poll struct {
	Wanted
	WaitMS int64 `json:"wait_ms,omitempty" minimum:"0" maximum:"60000" doc:"how long to wait for the first job, in milliseconds; absent = not at all"`
}

// ClaimedJobs is the answer to a Poll.
type ClaimedJobs struct {
	Jobs []ClaimedJob `json:"jobs" doc:"the longest waiting first; empty when there are none; never null"`
}

// ClaimedJob is a job that a worker has claimed.
type ClaimedJob struct {
	ID   string `json:"id" doc:"names the attempt: the same whenever it is handed out again, another one for the next attempt"`
	Key  string `json:"key" doc:"idempotency key for effects outside, such as a payment: the same for all attempts"`
	Task string `json:"task"`
	Flow string `json:"flow,omitempty" doc:"slug of the task's flow; absent when it has none"`
	Step string `json:"step" doc:"name of the step, a path when it is in a flow inside another"`
	Place
	Units     int             `json:"units" doc:"how many the step had when the job was handed out"`
	Branch    string          `json:"branch,omitempty" doc:"the unit's name"`
	Service   string          `json:"service"`
	Labels    []string        `json:"labels,omitempty" doc:"that the job asks for, in order: its worker has them all"`
	Input     json.RawMessage `json:"input"`
	Params    json.RawMessage `json:"params,omitempty" doc:"an object; absent when params_key is there"`
	ParamsKey string          `json:"params_key,omitempty" doc:"names params of more than 4 KiB: all jobs with the same key have the same ones, which /v1/jobs/{job}/params tells"`
	RunInput  json.RawMessage `json:"run_input,omitempty" doc:"what the task was started with; absent from one of many jobs when it has more than 4 KiB"`
	TimeoutMS int64           `json:"timeout_ms,omitempty" doc:"of the attempt, in milliseconds; absent = none"`
	Trace     string          `json:"trace,omitempty" doc:"the attempt's span, as the header traceparent of W3C Trace Context: what the worker traces belongs below it"`

	Deliveries int    `json:"deliveries,omitempty" doc:"how often it was handed out before and lost"`
	EnqueuedAt Time   `json:"enqueued_at"`
	Token      string `json:"token" doc:"proves the claim: whoever completes, fails, prolongs or gives back the job sends it"`
	LeaseMS    int64  `json:"lease_ms" doc:"how long the claim holds without a heartbeat, in milliseconds"`
	LeaseUntil Time   `json:"lease_until" doc:"when others get the job if there is no heartbeat"`
}

// ClaimJob is a request for one job.
type ClaimJob struct {
	Worker string `json:"worker" minLength:"1" maxLength:"256" doc:"id of the worker"`
	Token  string `json:"token,omitempty" maxLength:"256" doc:"one of the caller's choice: with the same one the request may be sent again; absent = the answer has a new one"`
}

// JobParams holds the params that were too large to be sent with each job of a step.
type JobParams struct {
	Params   json.RawMessage `json:"params"`
	RunInput json.RawMessage `json:"run_input" doc:"what the task was started with"`
}

// Numbers holds the metrics that jobs report.
type Numbers struct {
	Metrics json.RawMessage `json:"metrics,omitempty" doc:"numbers that the job tells of itself, kept with the attempt whatever becomes of it: a list of {name, labels, count, sum, last}"`
}

// JobOutput ends a job with success.
type JobOutput struct {
	Worker string          `json:"worker,omitempty" maxLength:"256" doc:"who has carried it out"`
	Token  string          `json:"token" minLength:"1" maxLength:"256" doc:"of the claim"`
	Output json.RawMessage `json:"output,omitempty" doc:"any JSON; absent = null"`
	Log    string          `json:"log,omitempty" doc:"what the worker has to say about it beside that, as one text"`
	Numbers
	Said
}

// JobFailure ends a job with an error.
type JobFailure struct {
	Worker  string          `json:"worker,omitempty" maxLength:"256" doc:"who has tried it"`
	Token   string          `json:"token" minLength:"1" maxLength:"256" doc:"of the claim"`
	Error   string          `json:"error" minLength:"1" doc:"why it failed"`
	Details json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON, kept with the attempt"`
	Fatal   bool            `json:"fatal,omitempty" doc:"trying again is of no use"`
	Log     string          `json:"log,omitempty" doc:"what the worker has to say about it beside that, as one text"`
	Numbers
	Said
}

// Report is the result of a job: a success, unless it has an error.
type Report struct {
	Job     string          `json:"job" maxLength:"20000" doc:"its id"`
	Token   string          `json:"token" minLength:"1" maxLength:"256" doc:"of the claim"`
	Output  json.RawMessage `json:"output,omitempty" doc:"any JSON; absent = null"`
	Error   string          `json:"error,omitempty" doc:"why it failed"`
	Details json.RawMessage `json:"details,omitempty" doc:"with an error: any JSON, kept with the attempt"`
	Fatal   bool            `json:"fatal,omitempty" doc:"with an error: trying again is of no use"`
	Log     string          `json:"log,omitempty" doc:"what the worker has to say about it beside that, as one text"`
	Numbers
	Said
}

// Reports holds several reports.
type Reports struct {
	Reports []Report `json:"reports" minItems:"1" maxItems:"1000"`
	Next    *Wanted  `json:"next,omitempty" doc:"jobs to claim beside that: of those that wait the oldest, and those that begin by what is reported; absent = none"`
}

// Reported is the answer to a Report.
type Reported struct {
	Job     string   `json:"job"`
	Changed bool     `json:"changed" doc:"false: it came late, or again, and had no effect"`
	Problem *Problem `json:"problem,omitempty" doc:"of one of several: why it was refused"`
}

// ReportedJobs is the answer to Reports.
type ReportedJobs struct {
	Items []Reported   `json:"items" doc:"each in its place; never null"`
	Jobs  []ClaimedJob `json:"jobs,omitempty" doc:"that were claimed; absent when there are none"`
}

// GiveBack returns claims that the worker will not carry out.
type GiveBack struct {
	Claims []HeldClaim `json:"claims" minItems:"1" maxItems:"1000"`
}
