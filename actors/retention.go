package actors

import "time"

// How often ended tasks past their age are looked for, and how many are deleted at once.
const (
	retentionEvery = time.Hour
	retentionBatch = 500
	retentionPause = 50 * time.Millisecond
)

// forgetEnded deletes tasks that ended longer than Retention ago, in small batches with a pause between
// them, so that nobody notices.
func (m *Member) forgetEnded() {
	if m.cfg.Retention < 0 {
		return
	}
	var again func()
	again = func() {
		m.background(func() {
			before := m.now() - m.cfg.Retention.Milliseconds()
			n, err := m.store.DeleteEnded(m.ctx, before, retentionBatch)
			wait := retentionEvery
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
