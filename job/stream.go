package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// MaxStreamValue is the maximum size of a value in a stream, in bytes of JSON.
const MaxStreamValue = 256 << 10

// StreamSink receives the values that a job writes to streams of its task. Its methods are safe for
// concurrent use.
type StreamSink interface {
	// WriteValue accepts a value, which is stored a moment later. It blocks while too many values
	// are not stored yet. An error is about earlier values of the stream.
	WriteValue(v StreamValue) error
	// Flush waits until the values of a stream are stored, and returns an error if they cannot be.
	// stream "" means all streams.
	Flush(ctx context.Context, stream string) error
}

// StreamValue is a value that a job writes to a stream.
type StreamValue struct {
	Stream string
	Value  json.RawMessage // nil if the value only ends the stream
	Ends   bool
	Step   string // step that writes the value; "" for a function that is a flow, between its steps
	Try    int    // number of the try within the attempt, from 1; 0 if there is only one
	// Source and Number identify a value that may be written again but is stored once. For other
	// values Source is "".
	Source string
	Number int64
}

// WithStreams returns the job with the given sink for its streams.
func WithStreams(to StreamSink, j Job) Job {
	j.streams = to
	return j
}

// NoteTry sets the number of the current try within an attempt, from 1. Values that the handler of
// ctx writes to streams afterwards carry this number.
func NoteTry(ctx context.Context, n int) {
	if c, ok := ctx.Value(contextKey{}).(*handlerContext); ok {
		c.try.Store(int32(n))
	}
}

// Streams returns the sink of the job's streams, or nil if it has none.
func (j Job) Streams() StreamSink { return j.streams }

// StreamWriter writes to a stream of a task. Its methods are safe for concurrent use.
type StreamWriter struct {
	name string
	step string
	try  int
	to   StreamSink // nil if values are dropped
}

// Stream returns a stream of the task of a handler's context. Others can read the values while the
// job runs, such as the tokens of a model. Several jobs of a task may write to the same stream.
// Without an engine the values are dropped.
//
// A repeated job writes its values again, after the earlier ones. Each value has the step, attempt
// and try that wrote it.
func Stream(ctx context.Context, name string) *StreamWriter {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok {
		return &StreamWriter{name: name}
	}
	return &StreamWriter{name, c.job.Step, int(c.try.Load()), c.job.streams}
}

// Write appends a value as JSON. It returns an error if the value cannot be stored. It also returns
// an error if earlier values of the stream could not be stored, for example because the streams of
// the task are full. A value is stored a moment later, but before the job ends.
func (w *StreamWriter) Write(v any) error {
	raw, err := EncodeStreamValue(w.name, v)
	if err != nil || w.to == nil {
		return err
	}
	return w.to.WriteValue(w.newValue(raw))
}

// Flush waits until all values are stored.
func (w *StreamWriter) Flush(ctx context.Context) error {
	if w.to == nil {
		return nil
	}
	return w.to.Flush(ctx, w.name)
}

// Close ends the stream, so that its readers need not wait for the end of the task. A later Write
// opens the stream again.
func (w *StreamWriter) Close() error {
	if err := CheckStreamName(w.name); err != nil || w.to == nil {
		return err
	}
	end := w.newValue(nil)
	end.Ends = true
	return w.to.WriteValue(end)
}

func (w *StreamWriter) newValue(raw json.RawMessage) StreamValue {
	return StreamValue{Stream: w.name, Value: raw, Step: w.step, Try: w.try}
}

// streamName matches the valid names of streams.
var streamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckStreamName returns an error if the name is not valid for a stream.
func CheckStreamName(name string) error {
	if !streamName.MatchString(name) {
		return fmt.Errorf("a stream cannot have the name %.120q: write up to 100 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}

// EncodeStreamValue returns a value as JSON. It returns an error if the stream cannot hold the
// value.
func EncodeStreamValue(stream string, v any) (json.RawMessage, error) {
	if err := CheckStreamName(stream); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a value of the stream %s cannot be written as JSON: %w", stream, err)
	}
	if len(raw) > MaxStreamValue {
		return nil, fmt.Errorf("a value of the stream %s has %d bytes, more than %d", stream, len(raw), MaxStreamValue)
	}
	return raw, nil
}

// ErrStreamOver means that the job has ended, so that its streams accept no more values.
var ErrStreamOver = errors.New("the job that writes to the stream has ended")
