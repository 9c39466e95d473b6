package flow

import "encoding/json"

// EventType is the kind of an Event.
type EventType string

// Kinds of events. Their names, and the JSON names of Event's fields, are stored in journals, so
// the meaning of a name must never change.
//
// Each comment lists the fields that the event sets. A first word "task", "step", "node", "units"
// or "attempt" stands for the address fields.
const (
	// Version, Params, At; Permits that the task needs; Origin if it continues another task;
	// Traced; Total 1, see BegunApart
	TaskCreated EventType = "task_created"
	TaskPaused  EventType = "task_paused"  //
	TaskResumed EventType = "task_resumed" //
	// attempts that a carrier has begun go on; all others are canceled. Error: with which a
	// function that undoes its work will end its task, if that was not canceled
	CancelRequested EventType = "cancel_requested"
	// Status, Error: the final ones of the task; Total units to undo first
	TaskClosing EventType = "task_closing"
	// a failed task continues where it failed; Permits; Params if they change
	TaskRetried EventType = "task_retried"
	TaskEnded   EventType = "task_ended" // Status, Error
	// Scope (dag mode), Attempt, Due: its failed nodes are retried
	ScopeRetried EventType = "scope_retried"
	// Key, Output = the value, By; Scope if the signal is for that scope alone; for the answer to
	// an approval Node, Visit, and Note = the comment
	SignalReceived EventType = "signal_received"
	// step; Input or InputRef, Total units, Kept, Since, Due, Until = when the units may start
	StepEntered EventType = "step_entered"
	// step; Status, Action, Next, Post, Output, Error, Reason; Due and Attempt if Next waits for a
	// retry; Input = an object with the references that shared gets for large values of an
	// output_map
	StepEnded     EventType = "step_ended"
	StepHeld      EventType = "step_held"      // node: it does not begin until it is released
	StepReleased  EventType = "step_released"  // node: it may begin
	UnitsAppended EventType = "units_appended" // step; Total, Input = the list of items
	// units Unit..Unit+Total-1, Attempt, Carrier, Due; Permits that they need first
	AttemptsDispatched EventType = "attempts_dispatched"
	// attempt, or without a node the task; Key; with the last permit Carrier and Due: it goes on
	PermitGranted EventType = "permit_granted"
	// attempt; Worker, Token, Until; Due if its timeout counts from the claim
	AttemptClaimed EventType = "attempt_claimed"
	// attempt that was lost before or returned twice: its carrier has begun it; Until, if set, is
	// since when it is carried out elsewhere
	AttemptStarted  EventType = "attempt_started"
	AttemptExtended EventType = "attempt_extended" // attempt; Until
	// attempt; Note = the worker's description of its state
	AttemptStatusChanged EventType = "attempt_status_changed"
	// attempt; Carrier, Total lost deliveries: it is dispatched again; Reason if a function is to
	// undo its work, or goes on behind a wait
	AttemptRequeued EventType = "attempt_requeued"
	// attempt; Carrier = another member; no carrier has begun it, or its Worker has brought it
	// there
	AttemptMoved EventType = "attempt_moved"
	// attempt; Input = the list of external jobs that it waits for, Output = its later output,
	// Metrics, Due, Worker, URL, Log: no worker carries it out any longer
	AttemptDeferred EventType = "attempt_deferred"
	// attempt; Index of the external job, Output, Error if it failed
	ExternalJobEnded EventType = "external_job_ended"
	// attempt of a function that is a flow, without Unit and Attempt of the step: Key = name of the
	// step, Action = its kind, InputRef = hash of its input, Output or Error and Details, Total =
	// tries, Until = its start
	StepRecorded EventType = "step_recorded"
	// step of a function that is a flow: Action = kind of its wait, Params = the awaited thing,
	// Input of a call, Due; it ends with its step_recorded, or with that of the race to whose
	// branches it belongs
	WaitStarted EventType = "wait_started"
	// attempt; Error = why its carrier has given it up until a wait ends, or the task is resumed or
	// retried, or loaded again
	AttemptHeld EventType = "attempt_held"
	// attempt; Status, Output, Error, Details, Metrics, Worker, URL, Log, Due of its retry
	AttemptEnded EventType = "attempt_ended"
)

// Event is a fact about a task. The journal of a task is its list of events. An event holds the
// data that cannot be recomputed; fields that its type does not use are zero.
type Event struct {
	Type EventType `json:"e"`
	At   int64     `json:"t,omitempty"` // Unix milliseconds, never 0

	Scope   string `json:"s,omitempty"`
	Node    string `json:"n,omitempty"`
	Visit   int    `json:"v,omitempty"`
	Unit    int    `json:"u,omitempty"`
	Attempt int    `json:"a,omitempty"`

	Status string `json:"st,omitempty"` // a TaskStatus, StepStatus or AttemptStatus
	Action string `json:"ac,omitempty"`
	Next   string `json:"nx,omitempty"`
	// the step's output is written where its post says
	Post  bool            `json:"po,omitempty"`
	Input json.RawMessage `json:"in,omitempty"`
	// the input is the current value of this reference
	InputRef string          `json:"ir,omitempty"`
	Output   json.RawMessage `json:"ou,omitempty"`
	Error    string          `json:"er,omitempty"`
	Details  json.RawMessage `json:"de,omitempty"` // details of the error
	Metrics  json.RawMessage `json:"me,omitempty"` // measurements reported by the attempt's program
	Reason   string          `json:"re,omitempty"` // reason of a failure or skip, in one word
	Total    int             `json:"to,omitempty"`
	// position of an external job among those of its attempt
	Index int `json:"ix,omitempty"`
	// number of units whose results are reused from the step's last visit; 1 for the scope of a
	// subflow
	Kept int `json:"ke,omitempty"`
	// visit that this one continues: a retry enters the node again with the same input, and its
	// units keep the keys of that visit
	Since int   `json:"si,omitempty"`
	Due   int64 `json:"du,omitempty"`

	Carrier string `json:"ca,omitempty"` // incarnation of the member that carries the attempt out
	Worker  string `json:"wo,omitempty"`
	URL     string `json:"ur,omitempty"`
	Log     bool   `json:"lo,omitempty"` // the attempt has a log in the store
	Token   string `json:"tk,omitempty"`
	Until   int64  `json:"ul,omitempty"`
	Note    string `json:"no,omitempty"`

	Key     string          `json:"k,omitempty"`
	By      string          `json:"by,omitempty"` // sender, as given by itself
	Version string          `json:"ve,omitempty"`
	Params  json.RawMessage `json:"pa,omitempty"`
	Permits json.RawMessage `json:"pm,omitempty"` // list of Permit
	// task that this one continues: the events up to the task_retried of the first commit are the
	// history of that task. Without a task_retried this task repeats it from the start
	Origin string `json:"og,omitempty"`

	Traced *Traced `json:"tr,omitempty"`

	Request string `json:"rq,omitempty"` // id of the request, set on the first event of its command
}

// Address returns the address of the event.
func (e *Event) Address() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit, Unit: e.Unit, Attempt: e.Attempt}
}

// BegunApart reports whether the task began in a row that was not stored by a member. No member has
// counted its start.
func (e *Event) BegunApart() bool { return e.Type == TaskCreated && e.Total > 0 }

// BegunApart reports the same for a state that was built from its first row on.
func (s *State) BegunApart() bool { return s.begunApart }

// stepAddress returns the address of the event's step.
func (e *Event) stepAddress() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
}
