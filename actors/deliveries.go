package actors

import "time"

// deliveriesBatch is how many hook deliveries are deleted at once. deliveriesEvery is the pause
// between searches for expired deliveries.
const (
	deliveriesBatch = 1000
	deliveriesEvery = 5 * time.Minute
)

// forgetDeliveries deletes expired deliveries. The owner of one shard does it for all members.
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
