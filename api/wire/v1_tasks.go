package wire

import "encoding/json"

// Start is a request to start a task of a flow.
type Start struct {
	Flow           string            `json:"flow" minLength:"1" doc:"slug of the flow, or its id"`
	Version        int               `json:"version,omitempty" minimum:"0" doc:"number of the version; 0 = the newest published one"`
	Params         json.RawMessage   `json:"params,omitempty" doc:"JSON object, for a flow of dag mode any JSON; absent = {}"`
	Input          json.RawMessage   `json:"input,omitempty" doc:"another name of params: send one of them"`
	Labels         map[string]string `json:"labels,omitempty" maxProperties:"64" nullable:"true" doc:"marks to find the task by"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"200" doc:"the same key for the same flow is the same task; may be sent as the header Idempotency-Key instead"`
	WaitMS         int64             `json:"wait_ms,omitempty" minimum:"0" maximum:"300000" doc:"wait this long for the task's end and answer with it; 0 = not at all"`
	DryRun         bool              `json:"dry_run,omitempty" doc:"answers with what the task would do, and starts nothing"`
}

// Started is the answer to a Start.
type Started struct {
	ID        string     `json:"id,omitempty" doc:"absent after a dry run"`
	Created   bool       `json:"created" doc:"false after a dry run, and when a task with this idempotency key had been started before"`
	Task      *Task      `json:"task,omitempty" doc:"when wait_ms was sent: the task as it is then, ended or not"`
	Foresight *Foresight `json:"foresight,omitempty" doc:"of a dry run: what the task would do"`
}

// Starts is a request to start several tasks.
type Starts struct {
	Starts []Start `json:"starts" minItems:"1" maxItems:"1000" doc:"each as if it were sent alone, but without wait_ms and dry_run"`
}

// StartedTasks is the answer to Starts.
type StartedTasks struct {
	Items []StartedTask `json:"items" doc:"each in its place; never null"`
}

// StartedTask is the result of one of several starts.
type StartedTask struct {
	ID      string   `json:"id,omitempty" doc:"absent when it was refused"`
	Created bool     `json:"created" doc:"false when a task with its idempotency key had been started before, and when it was refused"`
	Problem *Problem `json:"problem,omitempty" doc:"why it was refused; the other ones are not concerned"`
}

// Fork is a request for a task that continues from the history of another task, which has ended.
type Fork struct {
	Version        int                        `json:"version,omitempty" minimum:"0" doc:"number of the flow's version that the new task runs; 0 = the one of the other task"`
	Newest         bool                       `json:"newest,omitempty" doc:"the newest published version"`
	From           string                     `json:"from,omitempty" maxLength:"200" doc:"a node at the top of the flow that is done again, with all that follows from it"`
	At             int64                      `json:"at,omitempty" minimum:"0" doc:"seq of an event: the new task goes on from what the other one was when that was stored, and that one need not have ended. Not beside from"`
	Params         json.RawMessage            `json:"params,omitempty" doc:"with which what is left is done; those of the other task when absent"`
	Shared         map[string]json.RawMessage `json:"shared,omitempty" doc:"graph mode: values of shared with which it goes on, by their keys; the others are those of the other task"`
	IdempotencyKey string                     `json:"idempotency_key,omitempty" maxLength:"200" doc:"the same key for the same flow is the same task"`
	DryRun         bool                       `json:"dry_run,omitempty" doc:"answers with the plan and starts nothing"`
}

// Forked is the answer to a Fork: the part of the other task that the new one keeps, and the part
// it repeats.
type Forked struct {
	ID         string     `json:"id,omitempty" doc:"of the new task; absent after a dry run"`
	Created    bool       `json:"created" doc:"false after a dry run, and when a task with this idempotency key had been started before"`
	From       string     `json:"forked_from" doc:"id of the other task"`
	Version    int        `json:"version" doc:"number of the version that the new task runs"`
	Keeps      []ForkStep `json:"keeps" doc:"steps that have ended, whose results count; the first 1,000; never null"`
	Again      []ForkStep `json:"again" doc:"steps that are done again, those that had not ended among them; the first 1,000; never null"`
	KeptSteps  int        `json:"kept_steps" doc:"how many are kept"`
	AgainSteps int        `json:"again_steps" doc:"how many are done again"`
	Foresight  *Foresight `json:"foresight,omitempty" doc:"of a dry run: what the new task would do"`
}

