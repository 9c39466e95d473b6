package rehearse

import (
	"encoding/json"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Play is what is rehearsed.
type Play struct {
	Plan    *flow.Plan
	Params  json.RawMessage
	Limits  flow.Limits
	Answers func() Answerer  // makes one for each story; nil = everything is answered with its input
	Acts    []Act            // what happens from outside
	Until   time.Duration    // the story is left then; 0 = it goes on to its end
	Lasts   time.Duration    // how long it takes undisturbed: seeds draw what is later than all of that, too
	Kinds   Kinds            // of misfortunes that a seed may draw
	MayFail func(*Call) bool // which calls may fail by misfortune; nil = all
}

// Answerer says what the one who carries a job out answers. It is asked once for each attempt: one
// that is delivered again gets the same answer.
type Answerer func(*Call) Answer

// Answer is what a call comes to.
type Answer struct {
	Output json.RawMessage
	Error  string // "" = it went well
	Fatal  bool   // trying again is of no use
	After  time.Duration
	Silent bool  // nobody ever hears of it
	Err    error // there is no answer: the rehearsal cannot go on
}

// Call is an attempt that somebody has begun to carry out.
type Call struct {
	flow.Job
	Name       string // see nameOf
	Number     int    // among all calls of the story, from 0
	Began      time.Duration
	Ended      time.Duration // when its report was taken; of no meaning while it is not Over
	BeganAt    int           // events in the journal when it began,
	EndedAt    int           // and when its report was taken
	Over       bool
	OK         bool // it went well
	Deliveries int  // how often it was begun
	Answer     Answer
}

// ActKind says what somebody does from outside.
type ActKind string

// What is done from outside.
const (
	ActSignal       ActKind = "signal"
	ActAnswer       ActKind = "answer"  // signals whatever key the step waits for
	ActApprove      ActKind = "approve" // answers true
	ActReject       ActKind = "reject"  // answers false
	ActComplete     ActKind = "complete"
	ActFail         ActKind = "fail"
	ActAppend       ActKind = "append"
	ActCancel       ActKind = "cancel"
	ActCancelGently ActKind = "cancel_gently"
	ActPause        ActKind = "pause"
	ActResume       ActKind = "resume"
	ActRetry        ActKind = "retry"
)

// Act is something that somebody does from outside: at a time, or when a step is waiting.
type Act struct {
	ID      string        // names it in schedules
	At      time.Duration // after the start; of one that waits, after the step was entered
	Waiting string        // a node, or a key that a step waits for: "" = it is done at its time
	Nth     int           // which such wait it is for, from 0; the last one with the same Waiting also serves those after it
	Kind    ActKind
	Target  string // key, or node
	Unit    int
	Value   json.RawMessage
	Items   []json.RawMessage
}

// Done is an act of a story.
type Done struct {
	*Act
	Time time.Duration
	At   int   // events in the journal then
	Err  error // why it had no effect
}

// Story is what came of a play.
type Story struct {
	State  *flow.State
	Took   time.Duration
	Events []flow.Event
	Calls  []*Call
	Done   []Done
	Undone []*Act // acts whose time has not come
	Struck []Strike
	Err    error // why it could not go on
	Left   bool  // it was left at Play.Until
}

// Strike is a misfortune that happened.
type Strike struct {
	Fault
	Time time.Duration
	At   int // events in the journal then
}

// Schedule are the misfortunes of a story.
func (s *Story) Schedule() Schedule {
	var all Schedule
	for i := range s.Struck {
		all = append(all, s.Struck[i].Fault)
	}
	return all
}

// Since is how long after the start something was, in Unix milliseconds.
func (s *Story) Since(at int64) time.Duration { return flow.Milliseconds(at - startEpoch) }

// startEpoch is when tasks are started.
const startEpoch int64 = 1_767_225_600_000

// MaxDecisions bounds a rehearsal.
const MaxDecisions = 50_000
