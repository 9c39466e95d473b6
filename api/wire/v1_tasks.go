package wire

import "encoding/json"

// StartRequest is a request to start a task of a flow.
type StartRequest struct {
	Flow           string            `json:"flow" minLength:"1" doc:"Slug of the flow, or its ID."`
	Version        int               `json:"version,omitempty" minimum:"0" doc:"Number of the version; 0 = the newest published one."`
	Params         json.RawMessage   `json:"params,omitempty" doc:"Params of the task: a JSON object, or any JSON for a flow of dag mode; absent = {}."`
	Input          json.RawMessage   `json:"input,omitempty" doc:"Alternative to params; send only one of them."`
	Labels         map[string]string `json:"labels,omitempty" maxProperties:"64" nullable:"true" doc:"Labels of the task."`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task. It can be sent as the header Idempotency-Key instead."`
	WaitMS         int64             `json:"wait_ms,omitempty" minimum:"0" maximum:"300000" doc:"Maximum time in milliseconds to wait for the task's end before the answer; 0 = do not wait."`
	WaitUntil      string            `json:"wait_until,omitempty" maxLength:"1000" doc:"With wait_ms: the step whose end the answer waits for, instead of the task's end. NODE, or NODE#2 for its second visit; for a function the name of a step."`
	DryRun         bool              `json:"dry_run,omitempty" doc:"True to get a preview of the task and start nothing."`
}

// StartResult is the answer to a StartRequest.
type StartResult struct {
	ID      string   `json:"id,omitempty" doc:"ID of the task; absent for a dry run."`
	Created bool     `json:"created" doc:"True if the task was started; false for a dry run, and if a task with this idempotency key existed already."`
	Task    *Task    `json:"task,omitempty" doc:"With wait_ms: the task after the wait, ended or not."`
	Step    *Step    `json:"step,omitempty" doc:"With wait_until: the step, if it has ended."`
	Preview *Preview `json:"preview,omitempty" doc:"For a dry run: the predicted course of the task."`
}

// BatchStartRequest is a request to start several tasks.
type BatchStartRequest struct {
	Starts []StartRequest `json:"starts" minItems:"1" maxItems:"1000" doc:"Starts, each as if sent alone, but without wait_ms and dry_run."`
}

// BatchStartResults is the answer to a BatchStartRequest.
type BatchStartResults struct {
	Items []BatchStartResult `json:"items" doc:"Results in the order of the starts; never null."`
}

// BatchStartResult is the result of one of several starts.
type BatchStartResult struct {
	ID      string   `json:"id,omitempty" doc:"ID of the task; absent if it was rejected."`
	Created bool     `json:"created" doc:"True if the task was started; false if a task with its idempotency key existed already, and if it was rejected."`
	Problem *Problem `json:"problem,omitempty" doc:"Reason for the rejection; the other starts are not affected."`
}

// ForkRequest is a request for a task that continues from the history of another task, which has
// ended.
type ForkRequest struct {
	Version        int                        `json:"version,omitempty" minimum:"0" doc:"Number of the flow's version for the new task; 0 = the version of the original task."`
	Latest         bool                       `json:"latest,omitempty" doc:"True to run the newest published version."`
	From           string                     `json:"from,omitempty" maxLength:"200" doc:"Node at the top level of the flow that runs again, together with all steps that follow from it."`
	AtSeq          int64                      `json:"at_seq,omitempty" minimum:"0" doc:"Number of a journal row (seq of an event): the new task continues from the state of the original task at that row. The original task need not have ended. Not together with from."`
	Params         json.RawMessage            `json:"params,omitempty" doc:"Params for the remaining work; absent = those of the original task."`
	Shared         map[string]json.RawMessage `json:"shared,omitempty" doc:"In graph mode: values of shared to change, by key; the others are those of the original task."`
	Results        map[string]json.RawMessage `json:"results,omitempty" doc:"In code mode: recorded results to change, by the names of steps that the fork keeps, such as charge or charge#2."`
	IdempotencyKey string                     `json:"idempotency_key,omitempty" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task."`
	DryRun         bool                       `json:"dry_run,omitempty" doc:"True to get the plan and start nothing."`
}