// Foresight is the predicted course of a task that is not started.
type Foresight struct {
	Steps []ForeseenStep `json:"steps" doc:"in the order in which they would begin; never null"`
	State string         `json:"state,omitempty" doc:"in which it would end; absent when that depends on what is called or waited for"`
	More  bool           `json:"more" doc:"there would be more than 1,000 steps, or 2,000 decisions"`
}

// ForeseenStep is a step in a Foresight.
type ForeseenStep struct {
	Scope       string `json:"scope,omitempty"`
	Node        string `json:"node"`
	Visit       int    `json:"visit"`
	How         string `json:"how" enum:"decided,recorded,called,waits,skipped" doc:"decided: it ends without anybody; recorded: its work was done before, by the same node with the same input, and what came of it counts; called: somebody would be called, and what follows is not known; waits: for a signal, an approval, or what goes on inside of it"`
	Service     string `json:"service,omitempty" doc:"of one that is called: the service, function or kind of program"`
	Calls       int    `json:"calls,omitempty" doc:"for how many units"`
	Next        string `json:"next,omitempty" doc:"where a step of a graph leads"`
	Output      string `json:"output,omitempty" doc:"that is recorded, of a step with one unit: JSON, or the beginning of it"`
	OutputBytes int    `json:"output_bytes,omitempty"`
}

// Rerun is a request for a task that repeats another one from the beginning.
type Rerun struct {
	Version        int             `json:"version,omitempty" minimum:"0" doc:"number of the flow's version that the new task runs; 0 = the one of the other task"`
	Newest         bool            `json:"newest,omitempty" doc:"the newest published version"`
	Params         json.RawMessage `json:"params,omitempty" doc:"those of the other task when absent"`
	IdempotencyKey string          `json:"idempotency_key,omitempty" maxLength:"200" doc:"the same key for the same flow is the same task"`
	DryRun         bool            `json:"dry_run,omitempty" doc:"answers with what the task would do, and starts nothing"`
}

// Reran is the answer to a Rerun.
type Reran struct {
	ID        string     `json:"id,omitempty" doc:"of the new task; absent after a dry run"`
	Created   bool       `json:"created" doc:"false after a dry run, and when a task with this idempotency key had been started before"`
	From      string     `json:"forked_from" doc:"id of the other task"`
	Version   int        `json:"version" doc:"number of the version that the new task runs"`
	Foresight *Foresight `json:"foresight,omitempty" doc:"of a dry run: what the new task would do"`
}

// ForkStep is a step of the history that a fork continues from.
type ForkStep struct {
	Scope       string `json:"scope,omitempty"`
	Node        string `json:"node"`
	Visit       int    `json:"visit"`
	Output      string `json:"output,omitempty" doc:"of a step that is kept: JSON that is recorded, or the beginning of it"`
	OutputBytes int    `json:"output_bytes,omitempty"`
	Why         string `json:"why,omitempty" enum:"changed,after,asked,undone,failed,unended" doc:"changed: the node does something else now, or is no more; after: what it follows is done again, or leads elsewhere; asked: it is from; undone: it was compensated; failed; unended: it was under way"`
}

