package flow

import (
	"encoding/json"
	"slices"
)

// State is the state of one task, the result of its events. Only Evolve changes a state; see
// Outline.State for the exception.
//
// A snapshot stores the exported fields, except the parts of the plan and Scope.Params. Those and
// the unexported fields derive from the stored ones (see link.go).
type State struct {
	Task    string
	Version string  // version of the flow; Plan is its compiled form
	Origin  string  // task that this task continues or repeats; "" if none
	Traced  *Traced // nil if the task has a trace of its own
	Plan    *Plan
	Status  TaskStatus
	Error   string // error of a failed task
	Params  json.RawMessage
	Root    *Scope

	CreatedAt int64
	UpdatedAt int64
	EndedAt   int64
	PausedAt  int64 // time of the last pause; 0 if never
	ResumedAt int64 // time of the resume after that pause; 0 if still paused
	Deadline  int64 // deadline of the whole task; 0 if none, or if it is stopped
	// DeadlineLeft is the remaining time of a stopped deadline; 0 if it is not stopped.
	DeadlineLeft int64
	Steps        int // number of ended steps

	// Followed is the number of failed steps of the root with a followed failure (on_error:
	// follow).
	Followed int
	// FollowedErrors holds the last such error of each node, oldest first. It has at most
	// KeptFollowed entries.
	FollowedErrors []FollowedError

	CancelAt int64 // time of a gentle cancel; 0 if none
	// CancelError is the error with which the task ends after its function has undone its work; ""
	// if the task was canceled.
	CancelError string
	Closing     *Closing // last phase, after all other work has ended
	Closings    int      // number of closings

	Undoables []Undoable  // visits of nodes with a compensation that have completed units
	Done      []UnitRange // units to undo if the task fails, in the order of completion

	Signals  []StoredSignal // signals that may still be consumed, oldest first
	Signaled int            // number of signals and answers received

	Permits *Permits // permits that the task needs before it begins; nil if none
	Asked   int      // number of times the task requested permits

	AnsweredIDs []string       // ids of the newest requests that had an effect, oldest first
	Appended    map[string]int // for each request that appended units, the index of its first unit

	begunApart bool          // see BegunApart; not part of a snapshot
	awaited    *[]awaitedKey // see awaitedKeys; nil until needed
	lost       lostContent
	scopes     map[string]*Scope // by path
	waiting    []*Step           // steps that a signal may end, in the order of the definition
	waits      waitList
}

// Scope is the space in which nodes see each other's outputs.
type Scope struct {
	Path       string
	Plan       *PlanScope
	Params     json.RawMessage // params of the task, or of the step to which the scope belongs
	Shared     map[string]json.RawMessage
	Cursor     string // node that is active or entered next; "" if the scope has ended
	LastAction string
	Visits     map[string]int
	Step       *Step // visit of Cursor; nil until the node is entered
	EnterAt    int64 // earliest time to enter the node; 0 for immediately
	Retries    int   // number of retries in a subflow with strategy retry
	// Idle counts consecutive ended steps without work, wait or delay (graph mode); see
	// maxIdleSteps.
	Idle     int
	Worked   bool            // at least one step was not idle
	Failed   string          // error of a failed scope
	FailedAt string          // node that made the scope fail
	Kept     *Kept           // graph mode: results for the next visit of the node at Cursor
	Nodes    []NodeState     // dag mode: by index
	Past     map[string]Past // graph mode: newest visit of each ended node
	Function *FunctionState  // code mode: nil in the other modes

	mode   scopeMode       // mode of the plan; closingMode in the closing scope
	run    json.RawMessage // dag mode: value of `run`
	task   *State          // the task; set only in the closing scope
	dag    *dagState       // dag mode
	lost   *lostContent    // lostContent of the task
	size   *int            // bytes of shared, common to the closing scope and the root
	parent *Step           // nil for the root
	depth  int
	overAt int64 // time when the scope's step ended; 0 if it has not
}

