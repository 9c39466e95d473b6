package cluster

import "time"

// storeClock finds out whether the store's clock was put forward or back, which has nothing to do with how long leases were not
// renewed. It compares what the store tells with this host's monotonic clock.
type storeClock struct {
	store      time.Time // that the store told last …
	asked, got time.Time // … between these two, by the host's clock
	put        time.Time // when it was noticed last that the clock had been put
}

// told takes what the store told between two moments. What a clock may run too fast or too slow, or is corrected by, is less than
// a lease that is renewed in time has left.
func (c *storeClock) told(store, asked, got time.Time, ttl time.Duration) {
	if !c.store.IsZero() {
		step, least, most := store.Sub(c.store), asked.Sub(c.got), got.Sub(c.asked)
		slack := ttl/4 + min(most, 2*ttl)/8
		if step > most+slack || step < least-slack {
			c.put = got
		}
	} else {
		c.put = got
	}
	c.store, c.asked, c.got = store, asked, got
}

// evenFor is for how long it is known not to have been put.
func (c *storeClock) evenFor(now time.Time) time.Duration { return now.Sub(c.put) }
