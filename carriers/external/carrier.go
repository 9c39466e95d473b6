package external

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Carrier carries out jobs of type external with starters. It remembers recent jobs to detect a
// repeated dispatch after a lost report.
type Carrier struct {
	starters   Starters
	mu         sync.Mutex
	young, old map[string]bool // ids of recent jobs, in two generations
	since      time.Time       // start of the young generation
}

// givenMemory is how long a job is remembered. maxGiven bounds the number of jobs, which may
// shorten that time.
const (
	givenMemory = 10 * time.Minute
	maxGiven    = 100_000
)

// Carrier returns a carrier that uses the starters.
func (s Starters) Carrier() *Carrier { return &Carrier{starters: s, young: map[string]bool{}} }

// Carry starts a job in the other system.
func (c *Carrier) Carry(ctx context.Context, job flow.Job) flow.Report {
	again := c.wasGiven(job.ID())
	return c.starters.startJob(ctx, job, job.Given > 0 || job.Again || again)
}

// wasGiven reports whether the carrier had the job before, and remembers the job.
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