// TaskSummary is a task in a list. Its node, last action and steps may be a second old while it
// runs.
type TaskSummary struct {
	ID         string            `json:"id"`
	Flow       string            `json:"flow" doc:"slug of the flow, or its id when it has none"`
	FlowName   string            `json:"flow_name,omitempty"`
	Version    int               `json:"version" doc:"number of the version it runs"`
	VersionID  string            `json:"version_id"`
	State      string            `json:"state" enum:"pending,running,completed,failed,canceling,canceled"`
	Paused     bool              `json:"paused"`
	Node       string            `json:"node,omitempty" doc:"where the cursor is"`
	LastAction string            `json:"last_action,omitempty"`
	Steps      int               `json:"steps" doc:"that have ended"`
	Followed   int               `json:"followed,omitempty" doc:"failed steps that it went on after as if they had completed, because on_error says follow"`
	Error      string            `json:"error,omitempty" doc:"why it failed"`
	Waits      []string          `json:"waits,omitempty" enum:"approval,event,timer,manual" doc:"what it waits for, jobs and retries aside"`
	Wait       *TaskWait         `json:"wait,omitempty" doc:"the first of these: an approval before others, then what has waited longest"`
	Labels     map[string]string `json:"labels,omitempty"`
	CreatedAt  Time              `json:"created_at"`
	UpdatedAt  Time              `json:"updated_at"`
	EndedAt    Time              `json:"ended_at,omitzero"`
	Warning    string            `json:"warning,omitempty" doc:"in the answer to a command: why it may not do what was meant"`
}

// TaskWait is a step that waits, and the kind of its wait.
type TaskWait struct {
	For   string `json:"for" enum:"approval,event,timer,manual"`
	Scope string `json:"scope,omitempty" doc:"absent = the task's root, else a path such as order#1/ship#2"`
	Node  string `json:"node"`
	Visit int    `json:"visit"`
	Key   string `json:"key,omitempty" doc:"to signal"`
	Since Time   `json:"since"`
	Until Time   `json:"until,omitzero" doc:"when it ends by itself"`
}

// Task is a task in its current state according to its journal.
type Task struct {
	TaskSummary
	Mode           string                     `json:"mode" enum:"graph,dag"`
	PausedAt       Time                       `json:"paused_at,omitzero" doc:"only while it is paused"`
	Forked         string                     `json:"forked_from,omitempty" doc:"the task whose history this one went on from, or that it does again"`
	TraceID        string                     `json:"trace_id" doc:"of the trace that it belongs to, in hexadecimal"`
	Params         json.RawMessage            `json:"params"`
	Shared         map[string]json.RawMessage `json:"shared" doc:"what its nodes share"`
	Result         json.RawMessage            `json:"result,omitempty" doc:"once it is completed: the key of shared that the flow names as its result, else all of shared; in dag mode the output"`
	Active         []Step                     `json:"active" doc:"steps under way, the outermost first, at most 100; never null"`
	Counts         *StepCounts                `json:"counts,omitempty" doc:"of a task in dag mode"`
	FollowedErrors []FollowedError            `json:"followed_errors,omitempty" doc:"of followed steps the last error of each node, in the order in which they happened; of the 20 nodes that failed last"`
	Seq            int64                      `json:"seq" doc:"of the last row of the journal in this answer; stream events from here on with after="`
}

// TaskCount is a number of tasks.
type TaskCount struct {
	Count  int         `json:"count" doc:"at most 10,000, or 1,000 of a label and something else; with group_by the sum of the groups"`
	Exact  bool        `json:"exact" doc:"false: there are more, or may be"`
	Groups []TaskGroup `json:"groups" doc:"where group_by was sent; never null"`
}

// TaskGroup is the number of tasks in a group.
type TaskGroup struct {
	Key   string `json:"key" doc:"state, slug of a flow, or what a label says; empty = without that label"`
	Count int    `json:"count"`
	More  bool   `json:"more,omitempty" doc:"there are more, or may be"`
}

// FollowedError counts failed steps of a node after which the task went on, because on_error is
// follow.
type FollowedError struct {
	Node  string `json:"node"`
	Times int    `json:"times" doc:"how often it failed so"`
	Visit int    `json:"visit" doc:"the last time"`
	Error string `json:"error" doc:"that of the last time, its first 1,000 bytes"`
	At    Time   `json:"at"`
}