// ForkResult is the answer to a ForkRequest. It lists the steps that the new task keeps, and the
// steps that it repeats.
type ForkResult struct {
	ID         string     `json:"id,omitempty" doc:"ID of the new task; absent for a dry run."`
	Created    bool       `json:"created" doc:"True if the task was started; false for a dry run, and if a task with this idempotency key existed already."`
	From       string     `json:"forked_from" doc:"ID of the original task."`
	Version    int        `json:"version" doc:"Number of the version of the new task."`
	KeptSteps  []ForkStep `json:"kept_steps" doc:"Ended steps that keep their results; the first 1,000; never null."`
	RerunSteps []ForkStep `json:"rerun_steps" doc:"Steps that run again, including those that had not ended; the first 1,000; never null."`
	KeptCount  int        `json:"kept_count" doc:"Number of kept steps."`
	RerunCount int        `json:"rerun_count" doc:"Number of steps that run again."`
	Preview    *Preview   `json:"preview,omitempty" doc:"For a dry run: the predicted course of the new task."`
}

// Preview is the predicted course of a task that is not started.
type Preview struct {
	Steps     []PreviewStep `json:"steps" doc:"Steps in the order of their start; never null."`
	State     string        `json:"state,omitempty" doc:"Final state; absent if it depends on the result of a job or a wait."`
	Truncated bool          `json:"truncated" doc:"True if the prediction stopped at 1,000 steps or 2,000 decisions."`
}

// PreviewStep is a step in a Preview.
type PreviewStep struct {
	Scope       string `json:"scope,omitempty" doc:"Path of the scope."`
	Node        string `json:"node" doc:"Key of the node."`
	Visit       int    `json:"visit" doc:"Number of the visit."`
	Outcome     string `json:"outcome" enum:"decided,recorded,called,waits,skipped" doc:"Outcome of the step. decided: it ends without a job. recorded: the same node with the same input has a recorded result, which is used. called: it needs a job, and what follows is not known. waits: it waits for a signal, an approval, or its inner scope."`
	Service     string `json:"service,omitempty" doc:"For a step with jobs: its service, function or kind of program."`
	Units       int    `json:"units,omitempty" doc:"For a step with jobs: number of units."`
	Next        string `json:"next,omitempty" doc:"Next node, in graph mode."`
	Output      string `json:"output,omitempty" doc:"For a recorded step with one unit: JSON of the output, or its first part."`
	OutputBytes int    `json:"output_bytes,omitempty" doc:"Size of the output in bytes."`
}

// RerunRequest is a request for a task that repeats another one from the beginning.
type RerunRequest struct {
	Version        int             `json:"version,omitempty" minimum:"0" doc:"Number of the flow's version for the new task; 0 = the version of the original task."`
	Latest         bool            `json:"latest,omitempty" doc:"True to run the newest published version."`
	Params         json.RawMessage `json:"params,omitempty" doc:"Params of the new task; absent = those of the original task."`
	IdempotencyKey string          `json:"idempotency_key,omitempty" maxLength:"200" doc:"Idempotency key: requests with the same key and flow are the same task."`
	DryRun         bool            `json:"dry_run,omitempty" doc:"True to get a preview of the task and start nothing."`
}

// RerunResult is the answer to a RerunRequest.
type RerunResult struct {
	ID      string   `json:"id,omitempty" doc:"ID of the new task; absent for a dry run."`
	Created bool     `json:"created" doc:"True if the task was started; false for a dry run, and if a task with this idempotency key existed already."`
	From    string   `json:"forked_from" doc:"ID of the original task."`
	Version int      `json:"version" doc:"Number of the version of the new task."`
	Preview *Preview `json:"preview,omitempty" doc:"For a dry run: the predicted course of the new task."`
}

// ForkStep is a step of the history that a fork continues from.
type ForkStep struct {
	Scope       string `json:"scope,omitempty" doc:"Path of the scope."`
	Node        string `json:"node" doc:"Key of the node."`
	Visit       int    `json:"visit" doc:"Number of the visit."`
	Output      string `json:"output,omitempty" doc:"For a kept step: JSON of the recorded output, or its first part."`
	OutputBytes int    `json:"output_bytes,omitempty" doc:"Size of the output in bytes."`
	Reason      string `json:"reason,omitempty" enum:"changed,downstream,requested,compensated,failed,unfinished" doc:"Reason why the step runs again. changed: its node differs or was removed. downstream: a step before it runs again, or leads to another node. requested: it is from. compensated: it was compensated. failed: it failed. unfinished: it had not ended."`
}