// Step is a visit of a node.
type Step struct {
	Key       string
	Node      *PlanNode // node of the scope with that key
	Visit     int
	Since     int             // visit that this visit continues, whose unit keys it uses; 0 if none
	Params    json.RawMessage // params for units and children
	Input     json.RawMessage
	EnteredAt int64
	// Due is the end of a timer, or the timeout of a wait or subflow; 0 if none, or if the timeout
	// is stopped.
	Due     int64
	DueLeft int64 // remaining time of a stopped timeout; 0 if it is not stopped

	Units    []Unit
	Next     int               // all units before this index have started
	Flying   int               // number of units dispatched or running
	Done     int               // number of ended units
	Failures int               // number of failed units
	TimedOut bool              // the last failure was a timeout
	Retrying []int             // units that wait for a retry, ordered by its time
	StartAt  int64             // time when units may start; 0 for immediately
	Initial  int               // number of units at the start
	Extra    []json.RawMessage // appended items

	Child *Scope // scope of a subflow

	Signal *StoredSignal // signal that ends an approval or wait_event; nil until it was consumed

	Undoable int       // index in State.Undoables plus one; 0 if there is nothing to undo
	OwnKeys  []OwnKeys // undone units, which do not use the keys of Since

	scope     *Scope
	jobParams json.RawMessage // Params in which only the definition names a program
	common    *unitValues     // nil unless the node may have several units; see unfoldUnits

	size        int       // bytes of the units' outputs
	position    int       // index among the active steps of its scope, in dag mode
	manualUnits int       // units in flight that are completed by hand
	waitsFor    WaitKinds // kind of its wait; 0 if none
}

// unitValues are the values that the units of a step work on. They derive from the step's input and
// params.
type unitValues struct {
	execs []Exec            // for the branches of a parallel
	names []string          // names of the branches
	items []json.RawMessage // items of the units of a foreach or fanout
	input json.RawMessage   // common input of a fanout's units; items may be merged into it
}

// Unit is one of the N pieces of a step.
type Unit struct {
	Status  UnitStatus
	Attempt int32
	RetryAt int64           // time of the retry of a failed attempt
	Output  json.RawMessage // set when completed
	Error   *Failure        // error of the last failed attempt
	Live    *Live           // set while an attempt is in flight
}

// Failure is the error of a failed attempt.
type Failure struct {
	Text    string
	Details json.RawMessage // additional data from the carrier, as JSON
}

// Live is the state of an attempt in flight.
type Live struct {
	StartedAt int64
	Due       int64  // timeout of the attempt; 0 if none, or if it is stopped
	DueLeft   int64  // remaining time of a stopped timeout; 0 if it is not stopped
	StartBy   int64  // time until which a worker must claim the attempt; 0 if unlimited
	Carrier   string // incarnation of the carrying member; "" for a queue job
	Worker    string // poller that claimed the attempt
	Token     string // token of the newest claim, even if that has expired
	ClaimedAt int64  // 0 if the attempt is not claimed
	Until     int64  // end of the claim
	Note      string
	// Deliveries is the number of carriers that were lost after they had begun the attempt. Work
	// that is adopted is not counted; see Adopted.
	Deliveries int
	Given      int // number of deliveries after the first, to any carrier
	// Brought is the number of the most recent deliveries by which the worker brought the attempt
	// to another member.
	Brought int
	Permits *Permits // permits that the attempt needs before it continues; nil if none
	// Vars are variables of the attempt's program that contain shared values, which a signal may
	// change later; nil if none.
	Vars    map[string]string
	Outside *Outside // external jobs that the attempt waits for without a carrier; nil if none
	Held    string   // why the carrier has returned the attempt, see AttemptHeld; "" if it has not
	Again   bool     // the attempt was returned
	// Heard is set if the attempt is carried out elsewhere: by an external job, or by the worker of
	// a program that reports through files.
	Heard  bool
	Undoes bool // the function is called to undo its work, because the task was canceled
}

