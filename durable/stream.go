package durable

import (
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// Stream is a stream of the task of a function.
type Stream struct {
	b    *conversation.Branch
	name string
}

// Stream returns a stream of the task: values that others can read while the function runs, such as
// the answer of a model, token by token.
//
// Values that a function writes between its steps are stored once, however often it is replayed,
// and before the result of its next step. In a step, write to job.Stream(ctx, name): a step that is
// tried again writes again, and each value has the step and the try that wrote it. A Stream that is
// used in a step does the same.
func (f *Flow) Stream(name string) *Stream { return &Stream{f.b, name} }

// Write appends a value, as JSON. It returns an error if the value, or an earlier one, cannot be
// stored. The function must not depend on it, because it is not recorded.
func (s *Stream) Write(v any) error {
	raw, err := job.EncodeStreamValue(s.name, v)
	if err != nil {
		return err
	}
	return s.b.WriteValue(job.StreamValue{Stream: s.name, Value: raw})
}

// Close ends the stream, so that its readers need not wait for the end of the task. A value that is
// written later opens it again.
func (s *Stream) Close() error {
	if err := job.CheckStreamName(s.name); err != nil {
		return err
	}
	return s.b.WriteValue(job.StreamValue{Stream: s.name, Ends: true})
}