// TaskSummary is a task in a list. The node, last action and steps of a running task may be a
// second old.
type TaskSummary struct {
	ID            string            `json:"id" doc:"ID of the task."`
	Flow          string            `json:"flow" doc:"Slug of the flow, or its ID if it has none."`
	FlowName      string            `json:"flow_name,omitempty" doc:"Name of the flow."`
	Version       int               `json:"version" doc:"Number of the version."`
	VersionID     string            `json:"version_id" doc:"ID of the version."`
	State         string            `json:"state" enum:"pending,running,completed,failed,canceling,canceled" doc:"State of the task."`
	Paused        bool              `json:"paused" doc:"True if the task is paused."`
	Node          string            `json:"node,omitempty" doc:"Node of the cursor."`
	LastAction    string            `json:"last_action,omitempty" doc:"Last action, in graph mode."`
	Steps         int               `json:"steps" doc:"Number of ended steps."`
	IgnoredErrors int               `json:"ignored_errors,omitempty" doc:"Number of failed steps that did not stop the task, because of on_error: follow."`
	Error         string            `json:"error,omitempty" doc:"Error of a failed task."`
	WaitingFor    []string          `json:"waiting_for,omitempty" enum:"approval,signal,timer,manual" doc:"Kinds of its waits, except jobs and retries."`
	Wait          *TaskWait         `json:"wait,omitempty" doc:"First of these waits: an approval before others, then the longest one."`
	Labels        map[string]string `json:"labels,omitempty" doc:"Labels of the task."`
	CreatedAt     Time              `json:"created_at" doc:"Time when the task was created."`
	UpdatedAt     Time              `json:"updated_at" doc:"Time of the last change."`
	EndedAt       Time              `json:"ended_at,omitzero" doc:"Time of the end."`
	Warning       string            `json:"warning,omitempty" doc:"In the answer to a command: reason why it may not have the intended effect."`
}

// TaskWait is a step that waits, and the kind of its wait.
type TaskWait struct {
	Kind         string `json:"kind" enum:"approval,signal,timer,manual" doc:"Kind of the wait."`
	Scope        string `json:"scope,omitempty" doc:"Path of the scope, such as order#1/ship#2; absent for the task's root."`
	Node         string `json:"node" doc:"Key of the node."`
	Visit        int    `json:"visit" doc:"Number of the visit."`
	Key          string `json:"key,omitempty" doc:"Key to signal."`
	WaitingSince Time   `json:"waiting_since" doc:"Time when the wait started."`
	Deadline     Time   `json:"deadline,omitzero" doc:"Time when the wait ends by itself."`
}

// Task is a task in its current state according to its journal.
type Task struct {
	TaskSummary
	Mode                string                     `json:"mode" enum:"graph,dag,code" doc:"Mode of the flow."`
	PausedAt            Time                       `json:"paused_at,omitzero" doc:"Time when the task was paused; absent if it is not paused."`
	Forked              string                     `json:"forked_from,omitempty" doc:"ID of the original task of a fork or rerun."`
	TraceID             string                     `json:"trace_id" doc:"ID of the task's trace, in hexadecimal."`
	Params              json.RawMessage            `json:"params" doc:"Params of the task."`
	Shared              map[string]json.RawMessage `json:"shared" doc:"Shared state of the nodes."`
	Result              json.RawMessage            `json:"result,omitempty" doc:"Result of a completed task: the key of shared that the flow names, otherwise all of shared. In dag mode: the output."`
	Step                *Step                      `json:"step,omitempty" doc:"With wait_until: the step, if it has ended."`
	Active              []Step                     `json:"active" doc:"Active steps, the outermost first, at most 100; never null."`
	Counts              *StepCounts                `json:"counts,omitempty" doc:"Numbers of steps by state, in dag mode."`
	IgnoredErrorDetails []IgnoredError             `json:"ignored_error_details,omitempty" doc:"Last ignored error of each node in order of time, for the 20 nodes that failed last."`
	Seq                 int64                      `json:"seq" doc:"Number of the last journal row in this answer; follow events from here with after."`
}

