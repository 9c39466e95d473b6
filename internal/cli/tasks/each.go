package tasks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

// Limits of one request: number of tasks, and bytes.
const (
	startsAtOnce  = 500
	startsAtBytes = 1 << 20
)

// bulkStarter starts a task for each value of a file.
type bulkStarter struct {
	*taskStartCmd
	app     *console.App
	server  *client.Client
	values  *json.Decoder
	labels  map[string]string
	read    int // number of values read
	refused int
}

func (c *taskStartCmd) startEach(ctx context.Context, a *console.App, server *client.Client) error {
	file, err := a.OpenFile(c.Each)
	if err != nil {
		return err
	}
	defer file.Close()
	e := &bulkStarter{taskStartCmd: c, app: a, server: server, values: json.NewDecoder(withoutMark(file))}
	if e.labels, err = c.startLabels(); err != nil {
		return err
	}
	for more := true; more; {
		var starts []wire.StartRequest
		var wrong error
		starts, more, wrong = e.readBatch() // values before a fault are started
		if err := e.startBatch(ctx, starts); err != nil {
			return err
		}
		if wrong != nil {
			return wrong
		}
	}
	if e.refused > 0 {
		fmt.Fprintf(a.Stderr, "%s: %d of %d tasks were not started\n", a.Name, e.refused, e.read)
		return console.ErrFailed
	}
	return nil
}

// withoutMark removes the byte order mark with which some editors begin a file.
func withoutMark(file io.Reader) io.Reader {
	r := bufio.NewReader(file)
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
		_, _ = r.Discard(len(mark)) // the mark is in the buffer, so no error is possible
	}
	return r
}

// readBatch reads the starts for one request.
func (e *bulkStarter) readBatch() (starts []wire.StartRequest, more bool, err error) {
	for bytes := 0; len(starts) < startsAtOnce && bytes < startsAtBytes; {
		var value json.RawMessage
		err := e.values.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return starts, false, nil
		case err != nil:
			return starts, false, fmt.Errorf("%s: value %d is invalid: %w; the values before it are started", e.Each, e.read+1, err)
		}
		e.read++
		bytes += len(value)
		start := wire.StartRequest{Flow: e.Flow, Version: e.Version, Input: value, Labels: e.labels}
		if e.Key != "" {
			start.IdempotencyKey = e.Key + ":" + strconv.Itoa(e.read)
		}
		starts = append(starts, start)
	}
	return starts, true, nil
}

func (e *bulkStarter) startBatch(ctx context.Context, starts []wire.StartRequest) error {
	if len(starts) == 0 {
		return nil
	}
	first := e.read - len(starts) + 1
	items, err := e.server.StartAll(ctx, starts)
	if err != nil {
		return fmt.Errorf("%s: values %d to %d: %w", e.Each, first, e.read, err)
	}
	for i := range items {
		if err := e.printItem(first+i, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (e *bulkStarter) printItem(n int, item *wire.BatchStartResult) error {
	switch p := item.Problem; {
	case p != nil:
		e.refused++
		p.Field, p.Hint = "", "" // both describe the request, which the user has not written
		fmt.Fprintf(e.app.Stderr, "%s: %s: value %d: %s\n", e.app.Name, e.Each, n, console.ExplainRefusal(&client.Error{Problem: *p}))
		return nil
	case e.IsJSON():
		return console.PrintLine(e.app.Stdout, item)
	}
	fmt.Fprintln(e.app.Stdout, console.SanitizeText(item.ID))
	return nil
}