// Step is a node within a task, with its state there.
type Step struct {
	Scope     string          `json:"scope,omitempty" doc:"the task's root, or a path such as order#1/ship#2; ~ is where a task undoes and cleans up"`
	Node      string          `json:"node" doc:"slug of the node; send it as step"`
	Kind      string          `json:"kind"`
	Visit     int             `json:"visit" doc:"0 = it has not begun"`
	State     string          `json:"state" enum:"created,started,completed,failed,skipped"`
	Reason    string          `json:"reason,omitempty" doc:"why it failed or was skipped, in one word"`
	SkipMode  string          `json:"skip_mode,omitempty" enum:"propagate,optional" doc:"of a skipped one: whether what depends on it is skipped, too"`
	Action    string          `json:"action,omitempty" doc:"graph mode: the action it ended with"`
	Route     string          `json:"route,omitempty" enum:"push,queue,direct" doc:"how its jobs travel; direct = finish its units with /complete"`
	For       string          `json:"for,omitempty" doc:"the node it was made for: gates, conditions and preps are made by the compiler"`
	Held      bool            `json:"held,omitempty" doc:"it has yet to begin, and does not before /release"`
	WaitsFor  []string        `json:"waits_for,omitempty" doc:"the first 20 of the nodes that have to end before it"`
	Waits     int             `json:"waits,omitempty" doc:"how many there are"`
	Wait      *Wait           `json:"wait,omitempty" doc:"while it is started: what it waits for, the first of several"`
	Units     Units           `json:"units"`
	Output    json.RawMessage `json:"output,omitempty" doc:"of a completed one; absent in lists of what is under way"`
	Error     string          `json:"error,omitempty"`
	Details   json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON that its carrier has told beside the text"`
	EnteredAt Time            `json:"entered_at,omitzero"`
	EndedAt   Time            `json:"ended_at,omitzero"`
	Due       Time            `json:"due,omitzero" doc:"when its clock runs out"`
	Below     string          `json:"below,omitempty" doc:"the scope inside it, whose steps are listed with scope="`
}

// Units counts the pieces of a step.
type Units struct {
	Total    int `json:"total"`
	Appended int `json:"appended,omitempty" doc:"those of them that were appended"`
	InFlight int `json:"in_flight"`
	Retrying int `json:"retrying"`
	Done     int `json:"done" doc:"that have ended, the failed ones included"`
	Failed   int `json:"failed"`
}

// StepCounts counts the steps of a task's root by their state, the compiler's included.
type StepCounts struct {
	Created   int `json:"created"`
	Started   int `json:"started"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// Unit is one of the pieces of a step.
type Unit struct {
	Unit     int             `json:"unit" doc:"its index, from 0"`
	Name     string          `json:"name,omitempty" doc:"of a branch"`
	State    string          `json:"state" enum:"pending,dispatched,running,completed,failed,canceled"`
	Attempt  int             `json:"attempt,omitempty"`
	Appended bool            `json:"appended,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Error    string          `json:"error,omitempty" doc:"of its last attempt"`
	Details  json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON that its carrier has told beside the text"`
	Worker   string          `json:"worker,omitempty" doc:"that holds it"`
	Note     string          `json:"note,omitempty"`
	RetryAt  Time            `json:"retry_at,omitzero"`
	Due      Time            `json:"due,omitzero"`
}

// UnitStates are the states of all units of a step, in order of index.
type UnitStates struct {
	Total int       `json:"total"`
	Runs  []UnitRun `json:"runs" doc:"never null"`
}

// UnitRun is a number of consecutive units in the same state.
type UnitRun struct {
	Count int    `json:"count"`
	State string `json:"state" enum:"pending,dispatched,running,completed,failed,canceled"`
}

// StepName identifies a step in a body, because slugs may hold / and :, which paths cannot.
type StepName struct {
	Step  string `json:"step" minLength:"1" maxLength:"1000" doc:"slug of the step, such as review or B/list"`
	Scope string `json:"scope,omitempty" maxLength:"20000" doc:"the scope it is in; absent = the task's root"`
}