// TaskCount is a number of tasks.
type TaskCount struct {
	Count  int         `json:"count" doc:"Number of tasks, at most 10,000, or 1,000 for a label with another filter. With group_by: sum of the groups."`
	Exact  bool        `json:"exact" doc:"False if there are or may be more tasks."`
	Groups []TaskGroup `json:"groups" doc:"Groups, with group_by; never null."`
}

// TaskGroup is the number of tasks in a group.
type TaskGroup struct {
	Key       string `json:"key" doc:"State, slug of a flow, or value of a label; empty = without that label."`
	Count     int    `json:"count" doc:"Number of tasks."`
	Truncated bool   `json:"truncated,omitempty" doc:"True if there are or may be more tasks."`
}

// IgnoredError counts failures of a node that did not stop the task, because on_error is follow.
type IgnoredError struct {
	Node  string `json:"node" doc:"Path of the node."`
	Count int    `json:"count" doc:"Number of these failures."`
	Visit int    `json:"visit" doc:"Visit of the last failure."`
	Error string `json:"error" doc:"Error of the last failure, its first 1,000 bytes."`
	At    Time   `json:"at" doc:"Time of the last failure."`
}

// Step is the state of a node within a task.
type Step struct {
	Scope           string          `json:"scope,omitempty" doc:"Path of the scope, such as order#1/ship#2; absent for the task's root; ~ is the scope of compensations and clean-up."`
	Node            string          `json:"node" doc:"Slug of the node; send it as step."`
	Kind            string          `json:"kind" doc:"Kind of the node."`
	Visit           int             `json:"visit" doc:"Number of the visit; 0 = not started."`
	State           string          `json:"state" enum:"created,started,completed,failed,skipped" doc:"State of the step."`
	Reason          string          `json:"reason,omitempty" doc:"Reason of a failure or skip, in one word."`
	SkipMode        string          `json:"skip_mode,omitempty" enum:"propagate,optional" doc:"For a skipped step: whether its dependents are skipped, too."`
	Action          string          `json:"action,omitempty" doc:"Action with which it ended, in graph mode."`
	Route           string          `json:"route,omitempty" enum:"push,queue,direct" doc:"Route of its jobs; direct = complete its units with /complete."`
	GeneratedFor    string          `json:"generated_for,omitempty" doc:"Key of the node for which the compiler generated it: gates, conditions and preps are generated."`
	Held            bool            `json:"held,omitempty" doc:"True if the step does not start before /release."`
	WaitingFor      []string        `json:"waiting_for,omitempty" doc:"First 20 nodes that must end before it starts."`
	WaitingForCount int             `json:"waiting_for_count,omitempty" doc:"Number of nodes that must end before it starts."`
	Wait            *WaitReason     `json:"wait,omitempty" doc:"For a started step: the first reason why it waits."`
	Units           UnitCounts      `json:"units" doc:"Numbers of units."`
	Output          json.RawMessage `json:"output,omitempty" doc:"Output of a completed step; absent in lists of active steps."`
	Error           string          `json:"error,omitempty" doc:"Error of the step."`
	Details         json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON from the worker."`
	EnteredAt       Time            `json:"entered_at,omitzero" doc:"Time of the start."`
	EndedAt         Time            `json:"ended_at,omitzero" doc:"Time of the end."`
	DueAt           Time            `json:"due_at,omitzero" doc:"Time when its time limit or timer ends."`
	InnerScope      string          `json:"inner_scope,omitempty" doc:"Path of the scope inside it; list its steps with scope=."`
}

// UnitCounts counts the units of a step by state.
type UnitCounts struct {
	Total    int `json:"total" doc:"Number of units."`
	Appended int `json:"appended,omitempty" doc:"Number of appended units."`
	InFlight int `json:"in_flight" doc:"Number of units in flight."`
	Retrying int `json:"retrying" doc:"Number of units that wait for a retry."`
	Done     int `json:"done" doc:"Number of ended units, including failed ones."`
	Failed   int `json:"failed" doc:"Number of failed units."`
}

