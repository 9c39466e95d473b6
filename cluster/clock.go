package cluster

import "time"

// storeClock detects that the store's clock was set forward or back, which must not be mistaken for
// missed lease renewals. It compares the store's time with this host's monotonic clock.
type storeClock struct {
	storeTime           time.Time // last time read from the store
	askedAt, answeredAt time.Time // the host's times before and after that read
	adjustedAt          time.Time // host's time when the last adjustment was noticed
}

// recordReading records a store time that was read between two host times. Small differences are
// allowed: normal drift and correction of a clock are less than the time that is left of a lease
// when it is renewed in time.
func (c *storeClock) recordReading(store, asked, got time.Time, ttl time.Duration) {
	if !c.storeTime.IsZero() {
		step, least, most := store.Sub(c.storeTime), asked.Sub(c.answeredAt), got.Sub(c.askedAt)
		slack := ttl/4 + min(most, 2*ttl)/8
		if step > most+slack || step < least-slack {
			c.adjustedAt = got
		}
	} else {
		c.adjustedAt = got
	}
	c.storeTime, c.askedAt, c.answeredAt = store, asked, got
}

// evenFor returns for how long the clock is known not to have been adjusted.
func (c *storeClock) evenFor(now time.Time) time.Duration { return now.Sub(c.adjustedAt) }