// Append is a request to add units to a fanout that has begun.
type Append struct {
	StepName
	Items []json.RawMessage `json:"items" minItems:"1" nullable:"false" doc:"one for each unit: its input"`
	Route string            `json:"route,omitempty" enum:"push,queue,direct" doc:"must be the step's, if it is sent"`
}

// Appended is the answer to an Append, with the indexes of the new units.
type Appended struct {
	Units []int `json:"units"`
}

// Complete ends a unit that has the route direct, with an output or an error.
type Complete struct {
	StepName
	Unit   int             `json:"unit,omitempty" minimum:"0" doc:"absent = 0"`
	Output json.RawMessage `json:"output,omitempty" doc:"any JSON; absent = null"`
	Error  string          `json:"error,omitempty" doc:"why it failed; it is not tried again"`
}

// Completed is the answer to a Complete.
type Completed struct {
	Changed bool        `json:"changed" doc:"false when the unit had ended before"`
	Task    TaskSummary `json:"task"`
}

// Cancel is a request to cancel a task. Without a body, work in flight is withdrawn.
type Cancel struct {
	Gently bool `json:"gently,omitempty" doc:"what has begun goes on, and the task ends when it is done; what no worker has begun is canceled at once, and so are waits and retries"`
	Force  bool `json:"force,omitempty" doc:"also ends compensations and finally, when the task is at them"`
}

// Retry selects the part of a failed task that is retried. Without a body, everything that failed
// is retried.
type Retry struct {
	Step string `json:"step,omitempty" maxLength:"1000" doc:"dag mode: the failed step of its root that alone is tried again, with what was skipped because of it"`
}

// Signal sets a key of a task's shared state and wakes the steps that wait for it.
type Signal struct {
	Key   string          `json:"key" minLength:"1" maxLength:"256"`
	Value json.RawMessage `json:"value,omitempty" doc:"any JSON; absent = null"`
	By    string          `json:"by,omitempty" maxLength:"256" doc:"who sends it, for the task's history: nobody checks it, but the name of a token that an admin has made comes before it" example:"ada"`
}

// Place is a place in a task. Fields that do not apply are absent; Unit counts from 0.
type Place struct {
	Scope   string `json:"scope,omitempty" doc:"absent = the task's root, else a path such as order#1/ship#2"`
	Node    string `json:"node,omitempty"`
	Visit   int    `json:"visit,omitempty"`
	Unit    int    `json:"unit,omitempty" doc:"absent = 0: the first one, and the only one of most steps"`
	Attempt int    `json:"attempt,omitempty"`
}

// Event is a fact about a task. The history of a task is the list of its events.
type Event struct {
	ID   string `json:"id" doc:"position in the task's history: journal row and place in it" example:"12.0"`
	Seq  int64  `json:"seq" doc:"of the row of the journal; what was stored at once has one seq"`
	Type string `json:"type" example:"step_ended"`
	At   Time   `json:"at"`
	Place

	State    string          `json:"state,omitempty" doc:"the task, step or attempt ended in"`
	Action   string          `json:"action,omitempty"`
	Next     string          `json:"next,omitempty" doc:"node that follows"`
	Input    json.RawMessage `json:"input,omitempty" doc:"of step_ended: what its output_map takes that is kept in the payload store, by its keys in shared"`
	InputRef string          `json:"input_ref,omitempty" doc:"the input is what this reference meant then"`
	Output   json.RawMessage `json:"output,omitempty" doc:"of a signal: its value"`
	Error    string          `json:"error,omitempty"`
	Details  json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON that its carrier has told beside the text"`
	Metrics  json.RawMessage `json:"metrics,omitempty" doc:"numbers that the attempt's program has told: {name, labels, count, sum, last} for each name and labels"`
	Reason   string          `json:"reason,omitempty" doc:"of a failure or skip, in one word"`
	Total    int             `json:"total,omitempty" doc:"units that were begun or appended; of task_closing those that are undone"`
	Index    int             `json:"index,omitempty" doc:"of a job outside that has ended: its place in the list of those that the attempt waits for"`
	Kept     int             `json:"kept,omitempty" doc:"of a step that is retried: units of its last visit whose results count, 1 for the scope of a subflow"`
	Due      Time            `json:"due,omitzero"`
	Carrier  string          `json:"carrier,omitempty" doc:"incarnation of the member that carries the attempt"`
	Worker   string          `json:"worker,omitempty"`
	URL      string          `json:"url,omitempty"`
	Log      bool            `json:"log,omitempty"`
	Until    Time            `json:"until,omitzero" doc:"end of a claim; of an attempt that begins elsewhere: since when"`
	Note     string          `json:"note,omitempty" doc:"what its worker calls its state"`
	Key      string          `json:"key,omitempty" doc:"of a signal"`
	By       string          `json:"by,omitempty" doc:"who sent a signal, as it calls itself"`
	Version  string          `json:"version,omitempty" doc:"id of the version"`
	Params   json.RawMessage `json:"params,omitempty"`
	Request  string          `json:"request,omitempty" doc:"of the command this came of"`
}

