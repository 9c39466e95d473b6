package persistence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// Streams stores the values that running steps write to the named streams of their task. The values
// of a stream are numbered from 0, in order of storage.
type Streams interface {
	// AppendStreams adds values to streams, in order. It skips values numbered no higher than a
	// stored value of their source. The slice has an error for each write: nil, ErrNotFound for an
	// unknown task, or an error of the kind flow.Limit. A failed write stores none of its values.
	AppendStreams(ctx context.Context, writes []StreamWrite, most StreamLimits) ([]error, error)
	// ReadStream returns rows of a stream in order, starting with the row that contains the value
	// f.From. Values become visible in this order, so a reader misses none.
	ReadStream(ctx context.Context, f StreamFilter) ([]StreamRow, error)
	// StreamSizes returns the streams of a task in order of their names.
	StreamSizes(ctx context.Context, task string) ([]StreamSize, error)
}

// StreamWrite is a group of values of one writer that are stored together.
type StreamWrite struct {
	Task, Name string
	StreamWriter
	// Source identifies the sender that numbers the values of the stream from 1. Each delivery of
	// an attempt is a new source. A function flow is one source for the values that it writes
	// between its steps, so a replay writes no value twice.
	Source string
	Number int64 // number of the last value
	At     int64 // Unix milliseconds
	Values []json.RawMessage
	Ends   bool // the writer has closed the stream
}

// StreamWriter is the part of a task that writes values.
type StreamWriter struct {
	Job  string // id of the attempt's job
	Step string // step; "" for values of a function flow between its steps
	Try  int    // number of the try within the attempt, from 1; 0 if there is only one try
}

// StreamLimits limits the streams of a task.
type StreamLimits struct {
	Streams int   // number of streams
	Values  int64 // number of values in all streams
	Bytes   int64 // bytes of all values
}

// OrDefault returns the limits with defaults in place of values of 0 or less.
func (l StreamLimits) OrDefault() StreamLimits {
	return StreamLimits{Streams: cmp.Or(max(l.Streams, 0), 100), Values: cmp.Or(max(l.Values, 0), 1_000_000),
		Bytes: cmp.Or(max(l.Bytes, 0), 64<<20)}
}

// StreamFilter selects rows of a stream.
type StreamFilter struct {
	Task, Name string
	From       int64 // number of the first value
	Limit      int
}

// StreamRow is a group of values as it is stored.
type StreamRow struct {
	Task, Name string
	First      int64 // number of the row's first value in the stream
	Last       int64 // number of the row's last value in the stream
	StreamWriter
	Source  string
	Number  int64 // number of the last value, counted by its source
	At      int64
	Content []byte // a JSON array
}

// Values returns the values of a row.
func (r *StreamRow) Values() (list []json.RawMessage, err error) {
	if err = json.Unmarshal(r.Content, &list); err == nil && int64(len(list)) != r.Last-r.First+1 {
		err = fmt.Errorf("it has %d values", len(list))
	}
	if err != nil {
		return nil, fmt.Errorf("persistence: the values %d to %d of the stream %s: %w", r.First, r.Last, r.Name, err)
	}
	return list, nil
}

// StreamSize is a stream without its values.
type StreamSize struct {
	Name   string
	Length int64 // number of values
	Bytes  int64
	Ended  bool // the writer has closed the stream
}

// StreamTails is the state of streams in a store before values are added.
type StreamTails struct {
	Tasks   map[string]map[string]*StreamSize // by task and name; a missing entry means an unknown task
	Sources map[StreamSource]int64            // highest stored number
	changed map[*StreamSize]string            // changed streams, with their tasks
}

// StreamSource identifies a source of values of a stream.
type StreamSource struct{ Task, Name, Source string }

// NewStreamTails returns empty tails.
func NewStreamTails() *StreamTails {
	return &StreamTails{Tasks: map[string]map[string]*StreamSize{}, Sources: map[StreamSource]int64{},
		changed: map[*StreamSize]string{}}
}

