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

// Help says how it ends.
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
	if _, err := server.Task(ctx, c.Task); err != nil { // following goes on trying, so ask first
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

// exitError is what the exit status is made of.
func (w *taskWatch) exitError() error {
	if w.progress.state != "completed" {
		return errFailed
	}
	return nil
}

// taskWatch shows a task to somebody who looks on.
type taskWatch struct {
	*app
	server   *client.Client
	task     string
	json     bool
	screen   *screen // nil = lines
	progress *taskProgress

	idleSince       time.Time   // since when nothing has happened
	waitReasons     []wire.Wait // why, once it was asked
	waitsFetched    bool
	outageReason    string    // why the member cannot do its work, as was last said
	nextHealthCheck time.Time // when it is asked for that again
}

type watchEvent struct {
	event wire.Event
	err   error
}

// quietFor is how long nothing must have happened until it is asked why, healthTimeout how long and
// how often it is asked whether the member can do its work.
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
	for { // to the end of the stream: a task that has ended may have been retried
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

// readEvents hands over the events and closes the channel behind the last one.
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

// askMember says on stderr why the member cannot do its work, when nothing has happened for a
// while: whenever that changes.
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

// checkIdle asks why nothing happens, once, and draws.
func (w *taskWatch) checkIdle(ctx context.Context) {
	w.askMember(ctx)
	if !w.waitsFetched && !w.json && time.Since(w.idleSince) > quietFor {
		w.waitsFetched = true
		ctx, cancel := context.WithTimeout(ctx, quietFor)
		defer cancel()
		if answer, err := w.server.Waiting(ctx, w.task); err == nil { // it is an extra: without it the steps are still shown
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

// maxLines is how many steps under way are drawn: what does not fit on a screen cannot be erased.
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

// printSummary shows what became of it all.
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
	fmt.Fprintln(w.stdout, sanitizeText(fmt.Sprintf("%s %s%s after %s in %s%s%s", w.task, p.state, where, formatCount(p.steps, "step"), formatDuration(p.ended.Sub(p.began)), formatFollowed(p.followed), withPrefix(": ", p.err))))
	return nil
}
