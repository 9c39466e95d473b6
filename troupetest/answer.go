package troupetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/rehearse"
	"github.com/troupe-engine/troupe/job"
)

// Answer is the answer of a mock, or a sequence of answers.
type Answer struct {
	list []cases.Given
	err  error
}

func newAnswer(g cases.Given) Answer {
	g.Unit, g.Times = -1, unsaid
	return Answer{list: []cases.Given{g}}
}

// unsaid is the Times of an answer without a number. Such an answer is given once, or without limit
// if it is the last one.
const unsaid = -1

// Returns returns an answer with a value, which is sent as JSON.
func Returns(v any) Answer {
	b, err := json.Marshal(v)
	a := newAnswer(cases.Given{Output: b})
	a.err = err
	return a
}

// Fails returns an answer with an error. The retries of the node apply.
func Fails(text string) Answer { return newAnswer(cases.Given{Error: text, Failed: true}) }

// FailsForGood returns an answer with an error that is not retried.
func FailsForGood(text string) Answer {
	return newAnswer(cases.Given{Error: text, Failed: true, Fatal: true})
}

// Echo returns an answer that repeats the input of the call.
func Echo() Answer { return newAnswer(cases.Given{Echo: true}) }

// Silent returns an answer that is never sent.
func Silent() Answer { return newAnswer(cases.Given{Silent: true}) }

// Func returns an answer that a handler computes. The handler gets the whole job, as in troupe and
// worker. A panic becomes an error; a fatal error is not retried.
func Func(f job.Handler) Answer {
	return newAnswer(cases.Given{Func: func(c *rehearse.Call) rehearse.Answer { return askHandler(f, c) }})
}

// Handler returns an answer that a function computes. The function gets its input as a Go value, as
// in troupe.Handle and worker.Handle.
func Handler[In, Out any](f func(context.Context, In) (Out, error)) Answer {
	typed, err := job.Typed("of the mock", f)
	a := Func(typed)
	a.err = err
	return a
}

func askHandler(f job.Handler, c *rehearse.Call) (a rehearse.Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = rehearse.Answer{Error: fmt.Sprintf("panic: %.200v", p)}
		}
	}()
	j := job.Job{ID: c.ID(), Service: c.Service(), Input: c.Input, Params: c.Params, Task: c.Task,
		Step: c.Step(), Unit: c.Unit, Units: max(c.Units, 1), Attempt: c.Attempt, Log: io.Discard}
	out, err := f(job.With(context.Background(), j, nil), j)
	if err == nil {
		a.Output, err = json.Marshal(out)
	}
	if err != nil {
		a = rehearse.Answer{Error: cmp.Or(err.Error(), "failed"), Fatal: job.IsFatal(err)}
	}
	return a
}

// changeLast returns a copy of the sequence with its last answer changed.
func (a Answer) changeLast(change func(*cases.Given) error) Answer {
	a.list = append([]cases.Given(nil), a.list...)
	a.err = errors.Join(a.err, change(&a.list[len(a.list)-1]))
	return a
}

// Times sets how often the answer is given before the next one follows.
func (a Answer) Times(n int) Answer {
	return a.changeLast(func(g *cases.Given) error {
		g.Times = n
		if n < 1 {
			return fmt.Errorf("an answer is given at least once, not %d times", n)
		}
		return nil
	})
}

// After sets how long the call takes in virtual time, such as 3s or 2d.
func (a Answer) After(span string) Answer {
	return a.changeLast(func(g *cases.Given) (err error) {
		g.After, err = rehearse.ParseSpan(span)
		return err
	})
}

// Unit restricts the answer to one unit of a step, counted from 0.
func (a Answer) Unit(unit int) Answer {
	return a.changeLast(func(g *cases.Given) error {
		g.Unit = unit
		return nil
	})
}

// When restricts the answer to calls for which a CEL expression is true. Its variables are input,
// params, attempt, unit, visit and call.
func (a Answer) When(cel string) Answer {
	return a.changeLast(func(g *cases.Given) (err error) {
		g.When, err = cases.CallCondition(cel)
		return err
	})
}

// Then adds another answer to the sequence.
func (a Answer) Then(next Answer) Answer {
	return Answer{list: append(append([]cases.Given(nil), a.list...), next.list...), err: errors.Join(a.err, next.err)}
}

// toMock converts the sequence to a mock for package cases.
func (a Answer) toMock() *cases.Mock {
	m := &cases.Mock{Answers: append([]cases.Given(nil), a.list...)}
	for i := range m.Answers {
		m.Answers[i].Finish(i == len(m.Answers)-1)
	}
	return m
}
