package durable

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/internal/conversation"
)

// Call gives a job to the workers of a service and returns its result. The step has the name of
// the service. Input becomes the input of the job. A replay with another input is held.
//
// The engine repeats a failed job (Retry), also while no program has the function. Timeout limits
// each attempt, and Within all of them together.
func Call[Out any](f *Flow, service string, input any, options ...Option) (Out, error) {
	raw := marshalInput(service, input)
	o := optionsOf("Call", options, "Retry", "Timeout", "Within", "Over", "Named")
	o.Hash = hashOf(raw)
	out, err := f.b.Call(service, raw, o)
	return decodeResult[Out](service, out, err)
}

// Run starts the newest version of another flow, of whatever mode, as a task of its own, and
// returns its result. The step has the name of the flow; the task has the label parent with the id
// of this one. Input is an object: the params of the task.
//
// If the task fails or is canceled, Run fails; Details of its Error have the id and the state. If
// this function ends, fails, is canceled or loses interest (Race, Within), the task is canceled. If
// this task failed because of it and is retried, the other one goes on where it failed.
func Run[Out any](f *Flow, flow string, input any, options ...Option) (Out, error) {
	raw := marshalInput(flow, input)
	o := optionsOf("Run", options, "Within", "Named")
	o.Hash = hashOf(raw)
	out, err := f.b.RunFlow(flow, raw, o)
	return decodeResult[Out](flow, out, err)
}

// marshalInput returns the JSON of an input. It panics if there is none: that is an error of the
// program.
func marshalInput(of string, input any) json.RawMessage {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("durable: the input of %s cannot be written as JSON: %v", of, err))
	}
	return raw
}

// Over sets how the job of a Call travels, in the words of exec_type: push (the default) to an
// attached or push worker, remote to an attached one, queue to one that asks for jobs, local_func
// to a function of a member, and external to another system.
func Over(execType string) Option {
	return Option{"Over", func(o *conversation.Options) { o.Over = execType }}
}

// Named gives a Call another name than that of its service, and a Run another one than that of its
// flow.
func Named(name string) Option {
	return Option{"Named", func(o *conversation.Options) { o.Name = name }}
}
