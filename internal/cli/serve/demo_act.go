package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	examples "github.com/troupe-engine/troupe/examples/flows"
	"github.com/troupe-engine/troupe/internal/cli/console"
	"github.com/troupe-engine/troupe/internal/cli/flows"
	"github.com/troupe-engine/troupe/internal/cli/tasks"
)

// demoTask is one task of a demo.
type demoTask struct {
	want examples.Expectation

	mu       sync.Mutex
	progress *tasks.Progress
	out      *examples.Outcome
	done     bool
	mismatch string // difference from the expected end; "" if there is none
}

func newAct(e examples.Expectation) *demoTask {
	return &demoTask{want: e, progress: tasks.NewProgress()}
}

func (t *demoTask) flowSlug() string { return flows.SlugOf(t.want.File) }

// runDemoTasks runs all tasks at once and shows their progress until all have ended.
func runDemoTasks(ctx context.Context, a *console.App, server *client.Client, acts []*demoTask) {
	out := &sharedWriter{w: a.Stdout}
	screen := console.NewScreen(a.Stdout)
	var all sync.WaitGroup
	for _, t := range acts {
		all.Go(func() {
			t.runToEnd(ctx, server)
			if screen == nil {
				fmt.Fprintln(out, t.statusLine(time.Now()))
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }() // the tasks end at the latest when ctx ends
	if screen == nil {
		<-ended
		return
	}
	ticker := time.NewTicker(console.FrameInterval)
	defer ticker.Stop()
	for {
		screen.DrawLines(actLines(acts, time.Now()))
		select {
		case <-ticker.C:
		case <-ended:
			screen.Clear()
			return
		}
	}
}

func actLines(acts []*demoTask, now time.Time) []string {
	var lines []string
	for _, t := range acts {
		lines = append(lines, t.statusLine(now))
	}
	return lines
}

// runToEnd runs the task to its end and compares the result with the expected one.
func (t *demoTask) runToEnd(ctx context.Context, server *client.Client) {
	out, err := t.want.Play(ctx, server, t.flowSlug(), t.recordEvent)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.out = true, out
	if t.mismatch = t.want.Judge(out); err != nil {
		t.mismatch = console.ExplainError(err)
	}
}

func (t *demoTask) recordEvent(e *wire.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.ApplyEvent(e)
}

// StatusLine describes the progress of the task.
func (t *demoTask) statusLine(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.progress
	switch {
	case t.done:
		return fmt.Sprintf("%s %-22s %-10s %2d steps  %s", t.resultMark(), t.flowSlug(), p.State,
			p.Steps, console.FormatDuration(p.Ended.Sub(p.Began)))
	case len(p.Active) == 0:
		return fmt.Sprintf("%s %-22s", console.SpinnerFrame(now), t.flowSlug())
	}
	steps := p.ListActive()
	return fmt.Sprintf("%s %-22s %s", console.SpinnerFrame(now), t.flowSlug(), steps[len(steps)-1].StatusLine(now))
}

func (t *demoTask) resultMark() string {
	if t.mismatch != "" {
		return "✗"
	}
	return "✓"
}

// summaryRow returns the task's row of the final table.
func (t *demoTask) summaryRow() []string {
	p := t.progress
	last := t.out.Error
	if t.out.State == "completed" {
		last = string(t.out.Result)
	}
	return []string{t.resultMark(), t.flowSlug(), p.State, fmt.Sprint(p.Steps),
		console.FormatDuration(p.Ended.Sub(p.Began)), console.TruncateText(last, 44)}
}
