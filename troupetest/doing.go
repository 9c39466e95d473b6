package troupetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Doing describes an action from outside that a method such as Signal will add to the test.
type Doing struct {
	f       *Test
	at      time.Duration
	waiting string
	unit    int
}

// At describes an action at a time after the start of the task, such as 90s, 2d or 3w.
func (f *Test) At(span string) *Doing {
	f.t.Helper()
	d, err := rehearse.ParseSpan(span)
	f.requireNoError(err)
	return &Doing{f: f, at: d}
}

// WhenWaiting describes an action that follows when a step begins to wait. name is a node, or the
// key that a step waits for. If several actions have the same name, the first is for the first such
// wait, the second for the second, and the last for all later waits.
func (f *Test) WhenWaiting(name string) *Doing { return &Doing{f: f, waiting: name} }

// After delays the action by a time, such as 90s or 2d.
func (d *Doing) After(span string) *Doing {
	d.f.t.Helper()
	more, err := rehearse.ParseSpan(span)
	d.f.requireNoError(err)
	d.at += more
	return d
}

// Unit selects the unit of the step, counted from 0.
func (d *Doing) Unit(unit int) *Doing {
	d.unit = unit
	return d
}

// addAct adds the action to the test.
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

// Answer answers the waiting step with a value. Use it with WhenWaiting.
func (d *Doing) Answer(value any) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActAnswer, Target: d.waiting, Value: d.marshalJSON(value)})
}

// Approve approves an approval.
func (d *Doing) Approve(node string) *Test {
	return d.addAct(rehearse.Act{Kind: rehearse.ActApprove, Target: node})
}

// Reject rejects an approval.
func (d *Doing) Reject(node string) *Test {
	return d.addAct(rehearse.Act{Kind: rehearse.ActReject, Target: node})
}

// Complete completes a unit of a step with the route direct.
func (d *Doing) Complete(node string, output any) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActComplete, Target: node, Value: d.marshalJSON(output)})
}

// Fail completes a unit of a step with the route direct, with an error.
func (d *Doing) Fail(node, text string) *Test {
	d.f.t.Helper()
	return d.addAct(rehearse.Act{Kind: rehearse.ActFail, Target: node, Value: d.marshalJSON(text)})
}

// Append adds units to a fanout that has begun.
func (d *Doing) Append(node string, items ...any) *Test {
	d.f.t.Helper()
	a := rehearse.Act{Kind: rehearse.ActAppend, Target: node}
	for _, item := range items {
		a.Items = append(a.Items, d.marshalJSON(item))
	}
	return d.addAct(a)
}

// Cancel cancels the task.
func (d *Doing) Cancel() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActCancel}) }

// CancelGracefully cancels the task after its running work has ended.
func (d *Doing) CancelGracefully() *Test {
	return d.addAct(rehearse.Act{Kind: rehearse.ActCancelGracefully})
}

// Pause prevents new work from starting.
func (d *Doing) Pause() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActPause}) }

// Resume ends a Pause.
func (d *Doing) Resume() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActResume}) }

// Retry continues a failed task where it failed.
func (d *Doing) Retry() *Test { return d.addAct(rehearse.Act{Kind: rehearse.ActRetry}) }
