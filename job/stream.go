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

// StreamSink takes the values that a job writes to streams of its task. Its methods are safe for
// concurrent use.
type StreamSink interface {
	// WriteValue takes a value, which is stored a moment later. It waits while many values are not
	// stored yet. Its error is about earlier values of the stream.
	WriteValue(v StreamValue) error
	// Flush returns when the values are stored, or the error why those of a stream are not; ""
	// means all streams.
	Flush(ctx context.Context, stream string) error
}

// StreamValue is a value that a job writes to a stream.
type StreamValue struct {
	Stream string
	Value  json.RawMessage // nil if it only ends the stream
	Ends   bool
	Step   string // step that writes it; "" for a function that is a flow, between its steps
	Try    int    // number of the try within the attempt, from 1; 0 if there is only one
	// Source and Number identify a value that may be written again, and is stored once. For other
	// values Source is "".
	Source string
	Number int64
}

// WithStreams returns the job with the sink of its streams.
func WithStreams(to StreamSink, j Job) Job {
	j.streams = to
	return j
}

// NoteTry notes the number of a try within an attempt, from 1, for the values that the handler of
// ctx writes to streams from now on.
func NoteTry(ctx context.Context, n int) {
	if c, ok := ctx.Value(contextKey{}).(*handlerContext); ok {
		c.try.Store(int32(n))
	}
}

// Streams returns the sink of the job's streams; nil if it has none.
func (j Job) Streams() StreamSink { return j.streams }

// StreamWriter writes to a stream of a task. Its methods are safe for concurrent use.
type StreamWriter struct {
	name string
	step string
	try  int
	to   StreamSink // nil if values are dropped
}

// Stream returns a stream of the task of a handler's context: values that others can read while
// the job runs, such as the tokens of a model. Several jobs of a task may write to the same stream.
// Without an engine the values are dropped.
//
// A job that is tried again writes its values again, behind the earlier ones. Each value has the
// step, attempt and try that wrote it.
func Stream(ctx context.Context, name string) *StreamWriter {
	c, ok := ctx.Value(contextKey{}).(*handlerContext)
	if !ok {
		return &StreamWriter{name: name}
	}
	return &StreamWriter{name, c.job.Step, int(c.try.Load()), c.job.streams}
}

// Write appends a value, as JSON. It returns an error for a value that cannot be stored, and when
// earlier values of the stream could not be, for example because the streams of the task are full.
// A value is stored a moment later, and before the job ends.
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

// Close ends the stream, so that its readers need not wait for the end of the task. A value that is
// written later opens it again.
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

// streamName describes the names that streams can have.
var streamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckStreamName returns an error for a name that a stream cannot have.
func CheckStreamName(name string) error {
	if !streamName.MatchString(name) {
		return fmt.Errorf("a stream cannot have the name %.120q: write up to 100 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}

// EncodeStreamValue returns a value of a stream as JSON, or an error if the stream cannot have it.
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

// ErrStreamOver reports that the job has ended, so that its streams take no more values.
var ErrStreamOver = errors.New("the job that writes to the stream has ended")
