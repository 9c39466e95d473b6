package sim

import (
	"math/rand/v2"
	"time"
)

// faultRates are the fault rates of a run, in 1/1000.
type faultRates struct {
	calmAt  time.Duration // time from which no more faults happen, so that everything can end
	jumps   int           // steps that take long
	latency time.Duration // usual latency of the store
	stalls  int           // calls of the store that take seconds
	lost    int           // calls that do not reach the store
	unknown int           // answers that get lost
	strays  int           // commits that are abandoned and written later
	crashes int           // crashes of task and step actors at a message
	trips   int           // crashes of step actors in the middle of their work
	cursed  int           // tasks that crash on every claim, decided at the first claim
	sloppy  int           // workers that report late, twice, wrongly or never
	trouble time.Duration // time between two faults of members; 0 means none

	// In a cluster:
	cluster bool
	rumors  int // lost or false hints of gossip
	lies    int // false views of gossip, each believed for a while
	repeats int // requests between members that arrive twice
	drift   int // drift of clocks
}

func drawFaultRates(rng *rand.Rand) faultRates {
	some := func(most int) int {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.IntN(most + 1)
	}
	w := faultRates{latency: pickOne(rng, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)}
	if rng.IntN(8) == 0 {
		return w // no faults at all
	}
	w.calmAt = time.Duration(2+rng.IntN(25)) * time.Second
	w.jumps, w.stalls, w.lost, w.unknown, w.strays = some(3), some(40), some(100), some(100), some(60)
	w.crashes, w.cursed, w.sloppy = some(20), some(300), some(600)
	w.trips = some(200)
	if rng.IntN(3) > 0 {
		w.trouble = time.Duration(500+rng.IntN(5000)) * time.Millisecond
	}
	return w
}

// clockLead is how far a member's clock may be ahead of the store's. A member's time never goes
// back, unless it is a second or more ahead.
func (w *faultRates) clockLead() time.Duration {
	if w.drift == 0 {
		return 0
	}
	return 1100 * time.Millisecond
}

// isCalm reports whether the faults have ended.
func (w *simWorld) isCalm() bool { return w.now >= w.faults.calmAt }

// canLeap reports whether a step may take longer than a lease. In a cluster such a step is a fault,
// because other members react to it.
func (w *simWorld) canLeap() bool { return !w.faults.cluster || !w.isCalm() }

// drawFault draws a fault with a probability in 1/1000, until the faults end.
func (w *simWorld) drawFault(permille int) bool {
	return permille > 0 && !w.isCalm() && w.drawChance(permille)
}

// ofCluster adds the faults between members.
func (w *faultRates) ofCluster(rng *rand.Rand) {
	w.cluster = true
	w.lies = rng.IntN(1000)
	if w.calmAt == 0 {
		return
	}
	w.rumors, w.repeats, w.drift = rng.IntN(500), rng.IntN(200), rng.IntN(30)
}
