package troupetest

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/troupe-engine/troupe/job"
)

// streamLog stores the values that a function writes to streams. A mutex guards it, because
// branches write concurrently.
type streamLog struct {
	mu     sync.Mutex
	seen   map[streamPlace]bool
	values map[string][]json.RawMessage // by stream
}

// streamPlace identifies a value that may be written again.
type streamPlace struct {
	stream, source string
	number         int64
}

// WriteValue stores a value, unless it was stored before.
func (l *streamLog) WriteValue(v job.StreamValue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := streamPlace{v.Stream, v.Source, v.Number}
	if len(v.Value) == 0 || v.Source != "" && l.seen[at] {
		return nil
	}
	l.seen[at] = true
	l.values[v.Stream] = append(l.values[v.Stream], v.Value)
	return nil
}

// Flush does nothing, because values are stored at once.
func (*streamLog) Flush(context.Context, string) error { return nil }
