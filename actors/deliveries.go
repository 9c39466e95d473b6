package actors

import "time"

// How many deliveries to hooks are forgotten at once, how often those are looked for whose time is
// over, and how long the pause is before the next ones.
const (
	deliveriesBatch = 1000
	deliveriesEvery = 5 * time.Minute
)

// forgetDeliveries has the owner of one shard forget them for all members.
func (m *Member) forgetDeliveries() {
	m.runBackground(func() {
		wait := deliveriesEvery
		if m.owned.hasShard(retentionShard) {
			n, err := m.store.ForgetDeliveries(m.ctx, m.nowMillis(), deliveriesBatch)
			switch {
			case err != nil && m.ctx.Err() == nil:
				m.log.Warn("old deliveries to hooks could not be forgotten", "error", err)
			case n == deliveriesBatch:
				wait = retentionPause
			}
		}
		if m.ctx.Err() == nil {
			m.cfg.Host.Clock.AfterFunc(wait, m.forgetDeliveries)
		}
	})
}
