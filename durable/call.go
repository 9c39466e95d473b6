package durable

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/internal/conversation"
)

// Call gives a job to the workers of a service and returns the result. The step has the name of the
// service. input becomes the input of the job. A replay with another input is held.
//
// The engine repeats a failed job (Retry), also while no program has the function. Timeout limits
// each attempt, and Within limits all attempts together.
func Call[Out any](f *Flow, service string, input any, options ...Option) (Out, error) {
	raw := marshalInput(service, input)
	o := optionsOf("Call", options, "Retry", "Timeout", "Within", "Over", "Named")
	o.Hash = hashOf(raw)
	out, err := f.b.Call(service, raw, o)
	return decodeResult[Out](service, out, err)
}

// Run starts the newest version of another flow, of any mode, as a task of its own, and returns its
// result. The step has the name of the flow. The new task has the label "parent" with the id of
// this task. input is an object: the params of the new task.
//
// If the new task fails or is canceled, Run fails; Details of its Error have the id and the state.
// The new task is canceled if this function ends, fails or is canceled, or if a Race or Within ends
// the Run. If this task failed because of the new task and is retried, the new task continues where
// it failed.
func Run[Out any](f *Flow, flow string, input any, options ...Option) (Out, error) {
	raw := marshalInput(flow, input)
	o := optionsOf("Run", options, "Within", "Named")
	o.Hash = hashOf(raw)
	out, err := f.b.RunFlow(flow, raw, o)
	return decodeResult[Out](flow, out, err)
}

// marshalInput returns an input as JSON. It panics if that is not possible, because this is a
// mistake in the program.
func marshalInput(of string, input any) json.RawMessage {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("durable: the input of %s cannot be written as JSON: %v", of, err))
	}
	return raw
}

// Over sets how the job of a Call is delivered, as a value of exec_type. push (the default) is for
// attached or push workers, remote for attached workers, queue for workers that request jobs.
// local_func is a function of a member, and external another system.
func Over(execType string) Option {
	return Option{"Over", func(o *conversation.Options) { o.Over = execType }}
}

// Named replaces the name of the step of a Call or a Run, which is otherwise the name of the
// service or the flow.
func Named(name string) Option {
	return Option{"Named", func(o *conversation.Options) { o.Name = name }}
}
