package actors

import "time"

// How many ended tasks are deleted at once, and how long the pause is before the next ones.
const (
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// sweepEvery is how often ended tasks past their age are looked for: ten times in that age, so that a short
// one is kept to, but not more often than a store should be asked, nor less than hourly.
func sweepEvery(age time.Duration) time.Duration {
	return min(max(age/10, time.Second), time.Hour)
}

// retentionShard is the one whose owner deletes for all members of a cluster.
const retentionShard = 0

// forgetEnded deletes tasks that ended longer than Retention ago, in small batches with a pause between
// them, so that nobody notices.
func (m *Member) forgetEnded() {
	if m.cfg.Retention < 0 {
		return
	}
	var again func()
	again = func() {
		m.background(func() {
			if !m.owned.has(retentionShard) {
				m.cfg.Host.Clock.AfterFunc(sweepEvery(m.cfg.Retention), again)
				return
			}
			before := m.now() - m.cfg.Retention.Milliseconds()
			n, err := m.store.DeleteEnded(m.ctx, before, retentionBatch)
			wait := sweepEvery(m.cfg.Retention)
			switch {
			case err != nil && m.ctx.Err() == nil:
				m.log.Warn("ended tasks could not be deleted", "error", err)
			case n == retentionBatch:
				wait = retentionPause
			}
			if m.ctx.Err() == nil {
				m.cfg.Host.Clock.AfterFunc(wait, again)
			}
		})
	}
	again()
}