// Scope returns the scope with the given path, or nil.
func (s *State) Scope(path string) *Scope { return s.scopes[path] }

// Active returns the active steps of a task, without those inside other steps.
func (s *State) Active() []*Step {
	if s.Root == nil || s.Status.Ended() {
		return nil
	}
	return s.actingScope().Active()
}

// actingScope returns the scope that is active: the root, or the closing scope.
func (s *State) actingScope() *Scope {
	if s.Closing != nil {
		return s.Closing.Scope
	}
	return s.Root
}

// Address returns the address of the step.
func (st *Step) Address() Address {
	return Address{Scope: st.scope.Path, Node: st.Node.Key, Visit: st.Visit}
}

// Scope returns the scope of the step.
func (st *Step) Scope() *Scope { return st.scope }

// Left returns the number of units of the step that have not completed.
func (st *Step) Left() int { return len(st.Units) - st.Done + st.Failures }

// activeStep returns the active step at an address, or nil if it is not active.
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

// findAttempt returns the attempt in flight at an address, or nil if there is none.
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

// Holds reports whether the token belongs to the current claim of an attempt.
func (s *State) Holds(a Address, token string) bool {
	_, u := s.findAttempt(a)
	return u != nil && u.Live.Worker != "" && u.Live.Token == token
}

// Answered reports whether a request with this id has already had its effect.
func (s *State) Answered(request string) bool {
	return slices.Contains(s.AnsweredIDs, request)
}

// Paused reports whether no new work may start until the task is resumed. It is false for a task
// that has ended.
func (s *State) Paused() bool { return s.PausedAt != 0 && s.ResumedAt == 0 && !s.Status.Ended() }

// holdsStartedSteps reports whether a pause also holds back the rest of steps that have begun:
// retries, and units that wait for their time or for a place. With the pgflow profile these count
// as queued and continue.
func (s *State) holdsStartedSteps() bool { return s.Paused() && s.Plan.Profile != ProfilePgflow }

// isCanceling reports whether a cancel prevents new work, while attempts in flight continue.
func (s *State) isCanceling() bool { return s.CancelAt != 0 && s.Closing == nil }

// isDraining reports whether a gentle cancel cancels attempts that no carrier has begun. With the
// pgflow profile queued attempts and retries continue.
func (s *State) isDraining() bool { return s.isCanceling() && s.Plan.Profile != ProfilePgflow }

// Result returns the result of the task.
func (s *State) Result() json.RawMessage {
	if s.Root == nil {
		return null
	}
	return s.Root.Output()
}

// Active returns the steps of the scope that have begun and not ended, in the order of the
// definition.
func (sc *Scope) Active() []*Step { return sc.mode.activeSteps(sc) }

// Output returns the result of the scope.
func (sc *Scope) Output() json.RawMessage { return sc.mode.scopeOutput(sc) }

// The methods of a state are grouped by purpose. All groups share one state, so a value of
// a group costs nothing. Calls between groups name the group, as in s.undoPart().
type (
	// evolveState applies events to the state.
	evolveState struct{ *State }
	// linkState connects the parts of a state that was read: scopes, steps and their plans.
	linkState struct{ *State }
	// undoState stores the units to undo if the task fails, and returns them in undo order.
	undoState struct{ *State }
	// awaitState finds out which signals the task may still consume.
	awaitState struct{ *State }
	// owedState lists outstanding effects.
	owedState struct{ *State }
	// viewState shows the state to readers.
	viewState struct{ *State }
)

func (s *State) evolvePart() evolveState { return evolveState{s} }
func (s *State) linkPart() linkState     { return linkState{s} }
func (s *State) undoPart() undoState     { return undoState{s} }
func (s *State) awaitPart() awaitState   { return awaitState{s} }
func (s *State) owedPart() owedState     { return owedState{s} }
func (s *State) viewPart() viewState     { return viewState{s} }
