package flow

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Closing is what a task does when everything else is over: it undoes what has been done, if it
// failed or was canceled, and runs the flow's finally. Then it ends as it had to.
type Closing struct {
	Status TaskStatus // the task's, in the end
	Error  string
	Undone []UnitRange // units that compensations ran for, each range backwards
	Final  bool        // finally has been entered
	Scope  *Scope
}

// closingScope is the path of the scope in which closing happens the first time; a task that is
// retried may close again. No other path is like these, because those name the visit they belong
// to.
const closingScope = "~"

// applyClosing begins to close: everything else is over.
func (s *State) applyClosing(e *Event) {
	s.Root.cutActive(s, e.At)
	s.Deadline, s.DeadlineLeft = 0, 0
	s.Root.FailedAt, s.Root.Cursor = cmp.Or(s.Root.FailedAt, s.Root.Cursor), ""
	s.Closings++
	path := closingScope
	if s.Closings > 1 {
		path += strconv.Itoa(s.Closings)
	}
	s.Closing = &Closing{Status: TaskStatus(e.Status), Error: e.Error, Scope: &Scope{Path: path}}
	if s.Closing.Status == TaskCanceled {
		s.Status, s.PausedAt = TaskCanceling, 0 // a pause holds back no undoing of what is canceled
	}
	if s.Closing.Status == TaskCompleted {
		s.Undoables, s.Done = nil, nil
	}
	s.linkClosing()
	s.unfoldUndo()
}

// closingInput is what $input means in a scope before a step has one: in that where a task closes,
// what is next there.
func (sc *Scope) closingInput() json.RawMessage {
	if sc.task == nil || !sc.task.isClosingScope(sc) {
		return nil
	}
	return sc.task.Closing.nextStepInput(sc.task)
}

// nextStepInput returns what the next step of the closing scope is about, and its input if it has
// no prep: the unit to be undone, or how the task ends.
func (c *Closing) nextStepInput(s *State) json.RawMessage {
	if u, unit := s.nextUndo(); u != nil {
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

// cutShort is how a task ends that does not close as far as it had to. It has not completed: its
// finally might have failed.
func (c *Closing) cutShort() TaskStatus {
	if c.Status == TaskCompleted {
		return TaskCanceled
	}
	return c.Status
}

// isClosingScope reports whether a scope is the one in which the task closes.
func (s *State) isClosingScope(sc *Scope) bool { return s.Closing != nil && s.Closing.Scope == sc }

// hasToClose reports whether a task with this end has something to do before it.
func (s *State) hasToClose(status TaskStatus) bool {
	if s.Permits.Waits() && len(s.Done) == 0 { // it has not begun
		return false
	}
	return s.Plan.Closing != nil && s.Closing == nil && (s.Plan.Finally != "" || status != TaskCompleted && len(s.Done) > 0)
}

// closingMode is that of the scope in which a task closes: steps follow each other in the order of
// what is to be undone, finally comes last, and no edge leads anywhere.
type closingMode struct{ graphMode }

func (closingMode) beginNext(d *decider, sc *Scope) {
	c := d.s.Closing
	switch {
	case sc.Step != nil:
		d.startUnits(sc.Step)
	case len(d.s.Done) > 0:
		u, _ := d.s.nextUndo()
		d.enterNext(sc, sc.Plan.Nodes[u.By])
	case d.s.Plan.Finally != "" && !c.Final:
		d.enterNext(sc, sc.Plan.Nodes[d.s.Plan.Finally])
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
	if st := s.postAndForget(sc, e); st != nil {
		sc.Step = nil
		s.Closing.noteStepEnded(st, e)
	}
}

// noteStepEntered notes that a step of the closing scope has begun: what undoes the unit that
// completed last, or finally.
func (c *Closing) noteStepEntered(s *State) {
	if len(s.Done) == 0 {
		c.Final = true
		return
	}
	c.Undone = addUndone(c.Undone, s.takeLast())
}

// noteStepEnded notes the end of a step of the closing scope. What failed is told in the task's
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
