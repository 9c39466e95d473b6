package actors

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// Chore is what becomes of things that have reached an age.
type Chore struct {
	Name string // as logs have it
	Age  time.Duration
	// Do looks after some of those from before a time. More says that there may be others.
	Do func(ctx context.Context, before int64) (more bool, err error)
}

// How many of what is past its age is deleted at once, and how long the pause is before the next
// ones.
const (
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// sweepEvery is how often it is looked for what is past its age: ten times in that age, so that a
// short one is kept to, but not more often than a store should be asked, nor less than hourly.
func sweepEvery(age time.Duration) time.Duration {
	return min(max(age/10, time.Second), time.Hour)
}

// retentionShard is the one whose owner does the chores of all members of a cluster. A member that
// does not own it looks every ownerRecheck whether it does now: one that comes by it, after a start
// or when another has gone, is not to wait for an hour.
const (
	retentionShard = 0
	ownerRecheck   = 10 * time.Second
)

// doChores does them as long as the member lives.
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

// How long statistics are kept.
const (
	minutesKept = 48 * time.Hour
	hoursKept   = 90 * 24 * time.Hour
)

// oldStats deletes statistics by buckets of a width that are older.
func (m *Member) oldStats(name string, width int64, age time.Duration) Chore {
	return Chore{Name: name, Age: age, Do: func(ctx context.Context, before int64) (more bool, err error) {
		n, err := m.store.DeleteStats(ctx, width, before, retentionBatch)
		return n == retentionBatch, err
	}}
}

// deleteEnded deletes tasks that ended longer than Retention ago, in small batches, so that nobody
// notices.
func (m *Member) deleteEnded(ctx context.Context, before int64) (more bool, err error) {
	n, err := m.store.DeleteEnded(ctx, before, retentionBatch)
	return n == retentionBatch, err
}

// forgetKeys forgets those whose time has come, as the store itself knows.
func (m *Member) forgetKeys(ctx context.Context, _ int64) (more bool, err error) {
	n, err := m.store.ForgetKeys(ctx, retentionBatch)
	return n == retentionBatch, err
}

// repeatChore does a chore as long as the member lives.
func (m *Member) repeatChore(c Chore) {
	m.runBackground(func() {
		wait := m.runChore(c)
		if m.ctx.Err() == nil {
			m.cfg.Host.Clock.AfterFunc(wait, func() { m.repeatChore(c) })
		}
	})
}

// runChore does some of a chore, if it is this member's, and tells how long the pause is before the
// next turn.
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
