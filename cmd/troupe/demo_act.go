package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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
	id       string
	progress *progress
	shared   json.RawMessage
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

// perform starts the task, sends its signals, follows it to its end, and judges.
func (t *act) perform(ctx context.Context, server *client.Client) {
	err := t.play(ctx, server)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = true
	if err != nil {
		t.surprise = explain(err)
		return
	}
	t.surprise = t.judge()
}

func (t *act) play(ctx context.Context, server *client.Client) error {
	started, err := server.Start(ctx, wire.Start{Flow: t.slug(), Params: t.want.Params})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.id = started.ID
	t.mu.Unlock()
	var signals sync.WaitGroup
	failed := make([]error, len(t.want.Signals))
	for i, s := range t.want.Signals {
		signals.Go(func() { failed[i] = sendSignal(ctx, server, started.ID, s) })
	}
	for e, err := range server.Watch(ctx, started.ID, "") {
		if err != nil {
			return errors.Join(err, wait(&signals, failed))
		}
		t.mu.Lock()
		t.progress.apply(&e)
		t.mu.Unlock()
	}
	task, err := server.Task(ctx, started.ID)
	if err := errors.Join(err, wait(&signals, failed)); err != nil {
		return err
	}
	t.mu.Lock()
	t.shared = task.Shared
	t.mu.Unlock()
	return nil
}

func wait(all *sync.WaitGroup, failed []error) error {
	all.Wait()
	return errors.Join(failed...)
}

func sendSignal(ctx context.Context, server *client.Client, task string, s flows.Signal) error {
	select {
	case <-time.After(time.Duration(s.AfterMS) * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := server.Signal(ctx, task, s.Key, s.Value)
	return err
}

// judge compares the end with what was expected; "" = it is the same.
func (t *act) judge() string {
	if t.progress.state != t.want.State {
		return fmt.Sprintf("ended %s, not %s: %s", t.progress.state, t.want.State, t.progress.err)
	}
	var got, want any
	if json.Unmarshal(t.shared, &got) != nil || json.Unmarshal(t.want.Shared, &want) != nil || !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("shared is %s, not %s", t.shared, t.want.Shared)
	}
	return ""
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
	return []string{t.mark(), t.slug(), p.state, fmt.Sprint(p.steps), span(p.ended.Sub(p.began)), short(string(t.shared), 44)}
}
