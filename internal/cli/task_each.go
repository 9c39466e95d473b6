package cli

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
)

// Limits of one request: number of tasks, and bytes.
const (
	startsAtOnce  = 500
	startsAtBytes = 1 << 20
)

// bulkStarter starts a task for each value of a file.
type bulkStarter struct {
	*taskStartCmd
	app     *app
	server  *client.Client
	values  *json.Decoder
	labels  map[string]string
	read    int // number of values read
	refused int
}

func (c *taskStartCmd) startEach(ctx context.Context, a *app, server *client.Client) error {
	file, err := a.openFile(c.Each)
	if err != nil {
		return err
	}
	defer file.Close()
	e := &bulkStarter{taskStartCmd: c, app: a, server: server, values: json.NewDecoder(withoutMark(file))}
	if e.labels, err = c.startLabels(); err != nil {
		return err
	}
	for more := true; more; {
		var starts []wire.Start
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
		fmt.Fprintf(a.stderr, "%s: %d of %d tasks were not started\n", a.name, e.refused, e.read)
		return errFailed
	}
	return nil
}

// withoutMark removes the byte order mark with which some editors begin a file.
func withoutMark(file io.Reader) io.Reader {
	r := bufio.NewReader(file)
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
		_, _ = r.Discard(len(mark)) // it is buffered
	}
	return r
}

// readBatch reads the starts for one request.
func (e *bulkStarter) readBatch() (starts []wire.Start, more bool, err error) {
	for bytes := 0; len(starts) < startsAtOnce && bytes < startsAtBytes; {
		var value json.RawMessage
		err := e.values.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return starts, false, nil
		case err != nil:
			return starts, false, fmt.Errorf("%s: value %d cannot be read: %w; those before it are started", e.Each, e.read+1, err)
		}
		e.read++
		bytes += len(value)
		start := wire.Start{Flow: e.Flow, Version: e.Version, Input: value, Labels: e.labels}
		if e.Key != "" {
			start.IdempotencyKey = e.Key + ":" + strconv.Itoa(e.read)
		}
		starts = append(starts, start)
	}
	return starts, true, nil
}

func (e *bulkStarter) startBatch(ctx context.Context, starts []wire.Start) error {
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

func (e *bulkStarter) printItem(n int, item *wire.StartedTask) error {
	switch p := item.Problem; {
	case p != nil:
		e.refused++
		p.Where, p.Hint = "", "" // they refer to the request, which the user has not written
		fmt.Fprintf(e.app.stderr, "%s: %s: value %d: %s\n", e.app.name, e.Each, n, explainRefusal(&client.Error{Problem: *p}))
		return nil
	case e.isJSON():
		return printLine(e.app.stdout, item)
	}
	fmt.Fprintln(e.app.stdout, sanitizeText(item.ID))
	return nil
}
