package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/errands"
)

// callers ask all the time, each request once: whoever finds nobody at an address asks at the next
// one, and everything else that is no answer is an error.
type callers struct {
	mu      sync.Mutex
	calls   int
	turned  int // away: nobody listened there
	errors  []string
	running sync.WaitGroup
}

// call has n callers ask until ctx ends: they start tasks, look at tickers, and wait for them.
func (c *testCluster) call(ctx context.Context, n int, tickers []string) *callers {
	cs := &callers{}
	for k := range n {
		cs.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				cs.ask(ctx, c.client, [...]errands.Request{
					{Method: "POST", Path: "/v1/tasks", Key: fmt.Sprintf("caller-%d-%d", k, i), Body: map[string]any{"flow": "choice", "params": map[string]any{"n": i % 100}}},
					{Method: "GET", Path: "/v1/tasks/" + tickers[i%len(tickers)]},
					{Method: "GET", Path: "/v1/tasks/" + tickers[i%len(tickers)] + "?wait_ms=300", Wait: 300 * time.Millisecond},
					{Method: "POST", Path: "/v1/tasks/" + tickers[i%len(tickers)] + "/signal", Key: fmt.Sprintf("signal-%d-%d", k, i), Body: map[string]any{"key": "heard", "value": i}},
				}[i%4])
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	return cs
}

// ask asks once, at the next member that listens. What is under way when callers end is nobody's
// error.
func (cs *callers) ask(ctx context.Context, c *errands.Client, r errands.Request) {
	for range len(c.Bases) {
		begun := time.Now()
		status, answer, err := c.Send(ctx, r)
		var dial *net.OpError
		away := errors.As(err, &dial) && dial.Op == "dial"
		cs.note(func() {
			switch {
			case ctx.Err() != nil:
			case away:
				cs.turned++
			case err != nil:
				cs.errors = append(cs.errors, fmt.Sprintf("%s %s after %v: %v", r.Method, r.Path, time.Since(begun), err))
			case status >= 300:
				cs.errors = append(cs.errors, fmt.Sprintf("%s %s after %v: %d %.200s", r.Method, r.Path, time.Since(begun), status, answer))
			}
		})
		if !away {
			break
		}
	}
	cs.note(func() { cs.calls++ })
}

func (cs *callers) note(what func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	what()
}
