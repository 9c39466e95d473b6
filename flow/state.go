package flow

import (
	"encoding/json"
	"slices"
)

// State is one task: what its events have made of it. Only Evolve changes it; see Outline.State for
// one without events.
//
// A snapshot keeps the exported fields, but for the parts of the plan and Scope.Params: these and
// the others follow from the rest (see link.go).
type State struct {
	Task    string
	Version string  // of the flow; Plan is its compiled form
	Origin  string  // the task that this one goes on from, or does again; "" = none
	Traced  *Traced // nil = it has a trace of its own
	Plan    *Plan
	Status  TaskStatus
	Error   string // why it failed
	Params  json.RawMessage
	Root    *Scope

	CreatedAt int64
	UpdatedAt int64
	EndedAt   int64
	PausedAt  int64 // the last time; 0 = never
	ResumedAt int64 // after that; 0 = not yet
	Deadline  int64 // of the whole task; 0 = none, or it stands still
	// DeadlineLeft is how long a deadline that stands still has yet to go; 0 = none does.
	DeadlineLeft int64
	Steps        int // that have ended

	Followed       int             // how many steps of the root failed and were followed (on_error: follow)
	FollowedErrors []FollowedError // the last such error of each node, in the order in which they happened; of KeptFollowed nodes

	CancelAt int64    // when somebody canceled it who lets what is in flight go on; 0 = nobody
	Closing  *Closing // what is done when everything else is over
	Closings int      // how often it has closed

	Undoables []Undoable  // visits of nodes with a compensation, of which something has completed
	Done      []UnitRange // their units to undo if the task fails, in the order of completion

	Signals  []StoredSignal // that no step has taken yet, oldest first
	Signaled int            // how many signals and answers the task has received

	Permits *Permits // what the task asks for before it begins, or has got; nil = nothing
	Asked   int      // how often it has

	AnsweredIDs []string       // of the newest requests that had an effect, oldest first
	Appended    map[string]int // index of the first unit that such a request has appended

	begunApart   bool         // see BegunApart; a snapshot does not tell
	awaitedCache []awaitedKey // see awaitedKeys
	lost         lostContent
	scopes       map[string]*Scope // by path
	waiting      []*Step           // steps that a signal may end
	waits        waitList
}

// Scope is the space in which nodes see each other.
type Scope struct {
	Path       string
	Plan       *PlanScope
	Params     json.RawMessage // the task's, or those of the step it belongs to
	Shared     map[string]json.RawMessage
	Cursor     string // the node that is active or to be entered next; "" when the scope has ended
	LastAction string
	Visits     map[string]int
	Step       *Step           // the visit of Cursor; nil while that has yet to be entered
	EnterAt    int64           // earliest time for that; 0 = at once
	Retries    int             // of children, in a subflow with strategy retry
	Idle       int             // of graph mode: steps that ended in a row without work, wait or time; see maxIdleSteps
	Worked     bool            // a step of it has not been idle
	Failed     string          // error the scope ended with
	FailedAt   string          // the node it ended at then
	Kept       *Kept           // of graph mode: what the node at Cursor has left to its next visit
	Nodes      []NodeState     // of dag mode, by index
	Past       map[string]Past // of graph mode: the newest visit of each node that is over

	mode   scopeMode       // by its plan; closingMode in the scope in which the task closes
	run    json.RawMessage // of dag mode: what `run` means
	task   *State          // that closes in it; nil in any other scope
	dag    dagState
	lost   *lostContent // the task's
	size   *int         // bytes of shared, which the closing scope has together with the root
	parent *Step        // nil for the root
	depth  int
	overAt int64 // when its step ended; 0 = it has not
}

// Step is a visit of a node.
type Step struct {
	Key       string
	Node      *PlanNode // the scope's node of that key
	Visit     int
	Since     int             // the visit that it continues, whose keys its units have; 0 = none
	Params    json.RawMessage // what units and children see
	Input     json.RawMessage
	EnteredAt int64
	Due       int64 // a timer's end, a wait's or subflow's timeout; 0 = none, or it stands still
	DueLeft   int64 // how long a timeout that stands still has yet to go; 0 = none does

	Units    []Unit
	Next     int               // units before it have been started
	Flying   int               // units dispatched or running
	Done     int               // units ended
	Failures int               // units failed
	TimedOut bool              // the last of those by its timeout
	Retrying []int             // units that are to be tried again, in order of their time
	StartAt  int64             // units are started then; 0 = at once
	Initial  int               // units it began with
	Extra    []json.RawMessage // items that were appended

	Child *Scope // of a subflow

	Signal *StoredSignal // that ends it, of an approval or wait_event; nil = it has none yet

	Undoable int       // place of its Undoable in the state, from 1; 0 = nothing has to be undone
	OwnKeys  []OwnKeys // units whose keys are not those of Since, because they were undone

	scope       *Scope
	execs       []Exec            // of a parallel's branches; see unfoldUnits
	names       []string          // of those
	items       []json.RawMessage // that the units of a foreach or fanout are about
	jobParams   json.RawMessage   // Params in which only the definition names a program
	sharedInput json.RawMessage   // input that all units of a fanout have, or have their item laid over

	size        int       // bytes of the units' outputs
	position    int       // among the active steps of its scope, in dag mode
	manualUnits int       // units in flight that somebody completes
	waitsFor    WaitKinds // the one that it waits for; 0 = none
}

