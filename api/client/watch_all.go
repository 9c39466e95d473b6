package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/troupe-engine/troupe/api/wire"
)

// Told is an item of WatchAll: an event of a task, or its end.
type Told struct {
	Task  string
	Event *wire.Event
	End   *wire.TaskEnd
}

// WatchAll returns the events of several tasks over one connection, and ends with the last task.
// after maps each task to the event to start after; "" means the beginning. An error with a task
// concerns only that task. An error without a task is the last item. A server follows at most 100
// tasks per connection. Broken connections are replaced as in Watch.
func (c *Client) WatchAll(ctx context.Context, after map[string]string) iter.Seq2[Told, error] {
	return func(yield func(Told, error) bool) {
		w := &allWatcher{c: c, after: maps.Clone(after), yield: yield}
		for len(w.after) > 0 && !w.finished {
			turn := w.c.servers.currentTurn()
			err := w.followConnection(ctx, turn)
			w.c.servers.leaveServer(ctx, turn, err)
			switch {
			case w.finished || len(w.after) == 0:
				return
			case ctx.Err() != nil:
				err = ctx.Err()
			case !isFinal(err) && sleepContext(ctx, backOff(w.failures, err)):
				w.failures++
				continue
			}
			yield(Told{}, fmt.Errorf("watching %d tasks: %w", len(w.after), err))
			return
		}
	}
}

type allWatcher struct {
	c        *Client
	after    map[string]string // last event of each task that has not ended
	failures int               // consecutive connections without a message
	finished bool              // the caller has stopped reading
	yield    func(Told, error) bool
}

const taskChannel = "task:"

// followConnection reads messages from one connection until it ends.
func (w *allWatcher) followConnection(ctx context.Context, turn int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(w.c.opts.Silence, cancel)
	defer silent.Stop()
	alive := func() { silent.Reset(w.c.opts.Silence) }
	conn, err := w.c.dialSocket(ctx, turn, alive)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }() // the connection is no longer needed
	for _, task := range slices.Sorted(maps.Keys(w.after)) {
		request, err := encodeBody(wire.StreamRequest{Subscribe: &wire.Subscribe{Channel: taskChannel + task, After: w.after[task]}})
		if err != nil {
			return err
		}
		if err := conn.Write(ctx, websocket.MessageText, request); err != nil {
			return err
		}
	}
	for len(w.after) > 0 && !w.finished {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		alive()
		if err := w.handleMessage(text); err != nil {
			return err
		}
	}
	return nil
}

// maxMessage bounds the bytes of one message, which is little more than one output of a step.
const maxMessage = 64 << 20

func (c *Client) dialSocket(ctx context.Context, turn int64, alive func()) (*websocket.Conn, error) {
	opts := &websocket.DialOptions{HTTPClient: c.opts.HTTPClient, HTTPHeader: http.Header{},
		OnPingReceived: func(context.Context, []byte) bool { alive(); return true }}
	if c.opts.Token != "" {
		opts.HTTPHeader.Set("Authorization", "Bearer "+c.opts.Token)
	}
	conn, resp, err := websocket.Dial(ctx, c.servers.addressAt(turn)+"/v1/ws", opts)
	if err != nil && resp != nil && resp.StatusCode >= 300 {
		return nil, readError(resp)
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxMessage)
	return conn, nil
}

func (w *allWatcher) handleMessage(text []byte) error {
	var m wire.StreamMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return messageReadError(err)
	}
	task := strings.TrimPrefix(m.Channel, taskChannel)
	told := Told{Task: task}
	switch m.Event {
	case wire.StreamEvent:
		told.Event = &wire.Event{}
		if err := json.Unmarshal(m.Data, told.Event); err != nil {
			return messageReadError(err)
		}
		w.after[task], w.failures = m.ID, 0
	case wire.StreamEnd:
		told.End = &wire.TaskEnd{}
		if err := json.Unmarshal(m.Data, told.End); err != nil {
			return messageReadError(err)
		}
		delete(w.after, task)
	case wire.StreamRejected:
		return w.handleRefusal(told, m.Data)
	case wire.StreamClosed:
		return w.handleClosed(task, m.Data)
	default: // a newer server may send other kinds
		return nil
	}
	w.finished = !w.yield(told, nil)
	return nil
}

// handleRefusal yields the error of a task, unless a retry may succeed.
func (w *allWatcher) handleRefusal(told Told, data []byte) error {
	e := &Error{}
	if err := json.Unmarshal(data, &e.Problem); err != nil {
		return messageReadError(err)
	}
	if _, ours := w.after[told.Task]; !ours || !isFinal(e) {
		return e
	}
	delete(w.after, told.Task)
	w.finished = !w.yield(told, fmt.Errorf("watching %s: %w", told.Task, e))
	return nil
}

// handleClosed handles the end of a task's channel: a deleted task ends, and an interrupted one is
// subscribed again.
func (w *allWatcher) handleClosed(task string, data []byte) error {
	var closed wire.Closed
	if err := json.Unmarshal(data, &closed); err != nil {
		return messageReadError(err)
	}
	if _, goesOn := w.after[task]; goesOn && closed.Reason == wire.ClosedInterrupted {
		return errBroken
	}
	delete(w.after, task)
	return nil
}

func messageReadError(err error) error {
	return errors.Join(errBroken, fmt.Errorf("a message cannot be read: %w", err))
}
