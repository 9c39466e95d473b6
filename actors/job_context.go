package actors

import (
	"context"
	"sync"
	"time"
)

// jobContext is the context of a job. A standard context is created only when a caller waits for
// its end, which is rare, so most jobs avoid its cost. The context also ends with the member.
type jobContext struct {
	member   context.Context
	mu       sync.Mutex
	canceled bool
	inner    context.Context // nil until a caller waits
	cancel   context.CancelFunc
}

func (c *jobContext) Deadline() (time.Time, bool) { return c.member.Deadline() }

func (c *jobContext) Done() <-chan struct{} { return c.innerContext().Done() }

// Value implements context.Context. The standard library calls it when it derives a context from
// this one.
func (c *jobContext) Value(key any) any { return c.innerContext().Value(key) }

func (c *jobContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.canceled {
		return context.Canceled
	}
	return c.member.Err()
}

func (c *jobContext) innerContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancel(c.member)
		if c.canceled {
			c.cancel()
		}
	}
	return c.inner
}

// endJob ends the context because the job was canceled or has ended.
func (c *jobContext) endJob() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	if c.cancel != nil {
		c.cancel()
	}
}
