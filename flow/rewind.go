package flow

// Rewind rebuilds the state of a task after a given row of its journal. It is a Walker.
type Rewind struct {
	State *State
	Seq   int64 // last row applied to the state

	until int64
	done  bool
}

// NewRewind returns a Rewind to the state after the given row. The walk must start before that row.
func NewRewind(row int64) *Rewind { return &Rewind{until: row} }

// From starts with a state.
func (w *Rewind) From(s *State) { w.State = s }

// Apply applies an event, unless it belongs to a later row.
func (w *Rewind) Apply(e *Event, at Place) {
	if at.Seq > w.until {
		w.done = true
		return
	}
	if !w.done {
		Evolve(w.State, e)
		w.Seq = at.Seq
	}
}

// Busy returns true, because every event matters.
func (w *Rewind) Busy() bool { return true }

// Idle returns false; see Busy.
func (w *Rewind) Idle(*State) bool { return false }

// Done reports whether a later row has been read.
func (w *Rewind) Done() bool { return w.done }

// HasBegun reports whether a scope with the path exists or existed.
func (s *State) HasBegun(path string) bool { return s.viewPart().phaseOf(path) != phaseAhead }
