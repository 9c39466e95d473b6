package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// Watch returns a task's events after an event as they happen, and ends with the task. after ""
// means from the beginning. Watch replaces a broken or silent connection, using the next member if
// there are several, and continues after the last event. It ends with an error if the server
// refuses or ctx ends.
func (c *Client) Watch(ctx context.Context, task, after string) iter.Seq2[wire.Event, error] {
	return followStream(ctx, c, "watching "+task, taskPath(task, "/stream"), nil, after, func(e *wire.Event) string { return e.ID })
}

// followStream returns the messages of a stream. Each message has an id after which the stream can
// resume.
func followStream[T any](ctx context.Context, c *Client, what, path string, query url.Values,
	after string, id func(*T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		w := &streamWatcher[T]{c: c, path: path, query: query, after: after, id: id, yield: yield}
		for {
			turn := w.c.servers.currentTurn()
			err := w.followConnection(ctx, turn)
			if w.finished {
				return
			}
			w.c.servers.leaveServer(ctx, turn, err)
			if ctx.Err() != nil {
				err = ctx.Err()
			} else if !isFinal(err) && sleepContext(ctx, backOff(w.failures, err)) {
				w.failures++
				continue
			}
			var none T
			yield(none, fmt.Errorf("%s: %w", what, err))
			return
		}
	}
}

// isFinal reports whether an error makes reconnecting useless.
func isFinal(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && !isTemporary(refused.Status) && refused.Status < http.StatusInternalServerError
}

type streamWatcher[T any] struct {
	c        *Client
	path     string
	query    url.Values
	after    string
	id       func(*T) string
	failures int  // consecutive connections without a message
	finished bool // the task has ended, or the caller has stopped reading
	yield    func(T, error) bool
}

// errBroken reports that the stream ended without its final message.
var errBroken = errors.New("the stream broke off")

// followConnection reads messages from one connection until it ends.
func (w *streamWatcher[T]) followConnection(ctx context.Context, turn int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(w.c.opts.Silence, cancel)
	defer silent.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if w.after != "" {
		header.Set("Last-Event-ID", w.after)
	}
	resp, err := w.c.sendCall(ctx, turn, apiCall{method: http.MethodGet, path: w.path, query: w.query, header: header})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for {
		kind, data, err := readMessage(in, func() { silent.Reset(w.c.opts.Silence) })
		if err != nil {
			return err
		}
		if err := w.handleMessage(kind, data); err != nil || w.finished {
			return err
		}
	}
}

func (w *streamWatcher[T]) handleMessage(kind string, data []byte) error {
	switch {
	case kind == "end":
		w.finished = true
		return nil
	case kind != "" || len(data) == 0: // a newer server may send other kinds of messages
		return nil
	}
	var e T
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: a message cannot be read: %w", errBroken, err)
	}
	w.after, w.failures = w.id(&e), 0
	w.finished = !w.yield(e, nil)
	return nil
}

// readMessage reads one message, which ends with an empty line. It drops an incomplete message.
func readMessage(in *bufio.Reader, alive func()) (kind string, data []byte, err error) {
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return "", nil, errBroken
		}
		if err != nil {
			return "", nil, err
		}
		alive()
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return kind, data, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			data = append(data, value...)
		}
	}
}
