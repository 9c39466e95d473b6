package flow

import "encoding/json"

// EventType says which fact an Event is.
type EventType string

// The facts of a task. Their names and the JSON names of Event's fields are kept in stores: a name
// is never given another meaning.
const (
	TaskCreated     EventType = "task_created"     // Version, Params, At; Permits that it asks for; Origin when it goes on from another task; Traced; Total 1 = see BegunApart
	TaskPaused      EventType = "task_paused"      //
	TaskResumed     EventType = "task_resumed"     //
	CancelAsked     EventType = "cancel_asked"     // what a carrier has begun goes on; anything else is canceled
	TaskClosing     EventType = "task_closing"     // Status, Error: what the task will have ended with; Total units that are undone before that
	TaskRetried     EventType = "task_retried"     // a failed task goes on where it failed; Permits; Params when it does so with others
	TaskEnded       EventType = "task_ended"       // Status, Error
	ScopeRetried    EventType = "scope_retried"    // Scope, of dag mode, Attempt, Due: what failed in it is tried again
	SignalReceived  EventType = "signal_received"  // Key, Output = the value, By; Scope when only that one hears it; of the answer to an approval Node, Visit, and the comment as its Note
	StepEntered     EventType = "step_entered"     // step; Input or InputRef, Total units, Kept, Since, Due, Until = when they may start
	StepEnded       EventType = "step_ended"       // step; Status, Action, Next, Post, Output, Error, Reason; Due and Attempt when Next waits for another try; Input = an object with what shared gets in place of large values that an output_map takes
	StepHeld        EventType = "step_held"        // node: it does not begin
	StepReleased    EventType = "step_released"    // node: it may begin
	UnitsAppended   EventType = "units_appended"   // step; Total, Input = the list of items
	AttemptsStarted EventType = "attempts_started" // units Unit..Unit+Total-1, Attempt, Carrier, Due; Permits that they ask for first
	PermitGranted   EventType = "permit_granted"   // attempt, or without a node the task; Key; with the last one Carrier and Due: it goes on
	AttemptClaimed  EventType = "attempt_claimed"  // attempt; Worker, Token, Until, Due when its time counts from here
	AttemptBegun    EventType = "attempt_begun"    // attempt, that was lost before or returned twice: its carrier is at it now; Until when it is known of somebody elsewhere: since then
	AttemptExtended EventType = "attempt_extended" // attempt; Until
	AttemptNoted    EventType = "attempt_noted"    // attempt; Note: what its worker calls its state
	AttemptReturned EventType = "attempt_returned" // attempt; Carrier, Total deliveries in vain: it is to be dispatched again
	AttemptPassed   EventType = "attempt_passed"   // attempt; Carrier, another member than before: nobody has begun it, or the Worker that has it came there with it
	AttemptDeferred EventType = "attempt_deferred" // attempt; Input = the list of jobs outside that it waits for, Output that it will have, Metrics, Due, Worker, URL, Log: nobody carries it out any longer
	ExternalOver    EventType = "external_ended"   // attempt; Index of the job outside, Output, Error when it failed
	AttemptEnded    EventType = "attempt_ended"    // attempt; Status, Output, Error, Details, Metrics, Worker, URL, Log, Due of its retry
)

// Event is a fact about a task. The journal of a task is its list of events. An event carries what
// cannot be recomputed; the fields that do not belong to its type are zero.
type Event struct {
	Type EventType `json:"e"`
	At   int64     `json:"t,omitempty"` // Unix milliseconds, never 0

	Scope   string `json:"s,omitempty"`
	Node    string `json:"n,omitempty"`
	Visit   int    `json:"v,omitempty"`
	Unit    int    `json:"u,omitempty"`
	Attempt int    `json:"a,omitempty"`

	Status   string          `json:"st,omitempty"` // a TaskStatus, StepStatus or AttemptStatus
	Action   string          `json:"ac,omitempty"`
	Next     string          `json:"nx,omitempty"`
	Post     bool            `json:"po,omitempty"` // the step's output goes where its post says
	Input    json.RawMessage `json:"in,omitempty"`
	InputRef string          `json:"ir,omitempty"` // the input is what this reference means at this moment
	Output   json.RawMessage `json:"ou,omitempty"`
	Error    string          `json:"er,omitempty"`
	Details  json.RawMessage `json:"de,omitempty"` // of the error
	Metrics  json.RawMessage `json:"me,omitempty"` // that the attempt's program has told
	Reason   string          `json:"re,omitempty"` // of a failure or skip, in one word
	Total    int             `json:"to,omitempty"`
	Index    int             `json:"ix,omitempty"` // of a job outside, among those of its attempt
	Kept     int             `json:"ke,omitempty"` // units whose results of the step's last visit count in this one; 1 for a subflow's scope
	Since    int             `json:"si,omitempty"` // the visit that this one continues: a retry enters the node again with the same input, and its units keep the keys of that visit
	Due      int64           `json:"du,omitempty"`

	Carrier string `json:"ca,omitempty"` // incarnation of the member that carries the attempt
	Worker  string `json:"wo,omitempty"`
	URL     string `json:"ur,omitempty"`
	Log     bool   `json:"lo,omitempty"` // the attempt has a log in the store
	Token   string `json:"tk,omitempty"`
	Until   int64  `json:"ul,omitempty"`
	Note    string `json:"no,omitempty"`

	Key     string          `json:"k,omitempty"`
	By      string          `json:"by,omitempty"` // who sent it, as it calls itself
	Version string          `json:"ve,omitempty"`
	Params  json.RawMessage `json:"pa,omitempty"`
	Permits json.RawMessage `json:"pm,omitempty"` // a list of Permit
	Origin  string          `json:"og,omitempty"` // the task that this one goes on from: what follows up to the commit's task_retried is that one's history; without one it does all again

	Traced *Traced `json:"tr,omitempty"`

	Request string `json:"rq,omitempty"` // of the command this is the first event of
}

// Address is where the event happened.
func (e *Event) Address() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit, Unit: e.Unit, Attempt: e.Attempt}
}

// BegunApart says that a task began in a row that no member has stored, and so none has counted.
func (e *Event) BegunApart() bool { return e.Type == TaskCreated && e.Total > 0 }

// BegunApart says so of a state that was folded from its first row on.
func (s *State) BegunApart() bool { return s.begunApart }

// stepAddress is the step it happened in.
func (e *Event) stepAddress() Address {
	return Address{Scope: e.Scope, Node: e.Node, Visit: e.Visit}
}
