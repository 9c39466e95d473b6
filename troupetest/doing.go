package troupetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Doing is something that is about to be done from outside.
type Doing struct {
	f       *Test
	at      time.Duration
	waiting string
	unit    int
}

// At is a time after the task's start, such as 90s, 2d or 3w.
func (f *Test) At(span string) *Doing {
	f.t.Helper()
	d, err := rehearse.ParseSpan(span)
	f.requireNoError(err)
	return &Doing{f: f, at: d}
}

// WhenWaiting is when a step begins: a node, or one that waits for a key. Said several times of one
// name, the first is for the first such wait, and the last for all after it.
func (f *Test) WhenWaiting(name string) *Doing { return &Doing{f: f, waiting: name} }

// After is so much later.
func (d *Doing) After(span string) *Doing {
	d.f.t.Helper()
	more, err := rehearse.ParseSpan(span)
	d.f.requireNoError(err)
	d.at += more
	return d
}

// Unit says which unit of the step is meant, counted from 0.
func (d *Doing) Unit(unit int) *Doing {
	d.unit = unit
	return d
}

// addAct has it done.
func (d *Doing) addAct(a rehearse.Act) *Test {
	a.At, a.Waiting, a.Unit = d.at, d.waiting, d.unit
	a.ID = "at " + rehearse.Span(a.At)
	if a.Waiting != "" {
		a.ID = "when " + a.Waiting + " waits, " + rehearse.Span(a.At) + " later"
		for i := range d.f.play.Acts {
			if d.f.play.Acts[i].Waiting == a.Waiting {
				a.Nth++
			}
		}
	}
	a.ID += ": " + string(a.Kind)
	if a.Target != "" {
		a.ID += " " + a.Target
	}
	for i, id := 2, a.ID; d.f.doesAlready(a.ID); i++ {
		a.ID = fmt.Sprintf("%s (%d)", id, i)
	}
	d.f.play.Acts = append(d.f.play.Acts, a)
	return d.f
}

func (f *Test) doesAlready(id string) bool {
	for i := range f.play.Acts {
		if f.play.Acts[i].ID == id {
			return true
		}
	}
	return false
}

func (d *Doing) marshalJSON(v any) json.RawMessage {
	d.f.t.Helper()
	b, err := json.Marshal(v)
	d.f.requireNoError(err)
	return b
}

// Signal sets a key of the task's shared state.
func (d *Doing) Signal(key string, value any) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActSignal, Target: key, Value: d.marshalJSON(value)})
}

// Answer gives the step that waits what it waits for. It goes with WhenWaiting.
func (d *Doing) Answer(value any) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActAnswer, Target: d.waiting, Value: d.marshalJSON(value)})
}

// Approve decides an approval, Reject the other way.
func (d *Doing) Approve(node string) *Test {
	return d.addAct(rehearse.Act{Kind: rehearse.ActApprove, Target: node})
}

// Reject decides an approval.
func (d *Doing) Reject(node string) *Test {
	return d.addAct(rehearse.Act{Kind: rehearse.ActReject, Target: node})
}

// Complete finishes a unit of a step with the route direct.
func (d *Doing) Complete(node string, output any) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActComplete, Target: node, Value: d.marshalJSON(output)})
}

// Fail does so with an error.
func (d *Doing) Fail(node, text string) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActFail, Target: node, Value: d.marshalJSON(text)})
}

// Append adds units to a fan-out that has begun.
func (d *Doing) Append(node string, items ...any) *Test {
	d.f.t.Helper()
	a := rehearse.Act{Kind: rehearse.ActAppend, Target: node}
	for _, item := range items {
		a.Items = append(a.Items, d.marshalJSON(item))
	}
	return d.addAct(a)
}

// Cancel ends the task.
func (d *Doing) Cancel() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActCancel}) }

// CancelGently ends it when nothing is under way any more.
func (d *Doing) CancelGently() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActCancelGently}) }

// Pause keeps anything new from starting.
func (d *Doing) Pause() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActPause}) }

// Resume undoes Pause.
func (d *Doing) Resume() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActResume}) }

// Retry has a failed task go on where it failed.
func (d *Doing) Retry() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActRetry}) }
