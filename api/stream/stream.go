// Package stream is how a member tells what happens as it happens: to whom (Listener), over what
// (server-sent events here, a WebSocket in /v1), from where on, and for how long a request may
// stay.
//
// Promises: whoever listens slowly costs one row of a journal and delays nobody; a stream does not
// end because the store does not answer for a while; whoever stays is told when the server begins
// to leave, and waited for.
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

// Message is one of a stream. What tells a stream's messages does not know how they travel.
type Message struct {
	ID    string // where to take the stream up again behind it; "" = behind the one before
	Event string
	Data  json.RawMessage // on one line
}

// Listener is who a stream is for. Its errors are ErrGone.
type Listener interface {
	// Open begins the stream, if that has not been done. The first message does so, too.
	Open() error
	Send(list []Message) error
	// Note tells people who look at the stream why it is silent.
	Note(text string) error
}

// Batch gathers messages for a listener and gives them on before they take much memory: a row of a
// journal may hold a thousand large ones.
type Batch struct {
	To   Listener
	list []Message
	size int
}

// batchBytes is how much is gathered at most, and one message.
const batchBytes = 64 << 10

// Add gives on what was gathered when it has become enough.
func (b *Batch) Add(m Message) error {
	b.list = append(b.list, m)
	if b.size += len(m.Data); b.size < batchBytes {
		return nil
	}
	return b.Send()
}

// Send gives on what was gathered.
func (b *Batch) Send() error {
	list := b.list
	b.list, b.size = nil, 0
	return b.To.Send(list)
}

var (
	// ErrGone reports that the reader of the stream is gone.
	ErrGone = errors.New("nobody listens any more")
	// ErrBrokenOff reports that a stream ended although more may come. The reader connects again.
	ErrBrokenOff = errors.New("the stream broke off")
)

// Watcher reads a task's journal from a position on, as it grows; it ends with the task.
type Watcher interface {
	Watch(ctx context.Context, task string, after int64) iter.Seq2[engine.Row, error]
}

// Follow calls tell with the rows of a task's journal behind a position until there is nothing more
// to come. It does not end because the store does not answer for a while: troubled hears of that,
// and may end it with an error.
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
		case kind == flow.Busy: // the member goes
			return ErrBrokenOff
		}
		if err := Outlast(ctx, trouble, troubled); err != nil {
			return err
		}
	}
}

// Outlast waits a little before the store is asked again.
func Outlast(ctx context.Context, trouble error, troubled func(error) error) error {
	if ctx.Err() != nil {
		return ctx.Err() // that is why
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

// Trouble is what a listener reads while the store does not answer.
const Trouble = "the store does not answer: trying on"