// AddTask adds a task without streams, unless it is known.
func (t *StreamTails) AddTask(task string) {
	if t.Tasks[task] == nil {
		t.Tasks[task] = map[string]*StreamSize{}
	}
}

// Add returns the rows to store for writes, and an error for each write. It updates the tails as if
// these rows were stored.
func (t *StreamTails) Add(writes []StreamWrite, most StreamLimits) (rows []StreamRow, errs []error) {
	errs = make([]error, len(writes))
	for i := range writes {
		var row *StreamRow
		if row, errs[i] = t.addWrite(&writes[i], most); row != nil {
			rows = append(rows, *row)
		}
	}
	return rows, errs
}

// addWrite returns the row for a write, or nil if all values are stored already.
func (t *StreamTails) addWrite(w *StreamWrite, most StreamLimits) (*StreamRow, error) {
	streams, known := t.Tasks[w.Task]
	if !known {
		return nil, ErrNotFound
	}
	if !flow.IsText(w.Name) || !flow.IsText(w.Source) || !flow.IsText(w.Job) || !flow.IsText(w.Step) {
		return nil, flow.Errorf(flow.Invalid, "the stream %q cannot be stored: a name in it is not valid text", w.Name)
	}
	source := StreamSource{w.Task, w.Name, w.Source}
	values := w.valuesAfter(t.Sources[source])
	if len(values) == 0 && !w.Ends {
		return nil, nil
	}
	s := streams[w.Name]
	if s == nil {
		s = &StreamSize{Name: w.Name}
	}
	content := joinValues(values)
	if err := most.checkRoom(streams, s, len(values), len(content)); err != nil {
		return nil, err
	}
	streams[w.Name], t.changed[s] = s, w.Task
	s.Ended = w.Ends
	if len(values) == 0 {
		return nil, nil
	}
	row := &StreamRow{Task: w.Task, Name: w.Name, First: s.Length, Last: s.Length + int64(len(values)) - 1,
		StreamWriter: w.StreamWriter, Source: w.Source, Number: w.Number, At: w.At, Content: content}
	s.Length, s.Bytes = row.Last+1, s.Bytes+int64(len(content))
	t.Sources[source] = w.Number
	return row, nil
}

// valuesAfter returns the values of a write with numbers above the given one.
func (w *StreamWrite) valuesAfter(number int64) []json.RawMessage {
	first := w.Number - int64(len(w.Values)) + 1
	return w.Values[min(max(number-first+1, 0), int64(len(w.Values))):]
}

// joinValues returns values as a JSON array.
func joinValues(values []json.RawMessage) []byte {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, bytes.TrimSpace(v)...)
	}
	return append(b, ']')
}

// checkRoom returns an error if the limits do not allow further values in a stream.
func (l StreamLimits) checkRoom(streams map[string]*StreamSize, s *StreamSize, values, bytes int) error {
	if streams[s.Name] == nil && len(streams) >= l.Streams {
		return flow.Errorf(flow.Limit, "the task has %d streams, and no more are possible", len(streams))
	}
	sum := StreamSize{Length: int64(values), Bytes: int64(bytes)}
	for _, other := range streams {
		sum.Length, sum.Bytes = sum.Length+other.Length, sum.Bytes+other.Bytes
	}
	switch {
	case sum.Length > l.Values:
		return flow.Errorf(flow.Limit, "the streams of the task are full: they may have %d values", l.Values)
	case sum.Bytes > l.Bytes:
		return flow.Errorf(flow.Limit, "the streams of the task are full: they may have %d bytes", l.Bytes)
	}
	return nil
}

// ChangedStream is a stream that has changed.
type ChangedStream struct {
	Task string
	StreamSize
}

// ChangedStreams returns the streams that Add has changed.
func (t *StreamTails) ChangedStreams() (list []ChangedStream) {
	for s, task := range t.changed {
		list = append(list, ChangedStream{task, *s})
	}
	return list
}