// Run is an entry of a task's history for people: an attempt, or the end of a step without one.
type Run struct {
	Place
	Job    string `json:"job,omitempty" doc:"id of the job, for attempts"`
	Kind   string `json:"kind" enum:"attempt,summary,cancel" doc:"an attempt of a unit; the end of a step that decides, waits or gathers units; the task's cancelation"`
	Branch string `json:"branch,omitempty" doc:"the unit's name"`
	State  string `json:"state" enum:"running,ok,error,timeout,canceled,skipped"`
	Queue  bool   `json:"queue,omitempty" doc:"its job travels by the queue"`
	Note   string `json:"note,omitempty" doc:"what its worker calls its state"`

	Input   json.RawMessage `json:"input,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Error   string          `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty" doc:"of the error: any JSON that its carrier has told beside the text"`
	Metrics json.RawMessage `json:"metrics,omitempty" doc:"numbers that the attempt's program has told: {name, labels, count, sum, last} for each name and labels"`
	Reason  string          `json:"reason,omitempty" doc:"of a failure or skip, in one word"`
	Action  string          `json:"action,omitempty" doc:"of a skipped one: its skip mode"`

	Worker    string `json:"worker,omitempty"`
	URL       string `json:"url,omitempty"`
	Log       bool   `json:"log,omitempty" doc:"what it printed is at /v1/jobs/{job}/log"`
	StartedAt Time   `json:"started_at"`
	EndedAt   Time   `json:"ended_at,omitzero" doc:"absent while it runs"`
}

// Wait describes one reason why a task waits, in words a person can act on.
type Wait struct {
	Place
	For    string `json:"for" enum:"job,claim,outside,retry,timer,signal,approval,completion,delay,resume,permit"`
	Text   string `json:"text"`
	Job    string `json:"job,omitempty"`
	Key    string `json:"key,omitempty" doc:"that it waits for a permit of"`
	Before *int   `json:"before,omitempty" doc:"how many wait for the same key, or the same service, before it, at least; of a permit, and of a job that a worker has to poll for, where those count that workers have"`
	Since  Time   `json:"since,omitzero"`
	Until  Time   `json:"until,omitzero" doc:"absent = no end"`

	Service string   `json:"service,omitempty" doc:"that a worker has to poll for"`
	Labels  []string `json:"labels,omitempty" doc:"that it has to have"`
	Workers *int     `json:"workers,omitempty" doc:"how many workers that are online and registered offer the service and have the labels; 0 = it waits for somebody who starts one"`
}

// Waiting lists the reasons why a task waits.
type Waiting struct {
	State string `json:"state"`
	Waits []Wait `json:"waits" doc:"empty when it has ended or has only just moved; never null"`
}

// End is the last event of a stream: the task is over.
type End struct {
	Task     string          `json:"task"`
	State    string          `json:"state" enum:"completed,failed,canceled"`
	Error    string          `json:"error,omitempty"`
	Followed int             `json:"followed,omitempty" doc:"failed steps that it went on after, because on_error says follow"`
	Result   json.RawMessage `json:"result,omitempty"`
}
