// Package stream sends events to clients as they happen. It defines the receiver (Listener), the
// transport (server-sent events here; /v1 adds a WebSocket), positions to resume from, and how long
// requests may stay.
//
// - A slow listener costs one row of a journal in memory and delays no other listener.
// - A stream does not end because the store is unavailable for a while.
// - A request that stays is informed when the server begins to stop, and the server waits for it.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Message is one message of a stream. Its sender does not depend on the transport.
type Message struct {
	ID    string // id after which the stream can resume; "" means the id of the previous message
	Event string
	Data  json.RawMessage // JSON on one line
}

// Listener receives a stream. Its errors are ErrGone.
type Listener interface {
	// Open starts the stream, unless it has started. The first message also starts the stream.
	Open() error
	Send(list []Message) error
	// Note explains to human readers of the stream why no events come.
	Note(text string) error
}

// Batch collects messages for a listener, and sends them before they take much memory. A row of a
// journal may have a thousand large messages.
type Batch struct {
	To   Listener
	list []Message
	size int
}

// batchBytes is the size at which a batch is sent.
const batchBytes = 64 << 10

// Add adds a message, and sends the batch if it is large enough.
func (b *Batch) Add(m Message) error {
	b.list = append(b.list, m)
	if b.size += len(m.Data); b.size < batchBytes {
		return nil
	}
	return b.Send()
}

// Send sends the collected messages and clears the batch.
func (b *Batch) Send() error {
	list := b.list
	b.list, b.size = nil, 0
	return b.To.Send(list)
}

var (
	// ErrGone reports that the client no longer reads the stream.
	ErrGone = errors.New("nobody listens any more")
	// ErrBrokenOff reports that a stream ended before its last message. The client reconnects.
	ErrBrokenOff = errors.New("the stream broke off")
)

// Watcher reads the rows of a task's journal after a row, as they are written, until the task ends.
type Watcher interface {
	Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error]
}

// Follow calls tell for each row of a task's journal after a row, until the journal is complete.
// While the store is unavailable, it calls troubled and continues, unless troubled returns an
// error.
func Follow(ctx context.Context, w Watcher, task string, after int64, troubled func(error) error, tell func(engine.Row) error) error {
	for {
		var trouble error
		for row, err := range w.Watch(ctx, task, after) {
			if trouble = err; err != nil {
				break
			}
			after = row.Seq
			if err := tell(row); err != nil {
				return err
			}
		}
		switch kind := flow.ErrorKindOf(trouble); {
		case trouble == nil || kind == flow.NotFound:
			return trouble
		case kind == flow.Busy: // the member stops
			return ErrBrokenOff
		}
		if err := Outlast(ctx, trouble, troubled); err != nil {
			return err
		}
	}
}

// Outlast calls troubled and pauses before the store is read again. It returns the error of
// troubled or ctx.
func Outlast(ctx context.Context, trouble error, troubled func(error) error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the end of ctx caused the error
	}
	if err := troubled(trouble); err != nil {
		return err
	}
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Trouble is the note that listeners get while the store does not answer.
const Trouble = "the store does not answer: trying on"