// Unit is one of the N pieces of a step.
type Unit struct {
	Status  UnitStatus
	Attempt int32
	RetryAt int64           // of a failed attempt that is to be tried again
	Output  json.RawMessage // when completed
	Error   *Failure        // of the last failed attempt
	Live    *Live           // while an attempt is in flight
}

// Failure is why an attempt has failed.
type Failure struct {
	Text    string
	Details json.RawMessage // what its carrier has told beside that
}

// Live is what is known about an attempt in flight.
type Live struct {
	StartedAt  int64
	Due        int64  // its timeout; 0 = none, or it stands still
	DueLeft    int64  // how long a timeout that stands still has yet to go; 0 = none does
	StartBy    int64  // when somebody must have claimed it; 0 = any time
	Carrier    string // incarnation of the member that carries it; "" for a queue job
	Worker     string // the poller that claimed it
	Token      string // of the newest claim, also when that has run out
	ClaimedAt  int64  // 0 = it is not
	Until      int64  // of the claim
	Note       string
	Deliveries int               // how often a carrier was lost that had begun it; of what is taken over, see Adopted, that does not count
	Given      int               // how often it was given to another carrier, or to the same one again
	Brought    int               // how many of the last of these times it stayed with its worker, who came to another member
	Again      bool              // it was returned
	Heard      bool              // somebody is at it elsewhere: at what it waits for outside, or as the worker of a program that tells by files
	Permits    *Permits          // that it asks for before it goes on, or has got; nil = none
	Vars       map[string]string // of its program, those in which shared stands: a signal may change it meanwhile; nil = none
	Outside    *Outside          // what it waits for, when nobody carries it out any longer; nil = nothing
}

// Scope finds by its path.
func (s *State) Scope(path string) *Scope { return s.scopes[path] }

// Active are the steps of a task that somebody or something keeps busy, without those inside
// others.
func (s *State) Active() []*Step {
	if s.Root == nil || s.Status.Ended() {
		return nil
	}
	return s.actingScope().Active()
}

// actingScope is the scope in which the task acts: the root, or that in which it closes.
func (s *State) actingScope() *Scope {
	if s.Closing != nil {
		return s.Closing.Scope
	}
	return s.Root
}

// Address of the step.
func (st *Step) Address() Address {
	return Address{Scope: st.scope.Path, Node: st.Node.Key, Visit: st.Visit}
}

// Scope the step is in.
func (st *Step) Scope() *Scope { return st.scope }

// Left is how many units of the step have not completed.
func (st *Step) Left() int { return len(st.Units) - st.Done + st.Failures }

// activeStep finds the active step an address names, nil when it is not active (any more).
func (s *State) activeStep(a Address) *Step {
	sc := s.scopes[a.Scope]
	if sc == nil {
		return nil
	}
	st := sc.mode.activeStep(sc, a.Node)
	if st == nil || st.Visit != a.Visit {
		return nil
	}
	return st
}

// findAttempt finds the attempt in flight that an address names, nil when it is over or never was.
func (s *State) findAttempt(a Address) (*Step, *Unit) {
	st := s.activeStep(a)
	if st == nil || a.Unit < 0 || a.Unit >= len(st.Units) {
		return nil, nil
	}
	u := &st.Units[a.Unit]
	if u.Live == nil || int(u.Attempt) != a.Attempt {
		return nil, nil
	}
	return st, u
}

// Holds reports whether a claim is still the one in force.
func (s *State) Holds(a Address, token string) bool {
	_, u := s.findAttempt(a)
	return u != nil && u.Live.Worker != "" && u.Live.Token == token
}

// Answered reports whether a request has had its effect.
func (s *State) Answered(request string) bool {
	return slices.Contains(s.AnsweredIDs, request)
}

// Paused reports whether nothing new may start until the task is resumed. One that has ended
// meanwhile is over.
func (s *State) Paused() bool { return s.PausedAt != 0 && s.ResumedAt == 0 && !s.Status.Ended() }

// holdsStartedSteps reports whether a pause also holds back what is left of steps that have begun:
// retries, and units that wait for their time or for a place. To pgflow those are queued already,
// and go on.
func (s *State) holdsStartedSteps() bool { return s.Paused() && s.Plan.Profile != ProfilePgflow }

// isCanceling says that nothing new may start, but what is in flight goes on.
func (s *State) isCanceling() bool { return s.CancelAt != 0 && s.Closing == nil }

// isDraining reports whether what no carrier has begun is canceled, because the task is being
// canceled gently. With pgflow's profile what is queued goes on, and so do retries.
func (s *State) isDraining() bool { return s.isCanceling() && s.Plan.Profile != ProfilePgflow }

// Result is a task's result.
func (s *State) Result() json.RawMessage {
	if s.Root == nil {
		return null
	}
	return s.Root.Output()
}

// Active are the scope's steps that have begun and not ended, in the order of the definition.
func (sc *Scope) Active() []*Step { return sc.mode.activeSteps(sc) }

// Output is the scope's result.
func (sc *Scope) Output() json.RawMessage { return sc.mode.scopeOutput(sc) }
