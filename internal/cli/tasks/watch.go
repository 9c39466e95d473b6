package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/cli/console"
)

type taskWatchCmd struct {
	console.RemoteFlags
	Task      string `arg:"" complete:"task" help:"Task ID or unique prefix."`
	WaitUntil string `placeholder:"NODE" help:"Wait for the end of this step only, and print its output instead of the progress. NODE#2 is its second visit; in a function it is the name of a step."`
}

// Help describes the exit codes.
func (taskWatchCmd) Help() string {
	return "Exits with 0 if the task completed, and with 1 if it failed or was canceled. --output json prints one event per line.\n\n" +
		"With --wait-until it exits with 0 if the step completed, and with 1 if it failed, was skipped, or the task ended without it."
}

func (c *taskWatchCmd) Run(ctx context.Context, a *console.App) error {
	server, err := c.NewClient()
	if err != nil {
		return err
	}
	if c.Task, err = console.FindTaskID(ctx, server, c.Task); err != nil {
		return err
	}
	if c.WaitUntil != "" {
		return waitForStep(ctx, a, c.OutputFlag, server, c.Task, c.WaitUntil)
	}
	// the reading of events retries for ever, so a missing task is detected here
	if _, err := server.Task(ctx, c.Task); err != nil {
		return err
	}
	w := NewWatch(a, server, c.Task, c.IsJSON())
	if err := w.FollowTask(ctx); err != nil {
		return err
	}
	return w.ExitError()
}

// NewWatch returns a watch of a task.
func NewWatch(a *console.App, server *client.Client, task string, json bool) *Watch {
	w := &Watch{App: a, server: server, task: task, json: json, progress: NewProgress()}
	if !json {
		w.screen = console.NewScreen(a.Stdout)
	}
	return w
}

// ExitError returns the error that determines the exit code.
func (w *Watch) ExitError() error {
	if w.progress.State != "completed" {
		return console.ErrFailed
	}
	return nil
}

// Watch shows the progress of a task to a user.
type Watch struct {
	*console.App
	server   *client.Client
	task     string
	json     bool
	screen   *console.Screen // nil means plain lines
	progress *Progress

	idleSince       time.Time         // time of the last event
	waitReasons     []wire.WaitReason // reasons for waiting, once they were read
	waitsFetched    bool
	outageReason    string    // last reported reason why the member is not ready
	nextHealthCheck time.Time // time of the next check
}

type watchEvent struct {
	event wire.Event
	err   error
}

// quietFor is the time without events after which the reason for waiting is requested.
// healthTimeout is the timeout and the interval of the member's readiness check.
const (
	quietFor      = time.Second
	healthTimeout = 2 * time.Second
)

// FollowTask shows the progress until the task has ended.
func (w *Watch) FollowTask(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan watchEvent)
	go w.readEvents(ctx, events)
	defer func() {
		stop()
		for range events { // wait until the reader has ended
		}
	}()
	ticker := time.NewTicker(console.FrameInterval)
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
			return fmt.Errorf("interrupted; continue with troupe task watch %s", w.task)
		}
	}
}

// readEvents sends the events and closes the channel after the last one.
func (w *Watch) readEvents(ctx context.Context, events chan<- watchEvent) {
	defer close(events)
	for e, err := range w.server.Watch(ctx, w.task, "") {
		select {
		case events <- watchEvent{e, err}:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) handleEvent(e *wire.Event) error {
	w.progress.ApplyEvent(e)
	w.idleSince, w.waitsFetched, w.waitReasons = time.Now(), false, nil
	w.outageReason, w.nextHealthCheck = "", time.Time{}
	if w.json {
		return console.PrintLine(w.Stdout, e)
	}
	if line := w.progress.logLine(e); w.screen == nil && line != "" {
		fmt.Fprintf(w.Stdout, "%9s  %s\n", console.FormatDuration(e.At.Sub(w.progress.Began)), console.SanitizeText(line))
	}
	return nil
}

// askMember prints on stderr why the member is not ready, after a while without events, and again
// when the reason changes.
func (w *Watch) askMember(ctx context.Context) {
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
		why, _, _ = strings.Cut(console.ExplainError(err), "\n")
	}
	switch {
	case why == w.outageReason:
		return
	case why == "":
		fmt.Fprintln(w.Stderr, "the member is ready again")
	default:
		fmt.Fprintln(w.Stderr, console.SanitizeText("waiting for the member: "+why))
	}
	w.outageReason = why
}

// checkIdle reads the reasons for waiting once after a quiet time, and redraws.
func (w *Watch) checkIdle(ctx context.Context) {
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
				fmt.Fprintf(w.Stdout, "%9s  waiting: %s\n", "", console.SanitizeText(waitLine(&wait)))
			}
		}
	}
	if w.screen != nil {
		w.screen.DrawLines(w.screenLines(time.Now()))
	}
}

// maxLines is the number of active steps that are drawn. Lines beyond the screen could not be
// erased.
const maxLines = 15

func (w *Watch) screenLines(now time.Time) []string {
	p := w.progress
	lines := []string{fmt.Sprintf("%s %s  %s  %d steps  %s", console.SpinnerFrame(now), w.task, p.State,
		p.Steps, console.FormatDuration(now.Sub(p.Began)))}
	steps := p.ListActive()
	for _, s := range steps[:min(len(steps), maxLines)] {
		lines = append(lines, "  "+console.SpinnerFrame(now)+" "+s.StatusLine(now))
	}
	if more := len(steps) - maxLines; more > 0 {
		lines = append(lines, fmt.Sprintf("    … and %d more", more))
	}
	for _, wait := range w.waitReasons {
		lines = append(lines, "    waiting: "+console.SanitizeText(waitLine(&wait)))
	}
	return lines
}

// printSummary prints the outcome of the task.
func (w *Watch) printSummary() error {
	if w.json {
		return nil
	}
	if w.screen != nil {
		w.screen.Clear()
	}
	p := w.progress
	header, rows := p.nodeTable()
	if len(rows) > 0 {
		if err := console.PrintTable(w.Stdout, header, rows); err != nil {
			return err
		}
		fmt.Fprintln(w.Stdout)
	}
	where := ""
	if p.State == "failed" && p.failed.node != "" && !strings.HasPrefix(p.err, p.failed.String()+":") {
		where = " at " + p.failed.String()
	}
	fmt.Fprintln(w.Stdout, console.SanitizeText(fmt.Sprintf("%s %s%s after %s in %s%s%s", w.task, p.State,
		where, console.FormatCount(p.Steps, "step"), console.FormatDuration(p.Ended.Sub(p.Began)),
		console.FormatFollowed(p.followed), console.AddPrefix(": ", p.err))))
	return nil
}
