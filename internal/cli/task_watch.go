package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type taskWatchCmd struct {
	remoteFlags
	Task string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
}

// Help describes the exit codes.
func (taskWatchCmd) Help() string {
	return "Exits with 0 when the task has completed, with 1 when it failed or was canceled. --output json prints the events, one a line."
}

func (c *taskWatchCmd) Run(ctx context.Context, a *app) error {
	server, err := c.newClient()
	if err != nil {
		return err
	}
	if c.Task, err = taskID(ctx, server, c.Task); err != nil {
		return err
	}
	// following retries for ever, so a missing task is detected here
	if _, err := server.Task(ctx, c.Task); err != nil {
		return err
	}
	w := newWatch(a, server, c.Task, c.isJSON())
	if err := w.followTask(ctx); err != nil {
		return err
	}
	return w.exitError()
}

func newWatch(a *app, server *client.Client, task string, json bool) *taskWatch {
	w := &taskWatch{app: a, server: server, task: task, json: json, progress: newProgress()}
	if !json {
		w.screen = newScreen(a.stdout)
	}
	return w
}

// exitError returns the error that determines the exit code.
func (w *taskWatch) exitError() error {
	if w.progress.state != "completed" {
		return errFailed
	}
	return nil
}

// taskWatch shows the progress of a task to a user.
type taskWatch struct {
	*app
	server   *client.Client
	task     string
	json     bool
	screen   *screen // nil = plain lines
	progress *taskProgress

	idleSince       time.Time   // time of the last event
	waitReasons     []wire.Wait // reasons for waiting, once they were read
	waitsFetched    bool
	outageReason    string    // last reported reason why the member cannot do its work
	nextHealthCheck time.Time // time of the next check
}

type watchEvent struct {
	event wire.Event
	err   error
}

// quietFor is the time without events after which the reason is requested. healthTimeout is the
// timeout and the interval of the member's readiness check.
const (
	quietFor      = time.Second
	healthTimeout = 2 * time.Second
)

func (w *taskWatch) followTask(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan watchEvent)
	go w.readEvents(ctx, events)
	defer func() {
		stop()
		for range events { // wait until the reader has ended
		}
	}()
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	w.idleSince = time.Now()
	for { // read to the end of the stream: a task that has ended may have been retried
		select {
		case s, open := <-events:
			switch {
			case !open && w.progress.hasEnded():
				return w.printSummary()
			case !open:
				return errors.New("the server ended the stream before the task ended")
			case s.err != nil:
				return s.err
			}
			if err := w.handleEvent(&s.event); err != nil {
				return err
			}
		case <-ticker.C:
			w.checkIdle(ctx)
		case <-ctx.Done():
			return fmt.Errorf("not followed to its end; go on with troupe task watch %s", w.task)
		}
	}
}

// readEvents sends the events and closes the channel after the last one.
func (w *taskWatch) readEvents(ctx context.Context, events chan<- watchEvent) {
	defer close(events)
	for e, err := range w.server.Watch(ctx, w.task, "") {
		select {
		case events <- watchEvent{e, err}:
		case <-ctx.Done():
			return
		}
	}
}

func (w *taskWatch) handleEvent(e *wire.Event) error {
	w.progress.applyEvent(e)
	w.idleSince, w.waitsFetched, w.waitReasons = time.Now(), false, nil
	w.outageReason, w.nextHealthCheck = "", time.Time{}
	if w.json {
		return printLine(w.stdout, e)
	}
	if line := w.progress.logLine(e); w.screen == nil && line != "" {
		fmt.Fprintf(w.stdout, "%9s  %s\n", formatDuration(e.At.Sub(w.progress.began)), sanitizeText(line))
	}
	return nil
}

// askMember prints on stderr why the member cannot do its work, if there were no events for a
// while, and each time the reason changes.
func (w *taskWatch) askMember(ctx context.Context) {
	now := time.Now()
	if now.Sub(w.idleSince) < quietFor || now.Before(w.nextHealthCheck) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	err := w.server.Ready(ctx)
	w.nextHealthCheck = time.Now().Add(healthTimeout)
	why := ""
	if err != nil {
		why, _, _ = strings.Cut(explainError(err), "\n")
	}
	switch {
	case why == w.outageReason:
		return
	case why == "":
		fmt.Fprintln(w.stderr, "the member can do its work again")
	default:
		fmt.Fprintln(w.stderr, sanitizeText("waiting for the member: "+why))
	}
	w.outageReason = why
}

// checkIdle reads once why the task waits, and redraws.
func (w *taskWatch) checkIdle(ctx context.Context) {
	w.askMember(ctx)
	if !w.waitsFetched && !w.json && time.Since(w.idleSince) > quietFor {
		w.waitsFetched = true
		ctx, cancel := context.WithTimeout(ctx, quietFor)
		defer cancel()
		// optional: without it the steps are still shown
		if answer, err := w.server.Waiting(ctx, w.task); err == nil {
			w.waitReasons = answer.Waits
		}
		for _, wait := range w.waitReasons {
			if w.screen == nil {
				fmt.Fprintf(w.stdout, "%9s  waits: %s\n", "", sanitizeText(waitLine(&wait)))
			}
		}
	}
	if w.screen != nil {
		w.screen.drawLines(w.screenLines(time.Now()))
	}
}

// maxLines is the number of active steps that are drawn. Lines beyond the screen could not be
// erased.
const maxLines = 15

func (w *taskWatch) screenLines(now time.Time) []string {
	p := w.progress
	lines := []string{fmt.Sprintf("%s %s  %s  %d steps  %s", spinnerFrame(now), w.task, p.state, p.steps, formatDuration(now.Sub(p.began)))}
	steps := p.underWay()
	for _, s := range steps[:min(len(steps), maxLines)] {
		lines = append(lines, "  "+spinnerFrame(now)+" "+s.statusLine(now))
	}
	if more := len(steps) - maxLines; more > 0 {
		lines = append(lines, fmt.Sprintf("    … and %d more", more))
	}
	for _, wait := range w.waitReasons {
		lines = append(lines, "    waits: "+sanitizeText(waitLine(&wait)))
	}
	return lines
}

// printSummary prints the outcome of the task.
func (w *taskWatch) printSummary() error {
	if w.json {
		return nil
	}
	if w.screen != nil {
		w.screen.clear()
	}
	p := w.progress
	header, rows := p.nodeTable()
	if len(rows) > 0 {
		if err := printTable(w.stdout, header, rows); err != nil {
			return err
		}
		fmt.Fprintln(w.stdout)
	}
	where := ""
	if p.state == "failed" && p.failed.node != "" && !strings.HasPrefix(p.err, p.failed.String()+":") {
		where = " at " + p.failed.String()
	}
	fmt.Fprintln(w.stdout, sanitizeText(fmt.Sprintf("%s %s%s after %s in %s%s%s", w.task, p.state,
		where, formatCount(p.steps, "step"), formatDuration(p.ended.Sub(p.began)),
		formatFollowed(p.followed), withPrefix(": ", p.err))))
	return nil
}
