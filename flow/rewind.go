package flow

// Rewind finds a task as it was when a row of its journal had been written. It is a Walker.
type Rewind struct {
	State *State
	Seq   int64 // of the last row that is in the state

	until int64
	done  bool
}

// NewRewind is for the state behind a row. It has to begin before that.
func NewRewind(row int64) *Rewind { return &Rewind{until: row} }

// From begins with a state.
func (w *Rewind) From(s *State) { w.State = s }

// Apply adds an event, unless it is of a later row.
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

// Busy says that every event concerns it.
func (w *Rewind) Busy() bool { return true }

// Idle is false: see Busy.
func (w *Rewind) Idle(*State) bool { return false }

// Done says that a later row has been seen.
func (w *Rewind) Done() bool { return w.done }

// HasBegun reports whether a scope with a path is there, or was.
func (s *State) HasBegun(path string) bool { return s.phaseOf(path) != phaseAhead }
