package actors

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Chore is periodic work on things beyond an age.
type Chore struct {
	Name string // for logs
	Age  time.Duration
	// Do handles some of those from before a time. more reports whether there may be others.
	Do func(ctx context.Context, before int64) (more bool, err error)
}

// retentionBatch is how many expired things one statement deletes. retentionPause is the pause
// before the next batch.
const (
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// sweepEvery returns the pause between searches for expired things: a tenth of their age, so that a
// short age is kept precisely. It is at least a second, to spare the store, and at most an hour.
func sweepEvery(age time.Duration) time.Duration {
	return min(max(age/10, time.Second), time.Hour)
}

// retentionShard is the shard whose owner does the chores for all members of a cluster. Other
// members check every ownerRecheck whether they own it now. So a new owner, after a start or the
// departure of another member, does not wait for an hour.
const (
	retentionShard = 0
	ownerRecheck   = 10 * time.Second
)

// doChores starts all chores.
func (m *Member) doChores() {
	if m.cfg.Retention >= 0 {
		m.repeatChore(Chore{Name: "ended tasks", Age: m.cfg.Retention, Do: m.deleteEnded})
	}
	m.repeatChore(m.oldStats("statistics by minute", persistence.StatsMinute, minutesKept))
	m.repeatChore(m.oldStats("statistics by hour", persistence.StatsHour, hoursKept))
	m.repeatChore(Chore{Name: "keys that nobody asks for", Age: persistence.KeyForgottenMS * time.Millisecond, Do: m.forgetKeys})
	for _, c := range m.cfg.Chores {
		m.repeatChore(c)
	}
}

// minutesKept and hoursKept are how long statistics are kept.
const (
	minutesKept = 48 * time.Hour
	hoursKept   = 90 * 24 * time.Hour
)

// oldStats returns the chore that deletes old statistics with buckets of a width.
func (m *Member) oldStats(name string, width int64, age time.Duration) Chore {
	return Chore{Name: name, Age: age, Do: func(ctx context.Context, before int64) (more bool, err error) {
		n, err := m.store.DeleteStats(ctx, width, before, retentionBatch)
		return n == retentionBatch, err
	}}
}

// deleteEnded deletes tasks that ended longer than Retention ago, in small batches to avoid
// disturbing other work.
func (m *Member) deleteEnded(ctx context.Context, before int64) (more bool, err error) {
	n, err := m.store.DeleteEnded(ctx, before, retentionBatch)
	return n == retentionBatch, err
}

// forgetKeys deletes unused keys, by the store's own time.
func (m *Member) forgetKeys(ctx context.Context, _ int64) (more bool, err error) {
	n, err := m.store.ForgetKeys(ctx, retentionBatch)
	return n == retentionBatch, err
}

// repeatChore repeats a chore until the member ends.
func (m *Member) repeatChore(c Chore) {
	m.runBackground(func() {
		wait := m.runChore(c)
		if m.ctx.Err() == nil {
			m.cfg.Host.Clock.AfterFunc(wait, func() { m.repeatChore(c) })
		}
	})
}

// runChore does one batch of a chore if this member is responsible. It returns the pause before the
// next one.
func (m *Member) runChore(c Chore) time.Duration {
	every := sweepEvery(c.Age)
	if !m.owned.hasShard(retentionShard) {
		return min(every, ownerRecheck)
	}
	more, err := c.Do(m.ctx, m.nowMillis()-c.Age.Milliseconds())
	switch {
	case err != nil && m.ctx.Err() == nil:
		m.log.Warn("what is past its age could not be deleted", "what", c.Name, "error", err)
	case more:
		return retentionPause
	}
	return every
}
