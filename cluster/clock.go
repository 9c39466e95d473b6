package cluster

import "time"

// storeClock finds out whether the store's clock was put forward or back, which has nothing to do
// with how long leases were not renewed. It compares what the store tells with this host's
// monotonic clock.
type storeClock struct {
	storeTime           time.Time // that the store told last …
	askedAt, answeredAt time.Time // … between these two, by the host's clock
	adjustedAt          time.Time // when it was noticed last that the clock had been put
}

// recordReading takes what the store told between two moments. What a clock may run too fast or too
// slow, or is corrected by, is less than a lease that is renewed in time has left.
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

// evenFor is for how long it is known not to have been put.
func (c *storeClock) evenFor(now time.Time) time.Duration { return now.Sub(c.adjustedAt) }
