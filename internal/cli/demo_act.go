package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/examples/flows"
)

// demoTask is one task of a demo.
type demoTask struct {
	want flows.Expectation

	mu       sync.Mutex
	progress *taskProgress
	out      *flows.Outcome
	done     bool
	mismatch string // difference from the expected end; "" if there is none
}

func newAct(e flows.Expectation) *demoTask { return &demoTask{want: e, progress: newProgress()} }

func (t *demoTask) flowSlug() string { return slugOf(t.want.File) }

// runDemoTasks runs all tasks at once and shows their progress until all have ended.
func runDemoTasks(ctx context.Context, a *app, server *client.Client, acts []*demoTask) {
	out := &sharedWriter{w: a.stdout}
	screen := newScreen(a.stdout)
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
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	for {
		screen.drawLines(actLines(acts, time.Now()))
		select {
		case <-ticker.C:
		case <-ended:
			screen.clear()
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
		t.mismatch = explainError(err)
	}
}

func (t *demoTask) recordEvent(e *wire.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.applyEvent(e)
}

// statusLine describes the progress of the task.
func (t *demoTask) statusLine(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.progress
	switch {
	case t.done:
		return fmt.Sprintf("%s %-22s %-10s %2d steps  %s", t.resultMark(), t.flowSlug(), p.state,
			p.steps, formatDuration(p.ended.Sub(p.began)))
	case len(p.active) == 0:
		return fmt.Sprintf("%s %-22s", spinnerFrame(now), t.flowSlug())
	}
	steps := p.underWay()
	return fmt.Sprintf("%s %-22s %s", spinnerFrame(now), t.flowSlug(), steps[len(steps)-1].statusLine(now))
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
	return []string{t.resultMark(), t.flowSlug(), p.state, fmt.Sprint(p.steps),
		formatDuration(p.ended.Sub(p.began)), truncateText(last, 44)}
}
