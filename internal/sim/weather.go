package sim

import (
	"math/rand/v2"
	"time"
)

// faultRates is how bad a run is. Rates are in 1000.
type faultRates struct {
	calmAt  time.Duration // from then on nothing goes wrong any more, so that everything can end
	jumps   int           // steps that take long
	latency time.Duration // of the store, usually
	stalls  int           // calls of the store that take seconds
	lost    int           // calls that do not reach the store
	unknown int           // answers that do not come back
	strays  int           // commits that are given up and written later
	crashes int           // of task and step actors, at a message
	trips   int           // of step actors, in the middle of their work
	cursed  int           // tasks that crash on every claim, at the first of them
	sloppy  int           // workers that report late, twice, wrongly or never
	trouble time.Duration // between two misfortunes of members; 0 = none

	// Of a cluster:
	cluster bool
	rumors  int // of gossip: hints that get lost, and hints of nothing
	lies    int // of gossip, each believed for a while
	repeats int // questions between members that arrive twice
	drift   int // of clocks
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
		return w // fine throughout
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

// clockLead is how far members may be ahead of the store's time: theirs never runs backwards,
// unless it is a second or more ahead.
func (w *faultRates) clockLead() time.Duration {
	if w.drift == 0 {
		return 0
	}
	return 1100 * time.Millisecond
}

// isCalm reports whether it has become calm for good.
func (w *simWorld) isCalm() bool { return w.now >= w.faults.calmAt }

// canLeap reports whether a step may take so long that leases run out meanwhile. Where others wait
// for that it is a mishap.
func (w *simWorld) canLeap() bool { return !w.faults.cluster || !w.isCalm() }

// drawFault is chance while it is not calm.
func (w *simWorld) drawFault(permille int) bool {
	return permille > 0 && !w.isCalm() && w.drawChance(permille)
}

// ofCluster adds what can happen between members.
func (w *faultRates) ofCluster(rng *rand.Rand) {
	w.cluster = true
	w.lies = rng.IntN(1000)
	if w.calmAt == 0 {
		return
	}
	w.rumors, w.repeats, w.drift = rng.IntN(500), rng.IntN(200), rng.IntN(30)
}