// StepCounts counts the steps of a task's root by state, including steps that the compiler adds.
type StepCounts struct {
	Created   int `json:"created" doc:"Number of steps that have not started."`
	Started   int `json:"started" doc:"Number of started steps."`
	Completed int `json:"completed" doc:"Number of completed steps."`
	Failed    int `json:"failed" doc:"Number of failed steps."`
	Skipped   int `json:"skipped" doc:"Number of skipped steps."`
}

// Unit is one unit of a step.
type Unit struct {
	Unit       int             `json:"unit" doc:"Index of the unit, from 0."`
	Name       string          `json:"name,omitempty" doc:"Name of a branch."`
	State      string          `json:"state" enum:"pending,dispatched,running,completed,failed,canceled" doc:"State of the unit."`
	Attempt    int             `json:"attempt,omitempty" doc:"Number of the last attempt."`
	Appended   bool            `json:"appended,omitempty" doc:"True if the unit was appended."`
	Input      json.RawMessage `json:"input,omitempty" doc:"Input of the unit."`
	Output     json.RawMessage `json:"output,omitempty" doc:"Output of the unit."`
	Error      string          `json:"error,omitempty" doc:"Error of the last attempt."`
	Details    json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON from the worker."`
	Worker     string          `json:"worker,omitempty" doc:"ID of the worker that has the job."`
	StatusText string          `json:"status_text,omitempty" doc:"Status text from the worker."`
	RetryAt    Time            `json:"retry_at,omitzero" doc:"Time of the next attempt."`
	DueAt      Time            `json:"due_at,omitzero" doc:"Time when the attempt times out."`
}

// UnitStates are the states of all units of a step, in order of index.
type UnitStates struct {
	Total int       `json:"total" doc:"Number of units."`
	Runs  []UnitRun `json:"runs" doc:"Runs of consecutive units with the same state; never null."`
}

// UnitRun is a number of consecutive units in the same state.
type UnitRun struct {
	Count int    `json:"count" doc:"Number of units."`
	State string `json:"state" enum:"pending,dispatched,running,completed,failed,canceled" doc:"State of the units."`
}

// StepName identifies a step in a body. A path is not used, because slugs may contain / and :.
type StepName struct {
	Step  string `json:"step" minLength:"1" maxLength:"1000" doc:"Slug of the step, such as review or B/list."`
	Scope string `json:"scope,omitempty" maxLength:"20000" doc:"Path of the scope; absent for the task's root."`
}

// AppendUnits is a request to add units to a fanout that has begun.
type AppendUnits struct {
	StepName
	Items []json.RawMessage `json:"items" minItems:"1" nullable:"false" doc:"Inputs of the new units."`
	Route string            `json:"route,omitempty" enum:"push,queue,direct" doc:"Route of the step, to check that it is the expected one."`
}

// AppendedUnits is the answer to an AppendUnits request, with the indexes of the new units.
type AppendedUnits struct {
	Units []int `json:"units" doc:"Indexes of the new units."`
}

// CompleteRequest ends a unit that has the route direct, with an output or an error.
type CompleteRequest struct {
	StepName
	Unit   int             `json:"unit,omitempty" minimum:"0" doc:"Index of the unit; absent = 0."`
	Output json.RawMessage `json:"output,omitempty" doc:"Output of the unit, any JSON; absent = null."`
	Error  string          `json:"error,omitempty" doc:"Error of the unit, which is not retried."`
}

// CompleteResult is the answer to a CompleteRequest.
type CompleteResult struct {
	Changed bool        `json:"changed" doc:"True if the unit ended by this request; false if it had ended before."`
	Task    TaskSummary `json:"task" doc:"The task."`
}

// CancelRequest is a request to cancel a task. Without a body, work in flight is withdrawn.
type CancelRequest struct {
	Graceful bool `json:"graceful,omitempty" doc:"True to let started jobs finish, after which the task ends. Jobs that no worker has started, waits and retries are canceled at once."`
	Force    bool `json:"force,omitempty" doc:"True to end compensations and finally, too."`
}

