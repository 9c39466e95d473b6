package flow

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Closing is the last phase of a task, after all other work has ended. If the task failed or was
// canceled, it runs the compensations. Then it runs the flow's finally, and the task ends with its
// status.
type Closing struct {
	Status TaskStatus // final status of the task
	Error  string
	Undone []UnitRange // units with a finished compensation; in a range the highest unit first
	Final  bool        // finally has been entered
	Scope  *Scope
}

// closingScope is the path of the first closing scope. A task that is retried may close again; the
// later paths have a number appended. No other scope has such a path, because other paths contain a
// node and its visit.
const closingScope = "~"

// applyClosing starts the closing. All other work has ended by then.
func (s evolveState) applyClosing(e *Event) {
	s.Root.cutActive(s.State, e.At)
	if s.Closing != nil { // the event does not fit the state
		s.forgetScope(s.Closing.Scope, e.At)
	}
	s.Deadline, s.DeadlineLeft = 0, 0
	s.Root.FailedAt, s.Root.Cursor = cmp.Or(s.Root.FailedAt, s.Root.Cursor), ""
	s.Closings++
	path := closingScope
	if s.Closings > 1 {
		path += strconv.Itoa(s.Closings)
	}
	s.Closing = &Closing{Status: TaskStatus(e.Status), Error: e.Error, Scope: &Scope{Path: path}}
	if s.Closing.Status == TaskCanceled {
		// a pause does not hold back the compensations of a canceled task
		s.Status, s.PausedAt = TaskCanceling, 0
	}
	if s.Closing.Status == TaskCompleted {
		s.Undoables, s.Done = nil, nil
	}
	s.linkPart().linkClosing()
	s.undoPart().unfoldUndo()
}

// closingInput returns the value of $input for a step of the closing scope that has no input yet:
// the data of the next step. In any other scope it returns nil.
func (sc *Scope) closingInput() json.RawMessage {
	if sc.task == nil || !sc.task.isClosingScope(sc) {
		return nil
	}
	return sc.task.Closing.nextStepInput(sc.task)
}

// nextStepInput returns the data of the next step in the closing scope: the unit to undo, or how
// the task ends. A step without a prep gets this data as its input.
func (c *Closing) nextStepInput(s *State) json.RawMessage {
	if u, unit := s.undoPart().nextUndo(); u != nil {
		b := expr.AppendQuote([]byte(`{"node":`), u.Node)
		b = strconv.AppendInt(append(b, `,"visit":`...), int64(u.Visit), 10)
		b = strconv.AppendInt(append(b, `,"unit":`...), int64(unit), 10)
		b = append(append(b, `,"input":`...), u.unitInput(unit)...)
		b = append(append(b, `,"output":`...), u.unitOutput(unit)...)
		return append(b, '}')
	}
	b := expr.AppendQuote([]byte(`{"status":`), string(c.Status))
	b = expr.AppendQuote(append(b, `,"error":`...), c.Error)
	b = append(append(b, `,"result":`...), s.Result()...)
	return append(b, '}')
}

// cutShort returns the final status of a task whose closing is interrupted. It never returns
// completed, because the interrupted finally might have failed.
func (c *Closing) cutShort() TaskStatus {
	if c.Status == TaskCompleted {
		return TaskCanceled
	}
	return c.Status
}

// isClosingScope reports whether the scope is the closing scope of the task.
func (s *State) isClosingScope(sc *Scope) bool { return s.Closing != nil && s.Closing.Scope == sc }

// hasToClose reports whether a task that gets this status must close first.
func (s *State) hasToClose(status TaskStatus) bool {
	if s.Permits.Waits() && len(s.Done) == 0 { // the task has not begun
		return false
	}
	return s.Plan.Closing != nil && s.Closing == nil && (s.Plan.Finally != "" || status != TaskCompleted && len(s.Done) > 0)
}

// closingMode is the mode of the closing scope: compensations run one after another in undo order,
// finally runs last, and edges are ignored.
type closingMode struct{ graphMode }

func (closingMode) beginNext(d *decider, sc *Scope) {
	c := d.s.Closing
	switch {
	case sc.Step != nil:
		d.attemptPart().startUnits(sc.Step)
	case len(d.s.Done) > 0:
		u, _ := d.s.undoPart().nextUndo()
		d.stepPart().enterNext(sc, sc.Plan.Nodes[u.By])
	case d.s.Plan.Finally != "" && !c.Final:
		d.stepPart().enterNext(sc, sc.Plan.Nodes[d.s.Plan.Finally])
	default:
		d.emitEvent(Event{Type: TaskEnded, Status: string(c.Status), Error: c.Error})
	}
}

func (closingMode) finishStep(d *decider, st *Step, how stepOutcome) {
	e := st.newEvent(StepEnded)
	how.fillEvent(&e)
	d.emitEvent(e)
	d.queueScope(st.scope)
}

func (m closingMode) activateStep(sc *Scope, st *Step) {
	m.graphMode.activateStep(sc, st)
	sc.task.Closing.noteStepEntered(sc.task)
}

func (closingMode) applyStepEnded(s *State, sc *Scope, e *Event) {
	if st := s.evolvePart().postAndForget(sc, e); st != nil {
		sc.Step = nil
		s.Closing.noteStepEnded(st, e)
	}
}

// noteStepEntered records that a step of the closing scope has begun: a compensation of the unit
// that completed last, or finally.
func (c *Closing) noteStepEntered(s *State) {
	if len(s.Done) == 0 {
		c.Final = true
		return
	}
	c.Undone = addUndone(c.Undone, s.undoPart().takeLast())
}

// noteStepEnded records the end of a step of the closing scope. A failure is added to the task's
// error.
func (c *Closing) noteStepEnded(st *Step, e *Event) {
	if e.Status != string(StepFailed) {
		return
	}
	what := "finally"
	if !c.Final {
		what = "compensation " + st.Key
	}
	text := what + " failed: " + cmp.Or(e.Error, "failed")
	if c.Error != "" {
		text = c.Error + "; " + text
	}
	c.Error = text
	if c.Status == TaskCompleted {
		c.Status = TaskFailed
	}
}
