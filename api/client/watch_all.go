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

// Told is what WatchAll tells of a task: an event, or how it has ended.
type Told struct {
	Task  string
	Event *wire.Event
	End   *wire.End
}

// WatchAll gives the events of several tasks over one connection, each from behind an event on (""
// = from the beginning), and ends with the last of them. What is wrong with one task is an error
// that names it, and the others go on; an error without a task is the last thing told. A server
// follows at most 100 for one connection. Connections that break off are replaced as with Watch.
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
	after    map[string]string // of the tasks that go on
	failures int               // connections in a row that brought nothing
	finished bool              // nobody wants to hear more
	yield    func(Told, error) bool
}

const taskChannel = "task:"

// followConnection follows one connection to its end.
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
	defer func() { _ = conn.CloseNow() }() // what it was for is over
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

// maxMessage bounds what a server may say at once: an event holds an output and little more.
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
		told.End = &wire.End{}
		if err := json.Unmarshal(m.Data, told.End); err != nil {
			return messageReadError(err)
		}
		delete(w.after, task)
	case wire.StreamRefused:
		return w.handleRefusal(told, m.Data)
	case wire.StreamClosed:
		return w.handleClosed(task, m.Data)
	default: // a newer server may know others
		return nil
	}
	w.finished = !w.yield(told, nil)
	return nil
}

// handleRefusal tells what is wrong with one task, unless it may be right the next time.
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

// handleClosed is what remains of a task that was deleted; one that was interrupted is subscribed
// to again.
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
