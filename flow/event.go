package flow

import "encoding/json"

// EventType is the kind of an Event.
type EventType string

// Kinds of events. Their names, and the JSON names of Event's fields, are stored in journals, so
// the meaning of a name must never change.
//
// Each comment lists the fields that the event sets. The words task, step, node, units and attempt
// stand for the address fields of that object.
const (
	// TaskCreated is the first event of a task. It sets Version, Params and At; Permits if the task
	// needs some; Origin if it continues another task; Traced; Total 1, see BegunApart.
	TaskCreated EventType = "task_created"
	TaskPaused  EventType = "task_paused"  //
	TaskResumed EventType = "task_resumed" //
	// CancelRequested begins a gentle cancel: attempts that a carrier has begun continue, all
	// others are canceled. If Error is set, the task fails with it after its function has undone
	// its work.
	CancelRequested EventType = "cancel_requested"
	// TaskClosing begins the closing. It sets the final Status and Error of the task, and Total,
	// the number of units to undo first.
	TaskClosing EventType = "task_closing"
	// TaskRetried continues a failed task where it failed. It sets Permits if the task needs some,
	// and Params if they change.
	TaskRetried EventType = "task_retried"
	TaskEnded   EventType = "task_ended" // sets Status and Error
	// ScopeRetried retries the failed nodes of a subflow in dag mode. It sets Scope, Attempt and
	// Due.
	ScopeRetried EventType = "scope_retried"
	// SignalReceived sets Key, Output (the value) and By; Scope if the signal is for that scope
	// alone. The answer to an approval also sets Node, Visit, and Note (the comment).
	SignalReceived EventType = "signal_received"
	// StepEntered begins a step. It sets Input or InputRef, Total units, Kept, Since, Due, and
	// Until, the time when the units may start.
	StepEntered EventType = "step_entered"
	// StepEnded ends a step. It sets Status, Action, Next, Post, Output, Error, Reason; Due and
	// Attempt if Next waits for a retry. Input is an object of references, which shared gets in
	// place of the large values of an output_map.
	StepEnded     EventType = "step_ended"
	StepHeld      EventType = "step_held"      // the node does not begin until it is released
	StepReleased  EventType = "step_released"  // the node may begin
	UnitsAppended EventType = "units_appended" // step; Total, and Input: the list of items
	// AttemptsDispatched starts attempts of the units Unit to Unit+Total-1. It sets Attempt,
	// Carrier, Due, and Permits if the units need some first.
	AttemptsDispatched EventType = "attempts_dispatched"
	// PermitGranted gives a permit to an attempt, or without a node to the task. It sets Key. With
	// the last permit it also sets Carrier and Due, and the attempt continues.
	PermitGranted EventType = "permit_granted"
	// AttemptClaimed gives an attempt to a poller. It sets Worker, Token and Until, and Due if the
	// timeout counts from the claim.
	AttemptClaimed EventType = "attempt_claimed"
	// AttemptStarted is stored for attempts that were lost before or returned twice: the carrier
	// has begun the attempt. Until, if set, is the time since when the attempt is carried out
	// elsewhere.
	AttemptStarted  EventType = "attempt_started"
	AttemptExtended EventType = "attempt_extended" // attempt; Until
	// AttemptStatusChanged sets Note, the worker's description of the state of its attempt.
	AttemptStatusChanged EventType = "attempt_status_changed"
	// AttemptRequeued dispatches an attempt again. It sets Carrier and Total, the number of lost
	// deliveries. Reason is set if a function must undo its work, or continues after a wait.
	AttemptRequeued EventType = "attempt_requeued"
	// AttemptMoved makes another member the Carrier of an attempt. Either no carrier had begun the
	// attempt, or its Worker has connected to that member.
	AttemptMoved EventType = "attempt_moved"
	// AttemptDeferred makes an attempt wait for external jobs, so no worker carries it out any
	// longer. It sets Input (the list of jobs), Output (the later output), Metrics, Due, Worker,
	// URL and Log.
	AttemptDeferred EventType = "attempt_deferred"
	// ExternalJobEnded ends one external job of an attempt. It sets Index and Output, and Error if
	// the job failed.
	ExternalJobEnded EventType = "external_job_ended"
	// StepRecorded stores a step of a function that is a flow. Node and Visit are the name and use
	// of the step. It sets Action (the kind), InputRef (hash of the input), Output or Error and
	// Details, Total (tries) and Until (the start).
	StepRecorded EventType = "step_recorded"
	// WaitStarted begins a wait of a function that is a flow. It sets Action (the kind of wait),
	// Params, Input of a call, and Due. The wait ends with its own StepRecorded, or with that of a
	// race whose branch lost.
	WaitStarted EventType = "wait_started"
	// AttemptHeld takes a function from its carrier until a wait ends, or until the task is
	// resumed, retried or loaded again. Error is the reason.
	AttemptHeld EventType = "attempt_held"
	// AttemptEnded ends an attempt. It sets Status, Output, Error, Details, Metrics, Worker, URL,
	// Log, and Due, the time of the retry.
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
	// Post is set if the output is written to the keys that the node's post names.
	Post  bool            `json:"po,omitempty"`
	Input json.RawMessage `json:"in,omitempty"`
	// InputRef is a reference; the input is its current value.
	InputRef string          `json:"ir,omitempty"`
	Output   json.RawMessage `json:"ou,omitempty"`
	Error    string          `json:"er,omitempty"`
	Details  json.RawMessage `json:"de,omitempty"` // details of the error
	Metrics  json.RawMessage `json:"me,omitempty"` // measurements reported by the attempt's program
	Reason   string          `json:"re,omitempty"` // reason of a failure or skip, in one word
	Total    int             `json:"to,omitempty"`
	// Index is the position of an external job among those of its attempt.
	Index int `json:"ix,omitempty"`
	// Kept is the number of units whose results are reused from the step's last visit; 1 for the
	// scope of a subflow.
	Kept int `json:"ke,omitempty"`
	// Since is the visit that this visit continues: a retry enters the node again with the same
	// input. The units keep the keys of that visit.
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
	By      string          `json:"by,omitempty"` // sender, as stated by the sender
	Version string          `json:"ve,omitempty"`
	Params  json.RawMessage `json:"pa,omitempty"`
	Permits json.RawMessage `json:"pm,omitempty"` // list of Permit
	// Origin is the task that this task continues or repeats; "" if none. The events up to the
	// task_retried of the first commit belong to that task. Without a task_retried, this task
	// repeats it from the start.
	Origin string `json:"og,omitempty"`

	Traced *Traced `json:"tr,omitempty"`

	Request string `json:"rq,omitempty"` // id of the request, set on the first event of its command
}

// Address returns the address of the event.
func (e *Event) Address() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit, Unit: e.Unit, Attempt: e.Attempt}
}

// BegunApart reports whether the task began in a row that was not stored by a member. Then no
// member has counted its start.
func (e *Event) BegunApart() bool { return e.Type == TaskCreated && e.Total > 0 }

// BegunApart reports the same as Event.BegunApart, for a state that was built from its first row
// on.
func (s *State) BegunApart() bool { return s.begunApart }

// stepAddress returns the address of the event's step.
func (e *Event) stepAddress() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
}
