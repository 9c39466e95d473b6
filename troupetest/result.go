package troupetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/internal/cases"
	"github.com/troupe-engine/troupe/internal/rehearse"
)

// Result is the result of a task.
type Result struct {
	// State is completed, failed or canceled. It is running, paused or canceling if nothing can
	// continue the task.
	State string
	Error string
	Value json.RawMessage // result of the task
	Took  time.Duration   // virtual time
	Calls []Call
	Steps []string // entered nodes, in order

	story *rehearse.Story
}

// Call is an attempt that a worker was asked to carry out. A repeated delivery belongs to the same
// call, because its job has the same id.
type Call struct {
	Node, Service string
	Input, Output json.RawMessage
	Error         string
	OK            bool // the call succeeded, and its report was accepted
	Began, Ended  time.Duration
	Unit, Attempt int
	Deliveries    int

	call *rehearse.Call
}

func resultOf(s *rehearse.Story) *Result {
	r := &Result{State: cases.State(s), Error: s.State.Error, Value: s.State.Result(), Took: s.Took, Steps: cases.Entered(s), story: s}
	for _, c := range s.Calls {
		r.Calls = append(r.Calls, Call{Node: c.Step(), Service: c.Service(), Input: c.Input,
			Output: c.Answer.Output, Error: c.Answer.Error, OK: c.OK,
			Began: c.Began, Ended: c.Ended, Unit: c.Unit, Attempt: c.Attempt, Deliveries: c.Deliveries, call: c})
	}
	return r
}

// CallsOf returns the calls of a node, service or function.
func (r *Result) CallsOf(name string) (all []Call) {
	for _, c := range r.Calls {
		if cases.Matches(c.call, name) {
			all = append(all, c)
		}
	}
	return all
}

// Called reports whether a node, service or function was called and succeeded.
func (r *Result) Called(name string) bool {
	for _, c := range r.CallsOf(name) {
		if c.OK {
			return true
		}
	}
	return false
}

// Shared returns the value of a key of the task's shared state; nil if there is none.
func (r *Result) Shared(key string) json.RawMessage {
	if r.story.State.Root == nil {
		return nil
	}
	return r.story.State.Root.Shared[key]
}

// Read decodes the result of the task into v.
func (r *Result) Read(v any) error { return json.Unmarshal(r.Value, v) }

// Text describes the events of the task, one per line.
func (r *Result) Text() string {
	var b strings.Builder
	for _, l := range r.story.Tell() {
		fmt.Fprintf(&b, "%12s  %s\n", rehearse.Span(l.Time), l.Text)
	}
	return b.String()
}
