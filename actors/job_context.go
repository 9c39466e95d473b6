package actors

import (
	"context"
	"sync"
	"time"
)

// jobContext is the context of a job. Unlike one of the standard library's it costs next to nothing
// as long as nobody waits for its end, which few functions do: only then one is made that ends with
// the member's.
type jobContext struct {
	member   context.Context
	mu       sync.Mutex
	canceled bool
	inner    context.Context // nil until somebody waits
	cancel   context.CancelFunc
}

func (c *jobContext) Deadline() (time.Time, bool) { return c.member.Deadline() }

func (c *jobContext) Done() <-chan struct{} { return c.innerContext().Done() }

// Value answers the standard library, too, when it derives a context from this one.
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

// endJob calls the job off, or says that it is over.
func (c *jobContext) endJob() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	if c.cancel != nil {
		c.cancel()
	}
}