// RetryRequest selects what part of a failed task is retried. Without a body, all failed steps are
// retried.
type RetryRequest struct {
	Step string `json:"step,omitempty" maxLength:"1000" doc:"In dag mode: failed step of the task's root to retry alone, together with the steps that were skipped because of it."`
}

// Signal sets a key of a task's shared state and wakes the steps that wait for it.
type Signal struct {
	Key    string          `json:"key" minLength:"1" maxLength:"256" doc:"Key of shared to set."`
	Value  json.RawMessage `json:"value,omitempty" doc:"Value, any JSON; absent = null."`
	SentBy string          `json:"sent_by,omitempty" maxLength:"256" doc:"Name of the sender, for the task's history. It is not verified; the name of a token that an admin created replaces it." example:"ada"`
}

// Place is a place in a task. Fields that do not apply are absent; Unit counts from 0.
type Place struct {
	Scope   string `json:"scope,omitempty" doc:"Path of the scope, such as order#1/ship#2; absent for the task's root."`
	Node    string `json:"node,omitempty" doc:"Key of the node."`
	Visit   int    `json:"visit,omitempty" doc:"Number of the visit."`
	Unit    int    `json:"unit,omitempty" doc:"Index of the unit; absent = 0, the only one of most steps."`
	Attempt int    `json:"attempt,omitempty" doc:"Number of the attempt."`
}

// Event is a fact about a task. The history of a task is the list of its events.
type Event struct {
	ID   string `json:"id" doc:"Position in the task's history: journal row and place in it." example:"12.0"`
	Seq  int64  `json:"seq" doc:"Number of the journal row; events that were stored together have the same one."`
	Type string `json:"type" example:"step_ended" doc:"Type of the event."`
	At   Time   `json:"at" doc:"Time of the event."`
	Place

	State       string          `json:"state,omitempty" doc:"State in which the task, step or attempt ended."`
	Action      string          `json:"action,omitempty" doc:"Action with which the step ended."`
	Next        string          `json:"next,omitempty" doc:"Next node."`
	Input       json.RawMessage `json:"input,omitempty" doc:"For step_ended: values of its output_map that are in the payload store, by their keys in shared."`
	InputRef    string          `json:"input_ref,omitempty" doc:"Reference whose value at that time is the input."`
	Output      json.RawMessage `json:"output,omitempty" doc:"Output; for a signal: its value."`
	Error       string          `json:"error,omitempty" doc:"Error of the task, step or attempt."`
	Details     json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON from the worker."`
	Metrics     json.RawMessage `json:"metrics,omitempty" doc:"Metrics from the attempt's program: {name, labels, count, sum, last} for each name and labels."`
	Reason      string          `json:"reason,omitempty" doc:"Reason of a failure or skip, in one word."`
	Total       int             `json:"total,omitempty" doc:"Number of started or appended units; for task_closing: number of steps to compensate."`
	Index       int             `json:"index,omitempty" doc:"For an external job that has ended: its index in the list of jobs of the attempt."`
	ReusedUnits int             `json:"reused_units,omitempty" doc:"For a retried step: number of units whose results of the last visit are reused, 1 for the scope of a subflow."`
	DueAt       Time            `json:"due_at,omitzero" doc:"Time when the time limit, timer or retry is due."`
	Member      string          `json:"member,omitempty" doc:"Incarnation of the member that carries the attempt."`
	Worker      string          `json:"worker,omitempty" doc:"ID of the worker."`
	URL         string          `json:"url,omitempty" doc:"URL of the worker or request."`
	Log         bool            `json:"log,omitempty" doc:"True if the attempt has a log."`
	Until       Time            `json:"until,omitzero" doc:"End of a claim. For step_entered: time when the units may start. For an attempt that starts elsewhere: time of its start."`
	StatusText  string          `json:"status_text,omitempty" doc:"Status text from the worker."`
	Key         string          `json:"key,omitempty" doc:"Key of the signal."`
	SentBy      string          `json:"sent_by,omitempty" doc:"Name of the sender of a signal, as it was sent."`
	Version     string          `json:"version,omitempty" doc:"ID of the version."`
	Params      json.RawMessage `json:"params,omitempty" doc:"Params of the task."`
	RequestID   string          `json:"request_id,omitempty" doc:"ID of the request that caused it."`
}

