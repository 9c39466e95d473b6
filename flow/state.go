package flow

import (
	"encoding/json"
)

// State is one task: what its events have made of it. Only Evolve changes it.
type State struct {
	Task    string
	Version string // of the flow; Plan is its compiled form
	Plan    *Plan
	Status  TaskStatus
	Error   string // why it failed
	Params  json.RawMessage
	Root    *Scope

	CreatedAt, UpdatedAt, EndedAt int64
	PausedAt                      int64 // 0 = not paused
	Deadline                      int64 // of the whole task; 0 = none
	Ended                         int   // steps that have ended

	answered []string          // ids of the newest requests that had an effect, oldest first
	scopes   map[string]*Scope // by path
	waiting  map[*Step]bool    // steps that a signal may end
}

// Scope is the space in which nodes see each other.
type Scope struct {
	Path       string
	Graph      *Graph
	Params     json.RawMessage
	Shared     map[string]json.RawMessage
	Cursor     string // the node that is active or to be entered next; "" when the scope has ended
	LastAction string
	Visits     map[string]int
	Step       *Step  // the active step; nil while the cursor's node has yet to be entered
	EnterAt    int64  // earliest time for that; 0 = at once
	Retries    int    // of children, in a subflow with strategy retry
	Failed     string // error of the child the scope ended with; only when failed
	Depth      int

	parent *Step // nil for the root
}

// Step is a visit of a node.
type Step struct {
	Node      *PlanNode
	Visit     int
	Params    json.RawMessage // what units and children see
	Input     json.RawMessage
	EnteredAt int64
	Due       int64 // a timer's end, a wait's or subflow's timeout; 0 = none

	Units    []Unit
	Next     int   // units before it have been started
	Flying   int   // units dispatched or running
	Done     int   // units ended
	Failures int   // units failed
	due      []int // units whose retry may start, oldest first

	Child *Scope // of a subflow

	scope *Scope
	items []json.RawMessage // of Input, for foreach; made when first needed
}

// Unit is one of the N pieces of a step.
type Unit struct {
	Status  UnitStatus
	Attempt int32
	RetryAt int64           // of a failed attempt that is to be tried again
	Output  json.RawMessage // when completed
	Error   *string         // of the last failed attempt
	Live    *Live           // while an attempt is in flight
}

// Live is what is known about an attempt in flight.
type Live struct {
	StartedAt  int64
	Due        int64  // its timeout; 0 = none
	Carrier    string // incarnation of the member that carries it, or "" when claimed by a poller
	Worker     string // the poller that claimed it
	Token      string
	Until      int64 // of the claim
	Note       string
	Deliveries int
}

// Scope finds a scope by its path.
func (s *State) Scope(path string) *Scope { return s.scopes[path] }

// Address of the step.
func (st *Step) Address() Address {
	return Address{Scope: st.scope.Path, Node: st.Node.Key, Visit: st.Visit}
}

// Scope the step is in.
func (st *Step) Scope() *Scope { return st.scope }

// step finds the active step an address names, nil when it is not active (any more).
func (s *State) step(a Address) *Step {
	sc := s.scopes[a.Scope]
	if sc == nil || sc.Step == nil || sc.Step.Node.Key != a.Node || sc.Step.Visit != a.Visit {
		return nil
	}
	return sc.Step
}

// attempt finds the attempt in flight that an address names, nil when it is over or never was.
func (s *State) attempt(a Address) (*Step, *Unit) {
	st := s.step(a)
	if st == nil || a.Unit < 0 || a.Unit >= len(st.Units) {
		return nil, nil
	}
	u := &st.Units[a.Unit]
	if u.Live == nil || int(u.Attempt) != a.Attempt {
		return nil, nil
	}
	return st, u
}

// Answered says whether a request has had its effect.
func (s *State) Answered(request string) bool {
	for _, r := range s.answered {
		if r == request {
			return true
		}
	}
	return false
}

// Paused says whether nothing new may start.
func (s *State) Paused() bool { return s.PausedAt != 0 }
