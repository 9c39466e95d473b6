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
	raw, err := json.Marshal(input)
	if err != nil {
		panic(fmt.Sprintf("durable: the input of %s cannot be written as JSON: %v", service, err))
	}
	o := optionsOf("Call", options, "Retry", "Timeout", "Within", "Over", "Named")
	o.Hash = hashOf(raw)
	out, err := f.b.Call(service, raw, o)
	return decodeResult[Out](service, out, err)
}

// Over sets how the job of a Call travels, in the words of exec_type: push (the default) to an
// attached or push worker, remote to an attached one, queue to one that asks for jobs, local_func
// to a function of a member, and external to another system.
func Over(execType string) Option {
	return Option{"Over", func(o *conversation.Options) { o.Over = execType }}
}

// Named gives a Call another name than that of its service.
func Named(name string) Option {
	return Option{"Named", func(o *conversation.Options) { o.Name = name }}
}
