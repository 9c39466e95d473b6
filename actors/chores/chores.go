// Package chores runs the periodic work of a member, such as the deletion of old tasks. Chores have
// no state of their own.
package chores

import (
	"context"
	"log/slog"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/persistence"
)

// Chore is periodic work on data beyond an age.
type Chore struct {
	Name string // for logs
	Age  time.Duration
	// Do handles a batch of the data from before a time in Unix milliseconds. more reports whether
	// more such data may exist.
	Do func(ctx context.Context, before int64) (more bool, err error)
}

// retentionBatch is how many expired rows one statement deletes. retentionPause is the pause before
// the next batch.
const (
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// sweepEvery returns the pause between searches for expired data: a tenth of the age, but at least
// a second and at most an hour.
func sweepEvery(age time.Duration) time.Duration {
	return min(max(age/10, time.Second), time.Hour)
}

// retentionShard is the shard whose owner does the chores for all members. Other members check
// every ownerRecheck whether they own it now. So a new owner starts its chores soon.
const (
	retentionShard = 0
	ownerRecheck   = 10 * time.Second
)

// Chores runs the chores of a member.
type Chores struct{ cfg Config }

// Config configures the chores of a member.
type Config struct {
	Store     Store
	Shards    interface{ HasShard(shard int) bool }
	Now       func() int64 // the store's time in Unix milliseconds
	Work      *background.Work
	Log       *slog.Logger
	Retention time.Duration // how long ended tasks are kept; negative means forever
	Others    []Chore       // additional chores
}

// Store is the part of the store that chores need.
type Store interface {
	DeleteEnded(ctx context.Context, before int64, limit int) (int, error)
	DeleteStats(ctx context.Context, width, before int64, limit int) (int, error)
	ForgetKeys(ctx context.Context, limit int) (int, error)
	ForgetDeliveries(ctx context.Context, now int64, limit int) (int, error)
}

// New creates the chores of a member.
func New(cfg Config) *Chores { return &Chores{cfg: cfg} }

// StartAll starts all chores.
func (c *Chores) StartAll() {
	if c.cfg.Retention >= 0 {
		c.repeatChore(Chore{Name: "ended tasks", Age: c.cfg.Retention, Do: c.deleteEnded})
	}
	c.repeatChore(c.oldStats("statistics by minute", persistence.StatsMinute, minutesKept))
	c.repeatChore(c.oldStats("statistics by hour", persistence.StatsHour, hoursKept))
	c.repeatChore(Chore{Name: "keys that nobody asks for", Age: persistence.KeyForgottenMS * time.Millisecond, Do: c.forgetKeys})
	for _, chore := range c.cfg.Others {
		c.repeatChore(chore)
	}
	c.forgetDeliveries()
}

// minutesKept and hoursKept are how long statistics by minute and by hour are kept.
const (
	minutesKept = 48 * time.Hour
	hoursKept   = 90 * 24 * time.Hour
)

// oldStats returns the chore that deletes old statistics with buckets of a width in milliseconds.
func (c *Chores) oldStats(name string, width int64, age time.Duration) Chore {
	return Chore{Name: name, Age: age, Do: func(ctx context.Context, before int64) (more bool, err error) {
		n, err := c.cfg.Store.DeleteStats(ctx, width, before, retentionBatch)
		return n == retentionBatch, err
	}}
}

// deleteEnded deletes tasks that ended longer than Retention ago, in small batches to avoid
// disturbing other work.
func (c *Chores) deleteEnded(ctx context.Context, before int64) (more bool, err error) {
	n, err := c.cfg.Store.DeleteEnded(ctx, before, retentionBatch)
	return n == retentionBatch, err
}

// forgetKeys deletes the state of keys that were not requested for a while. The store decides by
// its own time, so the given time is ignored.
func (c *Chores) forgetKeys(ctx context.Context, _ int64) (more bool, err error) {
	n, err := c.cfg.Store.ForgetKeys(ctx, retentionBatch)
	return n == retentionBatch, err
}

// repeatChore repeats a chore until the member ends.
func (c *Chores) repeatChore(chore Chore) {
	c.cfg.Work.Run(func() {
		wait := c.runChore(chore)
		if !c.cfg.Work.HasEnded() {
			c.cfg.Work.After(wait, func() { c.repeatChore(chore) })
		}
	})
}

// runChore does one batch of a chore if this member is responsible. It returns the pause before the
// next one.
func (c *Chores) runChore(chore Chore) time.Duration {
	every := sweepEvery(chore.Age)
	if !c.cfg.Shards.HasShard(retentionShard) {
		return min(every, ownerRecheck)
	}
	more, err := chore.Do(c.cfg.Work.Context(), c.cfg.Now()-chore.Age.Milliseconds())
	switch {
	case err != nil && !c.cfg.Work.HasEnded():
		c.cfg.Log.Warn("deleting expired data failed", "table", chore.Name, "error", err)
	case more:
		return retentionPause
	}
	return every
}

// deliveriesBatch is how many hook deliveries are deleted at once. deliveriesEvery is the pause
// between searches for expired deliveries.
const (
	deliveriesBatch = 1000
	deliveriesEvery = 5 * time.Minute
)

// forgetDeliveries deletes expired deliveries. The owner of one shard does it for all members.
func (c *Chores) forgetDeliveries() {
	c.cfg.Work.Run(func() {
		wait := deliveriesEvery
		if c.cfg.Shards.HasShard(retentionShard) {
			n, err := c.cfg.Store.ForgetDeliveries(c.cfg.Work.Context(), c.cfg.Now(), deliveriesBatch)
			switch {
			case err != nil && !c.cfg.Work.HasEnded():
				c.cfg.Log.Warn("deleting old hook deliveries failed", "error", err)
			case n == deliveriesBatch:
				wait = retentionPause
			}
		}
		if !c.cfg.Work.HasEnded() {
			c.cfg.Work.After(wait, c.forgetDeliveries)
		}
	})
}
