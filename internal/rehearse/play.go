package rehearse

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Play is the input of a rehearsal.
type Play struct {
	Plan   *flow.Plan
	Params json.RawMessage
	Limits flow.Limits
	// returns the answers for one story; nil means that every call returns its input
	Answers func() Answerer
	Acts    []Act            // events from outside
	Until   time.Duration    // time at which the story stops; 0 means its end
	Lasts   time.Duration    // length of the undisturbed story; seeds also draw delays beyond it
	Kinds   Kinds            // kinds of faults that a seed may draw
	MayFail func(*Call) bool // reports whether a call may fail by a fault; nil means all may
}

// Answerer returns the answer to a job. It is called once per attempt, so a repeated delivery gets
// the same answer.
type Answerer func(*Call) Answer

// Answer is the result of a call.
type Answer struct {
	Output json.RawMessage
	Error  string // "" for success
	Fatal  bool   // retries do not help
	After  time.Duration
	Silent bool  // whether the call is never reported
	Err    error // set if no answer exists, so that the rehearsal cannot continue
}

// Call is an attempt that a worker has begun.
type Call struct {
	flow.Job
	Name       string // see nameOf
	Number     int    // index among all calls of the story, from 0
	Began      time.Duration
	Ended      time.Duration // time when its report was accepted; meaningful only if Over
	BeganAt    int           // number of journal events when it began
	EndedAt    int           // number of journal events when its report was accepted
	Over       bool
	OK         bool // whether the call has succeeded
	Deliveries int  // number of deliveries
	Answer     Answer
}

// ActKind is a kind of event from outside.
type ActKind string

// Kinds of acts.
const (
	ActSignal           ActKind = "signal"
	ActAnswer           ActKind = "answer"  // signals the key for which the step waits
	ActApprove          ActKind = "approve" // answers true
	ActReject           ActKind = "reject"  // answers false
	ActComplete         ActKind = "complete"
	ActFail             ActKind = "fail"
	ActAppend           ActKind = "append"
	ActCancel           ActKind = "cancel"
	ActCancelGracefully ActKind = "cancel_gracefully"
	ActPause            ActKind = "pause"
	ActResume           ActKind = "resume"
	ActRetry            ActKind = "retry"
)

// Act is an event from outside: at a fixed time, or when a step is waiting.
type Act struct {
	ID      string        // name of the act in schedules
	At      time.Duration // time since the start, or since the step was entered if Waiting is set
	Waiting string        // node, or key for which a step waits; "" for an act with a fixed time
	// index of the wait, from 0; the last act with the same Waiting also serves later waits
	Nth    int
	Kind   ActKind
	Target string // key or node
	Unit   int
	Value  json.RawMessage
	Items  []json.RawMessage
}

// Done is a performed act.
type Done struct {
	*Act
	Time time.Duration
	At   int   // number of journal events at that time
	Err  error // reason why it had no effect
}

// Story is the result of a rehearsal.
type Story struct {
	State  *flow.State
	Took   time.Duration
	Events []flow.Event
	Calls  []*Call
	Done   []Done
	Undone []*Act // acts that were not performed before the end
	Struck []Strike
	Err    error // reason why it could not continue
	Left   bool  // whether the story stopped at Play.Until
}

// Strike is a fault that happened.
type Strike struct {
	Fault
	Time time.Duration
	At   int // number of journal events at that time
}

// Schedule returns the faults of a story.
func (s *Story) Schedule() Schedule {
	var all Schedule
	for i := range s.Struck {
		all = append(all, s.Struck[i].Fault)
	}
	return all
}

// Since converts a time in Unix milliseconds to the time since the start.
func (s *Story) Since(at int64) time.Duration { return flow.Milliseconds(at - startEpoch) }

// startEpoch is the time when tasks start.
const startEpoch int64 = 1_767_225_600_000

// MaxDecisions bounds the length of a rehearsal.
const MaxDecisions = 50_000
