package cluster

import "time"

// storeClock detects that the store's clock was set forward or back, which must not be mistaken for
// missed lease renewals. It compares the store's time with the monotonic clock of this host.
type storeClock struct {
	storeTime           time.Time // last time read from the store
	askedAt, answeredAt time.Time // host times before and after the read
	adjustedAt          time.Time // host time when the last adjustment was detected
}

// recordReading records a store time that was read between two host times. It tolerates small
// differences, because normal drift of a clock is shorter than the remaining time of a renewed
// lease.
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

// evenFor returns how long the clock is known to be unadjusted.
func (c *storeClock) evenFor(now time.Time) time.Duration { return now.Sub(c.adjustedAt) }
