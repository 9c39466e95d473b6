package flow

import "time"

// MaxDelay is the longest time that a definition, a task's params or a command may name, about three thousand years:
// sums of such times and of the clock are far from what an int64 of milliseconds ends at.
const MaxDelay = 100_000_000_000_000

// longest is what Milliseconds cuts a time to. A time.Duration ends at 292 years; whoever adds to this one stays below that.
const longest = 100 * 365 * 24 * time.Hour

// Milliseconds makes a Duration of so many of them, for whoever has to wait: a time that is in the past is none, and
// one that a Duration could not hold is a hundred years.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), longest.Milliseconds())) * time.Millisecond
}

// in is the time so many milliseconds from now.
func (d *decider) in(ms int64) int64 { return d.env.Now + min(max(ms, 0), MaxDelay) }
