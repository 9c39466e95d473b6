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
	remote
	Task string `arg:"" complete:"task" help:"Id of the task, or what it begins with."`
}

// Help says how it ends.
func (taskWatchCmd) Help() string {
	return "Exits with 0 when the task has completed, with 1 when it failed or was canceled. --output json prints the events, one a line."
}

func (c *taskWatchCmd) Run(ctx context.Context, a *app) error {
	server, err := c.client()
	if err != nil {
		return err
	}
	if c.Task, err = taskID(ctx, server, c.Task); err != nil {
		return err
	}
	if _, err := server.Task(ctx, c.Task); err != nil { // following goes on trying, so ask first
		return err
	}
	w := newWatch(a, server, c.Task, c.json())
	if err := w.run(ctx); err != nil {
		return err
	}
	return w.outcome()
}

func newWatch(a *app, server *client.Client, task string, json bool) *watch {
	w := &watch{app: a, server: server, task: task, json: json, progress: newProgress()}
	if !json {
		w.screen = newScreen(a.stdout)
	}
	return w
}

// outcome is what the exit status is made of.
func (w *watch) outcome() error {
	if w.progress.state != "completed" {
		return errFailed
	}
	return nil
}

// watch shows a task to somebody who looks on.
type watch struct {
	*app
	server   *client.Client
	task     string
	json     bool
	screen   *screen // nil = lines
	progress *progress

	quiet time.Time   // since when nothing has happened
	waits []wire.Wait // why, once it was asked
	asked bool
	away  string    // why the member cannot do its work, as was last said
	next  time.Time // when it is asked for that again
}

type seen struct {
	event wire.Event
	err   error
}

// quietFor is how long nothing must have happened until it is asked why, askFor how long and how often it is asked whether the member can do its work.
const (
	quietFor = time.Second
	askFor   = 2 * time.Second
)

func (w *watch) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan seen)
	go w.read(ctx, events)
	defer func() {
		stop()
		for range events { // wait until the reader has ended
		}
	}()
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	w.quiet = time.Now()
	for { // to the end of the stream: a task that has ended may have been retried
		select {
		case s, open := <-events:
			switch {
			case !open && w.progress.over():
				return w.finish()
			case !open:
				return errors.New("the server ended the stream before the task ended")
			case s.err != nil:
				return s.err
			}
			if err := w.take(&s.event); err != nil {
				return err
			}
		case <-ticker.C:
			w.idle(ctx)
		case <-ctx.Done():
			return fmt.Errorf("not followed to its end; go on with troupe task watch %s", w.task)
		}
	}
}

// read hands over the events and closes the channel behind the last one.
func (w *watch) read(ctx context.Context, events chan<- seen) {
	defer close(events)
	for e, err := range w.server.Watch(ctx, w.task, "") {
		select {
		case events <- seen{e, err}:
		case <-ctx.Done():
			return
		}
	}
}

func (w *watch) take(e *wire.Event) error {
	w.progress.apply(e)
	w.quiet, w.asked, w.waits = time.Now(), false, nil
	w.away, w.next = "", time.Time{}
	if w.json {
		return printLine(w.stdout, e)
	}
	if line := w.progress.tell(e); w.screen == nil && line != "" {
		fmt.Fprintf(w.stdout, "%9s  %s\n", span(e.At.Sub(w.progress.began)), clean(line))
	}
	return nil
}

// askMember says on stderr why the member cannot do its work, when nothing has happened for a while: whenever that changes.
func (w *watch) askMember(ctx context.Context) {
	now := time.Now()
	if now.Sub(w.quiet) < quietFor || now.Before(w.next) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	err := w.server.Ready(ctx)
	w.next = time.Now().Add(askFor)
	why := ""
	if err != nil {
		why, _, _ = strings.Cut(explain(err), "\n")
	}
	switch {
	case why == w.away:
		return
	case why == "":
		fmt.Fprintln(w.stderr, "the member can do its work again")
	default:
		fmt.Fprintln(w.stderr, clean("waiting for the member: "+why))
	}
	w.away = why
}

// idle asks why nothing happens, once, and draws.
func (w *watch) idle(ctx context.Context) {
	w.askMember(ctx)
	if !w.asked && !w.json && time.Since(w.quiet) > quietFor {
		w.asked = true
		ctx, cancel := context.WithTimeout(ctx, quietFor)
		defer cancel()
		if answer, err := w.server.Waiting(ctx, w.task); err == nil { // it is an extra: without it the steps are still shown
			w.waits = answer.Waits
		}
		for _, wait := range w.waits {
			if w.screen == nil {
				fmt.Fprintf(w.stdout, "%9s  waits: %s\n", "", clean(waitLine(&wait)))
			}
		}
	}
	if w.screen != nil {
		w.screen.draw(w.lines(time.Now()))
	}
}

// maxLines is how many steps under way are drawn: what does not fit on a screen cannot be erased.
const maxLines = 15

func (w *watch) lines(now time.Time) []string {
	p := w.progress
	lines := []string{fmt.Sprintf("%s %s  %s  %d steps  %s", spinner(now), w.task, p.state, p.steps, span(now.Sub(p.began)))}
	steps := p.underWay()
	for _, s := range steps[:min(len(steps), maxLines)] {
		lines = append(lines, "  "+spinner(now)+" "+s.line(now))
	}
	if more := len(steps) - maxLines; more > 0 {
		lines = append(lines, fmt.Sprintf("    … and %d more", more))
	}
	for _, wait := range w.waits {
		lines = append(lines, "    waits: "+clean(waitLine(&wait)))
	}
	return lines
}

// finish shows what became of it all.
func (w *watch) finish() error {
	if w.json {
		return nil
	}
	if w.screen != nil {
		w.screen.clear()
	}
	p := w.progress
	header, rows := p.table()
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
	fmt.Fprintln(w.stdout, clean(fmt.Sprintf("%s %s%s after %s in %s%s%s", w.task, p.state, where, counted(p.steps, "step"), span(p.ended.Sub(p.began)), followed(p.followed), after(": ", p.err))))
	return nil
}
