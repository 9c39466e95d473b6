package durable

import (
	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// Stream writes values to a stream of a function's task.
type Stream struct {
	b    *conversation.Branch
	name string
}

// Stream returns a stream of the task: values that others can read while the function runs, such as
// the tokens of a model.
//
// Values that a function writes between its steps are stored once, however often the function is
// replayed. They are stored before the result of the next step. Inside a step, write to
// job.Stream(ctx, name). A step that is repeated writes its values again, and each value has the
// step and the try that wrote it. A Stream that is used inside a step does the same.
func (f *Flow) Stream(name string) *Stream { return &Stream{f.b, name} }

// Write appends a value as JSON. It returns an error if this value, or an earlier one, cannot be
// stored. The function must not decide by this error, because the error is not recorded.
func (s *Stream) Write(v any) error {
	raw, err := job.EncodeStreamValue(s.name, v)
	if err != nil {
		return err
	}
	return s.b.WriteValue(job.StreamValue{Stream: s.name, Value: raw})
}

// Close ends the stream, so that its readers need not wait for the end of the task. A later Write
// opens the stream again.
func (s *Stream) Close() error {
	if err := job.CheckStreamName(s.name); err != nil {
		return err
	}
	return s.b.WriteValue(job.StreamValue{Stream: s.name, Ends: true})
}
