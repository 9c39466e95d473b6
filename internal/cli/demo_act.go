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

// act is one task of a demo.
type act struct {
	want flows.Expectation

	mu       sync.Mutex
	progress *progress
	out      *flows.Outcome
	done     bool
	surprise string // how it ended otherwise than it should
}

func newAct(e flows.Expectation) *act { return &act{want: e, progress: newProgress()} }

func (t *act) slug() string { return slugOf(t.want.File) }

// perform carries out all acts at once and shows how they get on until all have ended.
func perform(ctx context.Context, a *app, server *client.Client, acts []*act) {
	out := &sharedWriter{w: a.stdout}
	screen := newScreen(a.stdout)
	var all sync.WaitGroup
	for _, t := range acts {
		all.Go(func() {
			t.perform(ctx, server)
			if screen == nil {
				fmt.Fprintln(out, t.line(time.Now()))
			}
		})
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }() // the tasks end with ctx at the latest
	if screen == nil {
		<-ended
		return
	}
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	for {
		screen.draw(actLines(acts, time.Now()))
		select {
		case <-ticker.C:
		case <-ended:
			screen.clear()
			return
		}
	}
}

func actLines(acts []*act, now time.Time) []string {
	var lines []string
	for _, t := range acts {
		lines = append(lines, t.line(now))
	}
	return lines
}

// perform plays the task to its end and judges.
func (t *act) perform(ctx context.Context, server *client.Client) {
	out, err := t.want.Play(ctx, server, t.slug(), t.see)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done, t.out = true, out
	if t.surprise = t.want.Judge(out); err != nil {
		t.surprise = explain(err)
	}
}

func (t *act) see(e *wire.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.apply(e)
}

// line tells how the task gets on.
func (t *act) line(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.progress
	switch {
	case t.done:
		return fmt.Sprintf("%s %-22s %-10s %2d steps  %s", t.mark(), t.slug(), p.state, p.steps, span(p.ended.Sub(p.began)))
	case len(p.active) == 0:
		return fmt.Sprintf("%s %-22s", spinner(now), t.slug())
	}
	steps := p.underWay()
	return fmt.Sprintf("%s %-22s %s", spinner(now), t.slug(), steps[len(steps)-1].line(now))
}

func (t *act) mark() string {
	if t.surprise != "" {
		return "✗"
	}
	return "✓"
}

// row is the task in the table at the end.
func (t *act) row() []string {
	p := t.progress
	last := t.out.Error
	if t.out.State == "completed" {
		last = string(t.out.Result)
	}
	return []string{t.mark(), t.slug(), p.state, fmt.Sprint(p.steps), span(p.ended.Sub(p.began)), short(last, 44)}
}
