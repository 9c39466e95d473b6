package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// callers send requests all the time, each once. If no member listens at an address, the next one
// is used; every other missing answer is an error.
type callers struct {
	mu      sync.Mutex
	calls   int
	turned  int // number of refused connections
	errors  []string
	running sync.WaitGroup
}

// call runs n callers until ctx ends: they start tasks, read tickers, and wait for them.
func (c *testCluster) call(ctx context.Context, n int, tickers []string) *callers {
	cs := &callers{}
	for k := range n {
		cs.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				cs.ask(ctx, c.client, [...]errands.Request{
					{Method: "POST", Path: "/v1/tasks", Key: fmt.Sprintf("caller-%d-%d", k, i),
						Body: map[string]any{"flow": "choice", "params": map[string]any{"n": i % 100}}},
					{Method: "GET", Path: "/v1/tasks/" + tickers[i%len(tickers)]},
					{Method: "GET", Path: "/v1/tasks/" + tickers[i%len(tickers)] + "?wait_ms=300", Wait: 300 * time.Millisecond},
					{Method: "POST", Path: "/v1/tasks/" + tickers[i%len(tickers)] + "/signal",
						Key: fmt.Sprintf("signal-%d-%d", k, i), Body: map[string]any{"key": "heard",
							"value": i}},
				}[i%4])
				pause(ctx, 20*time.Millisecond)
			}
		})
	}
	return cs
}

// ask sends a request once, to the next member that listens. Requests in flight at the end of the
// callers are no errors.
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