// Run is an entry of a task's history for display: an attempt, or the end of a step without an
// attempt.
type Run struct {
	Place
	Job        string `json:"job,omitempty" doc:"ID of the job, for attempts."`
	Kind       string `json:"kind" enum:"attempt,summary,cancel" doc:"Kind of the entry: an attempt of a unit, the end of a step without an attempt, or the cancellation of the task."`
	Branch     string `json:"branch,omitempty" doc:"Name of the unit."`
	State      string `json:"state" enum:"running,ok,error,timeout,canceled,skipped" doc:"State of the entry."`
	Queue      bool   `json:"queue,omitempty" doc:"True if its job travels by the queue."`
	StatusText string `json:"status_text,omitempty" doc:"Status text from the worker."`

	Input   json.RawMessage `json:"input,omitempty" doc:"Input of the attempt."`
	Output  json.RawMessage `json:"output,omitempty" doc:"Output of the attempt."`
	Error   string          `json:"error,omitempty" doc:"Error of the attempt."`
	Details json.RawMessage `json:"details,omitempty" doc:"Details of the error: any JSON from the worker."`
	Metrics json.RawMessage `json:"metrics,omitempty" doc:"Metrics from the attempt's program: {name, labels, count, sum, last} for each name and labels."`
	Reason  string          `json:"reason,omitempty" doc:"Reason of a failure or skip, in one word."`
	Action  string          `json:"action,omitempty" doc:"Action of the step; skip mode of a skipped step."`

	Worker    string `json:"worker,omitempty" doc:"ID of the worker."`
	URL       string `json:"url,omitempty" doc:"URL of the worker or request."`
	Log       bool   `json:"log,omitempty" doc:"True if /v1/jobs/{job}/log has its output."`
	StartedAt Time   `json:"started_at" doc:"Time of the start."`
	EndedAt   Time   `json:"ended_at,omitzero" doc:"Time of the end; absent while it runs."`
}

// WaitReason describes a reason why a task waits, in words for operators.
type WaitReason struct {
	Place
	Kind         string `json:"kind" enum:"job,claim,external,retry,timer,signal,approval,manual,delay,resume,permit,code" doc:"Kind of the wait. job: a job waits for a worker, or a member runs it. claim: a worker has the job. external: jobs of another system. manual: a request that completes the unit. permit: a concurrency key. resume: the step is held, or the task is paused. code: a function that is a flow is stopped."`
	Text         string `json:"text" doc:"Description of the wait and of how it ends."`
	Job          string `json:"job,omitempty" doc:"ID of the job."`
	Key          string `json:"key,omitempty" doc:"Key of the missing permit."`
	Ahead        *int   `json:"ahead,omitempty" doc:"Minimum number of waits ahead for the same permit key or service, for permits and for jobs that a worker must poll for, including jobs that workers have."`
	WaitingSince Time   `json:"waiting_since,omitzero" doc:"Time when the wait started."`
	Deadline     Time   `json:"deadline,omitzero" doc:"Time when the wait ends by itself; absent if it has no limit."`

	Service string   `json:"service,omitempty" doc:"Service that a worker must poll for."`
	Labels  []string `json:"labels,omitempty" doc:"Labels that the worker must have."`
	Workers *int     `json:"workers,omitempty" doc:"Number of online, registered workers with the service and the labels; 0 = a worker must be started."`
}

// WaitReasons lists the reasons why a task waits.
type WaitReasons struct {
	State string       `json:"state" doc:"State of the task."`
	Waits []WaitReason `json:"waits" doc:"Reasons; empty if the task has ended or has just moved on; never null."`
}

// TaskEnd is the last event of a task's stream.
type TaskEnd struct {
	Task          string          `json:"task" doc:"ID of the task."`
	State         string          `json:"state" enum:"completed,failed,canceled" doc:"Final state."`
	Error         string          `json:"error,omitempty" doc:"Error of a failed task."`
	IgnoredErrors int             `json:"ignored_errors,omitempty" doc:"Number of failed steps that did not stop the task, because of on_error: follow."`
	Result        json.RawMessage `json:"result,omitempty" doc:"Result of a completed task."`
}
