package external

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Carrier carries out jobs of type outside by starters. It remembers what it was given: should a
// report be lost between two actors of its own member, the attempt is dispatched again, and no
// event tells so.
type Carrier struct {
	starters   Starters
	mu         sync.Mutex
	young, old map[string]bool // jobs that it was given
	since      time.Time       // the young ones
}

// How long a job is remembered, unless there are that many in the meantime.
const (
	givenMemory = 10 * time.Minute
	maxGiven    = 100_000
)

// Carrier has the starters carry out jobs.
func (s Starters) Carrier() *Carrier { return &Carrier{starters: s, young: map[string]bool{}} }

// Carry has a job begun.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	again := c.wasGiven(job.ID())
	return c.starters.startJob(ctx, job, job.Given > 0 || job.Again || again)
}

// wasGiven reports whether a job was given to it before.
func (c *Carrier) wasGiven(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.since) > givenMemory || len(c.young) >= maxGiven {
		c.young, c.old, c.since = map[string]bool{}, c.young, now
	}
	known := c.young[id] || c.old[id]
	c.young[id] = true
	return known
}
