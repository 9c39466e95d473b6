package sim

import (
	"math/rand/v2"
	"time"
)

// weather is how bad a run is. Rates are in 1000.
type weather struct {
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

func drawWeather(rng *rand.Rand) weather {
	some := func(most int) int {
		if rng.IntN(3) == 0 {
			return 0
		}
		return rng.IntN(most + 1)
	}
	w := weather{latency: pick(rng, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)}
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

// ahead is how far members may be ahead of the store's time: theirs never runs backwards, unless it is a second or more ahead.
func (w *weather) ahead() time.Duration {
	if w.drift == 0 {
		return 0
	}
	return 1100 * time.Millisecond
}

// clear says whether it has become calm for good.
func (w *world) clear() bool { return w.now >= w.weather.calmAt }

// leaps says whether a step may take so long that leases run out meanwhile. Where others wait for that it is a mishap.
func (w *world) leaps() bool { return !w.weather.cluster || !w.clear() }

// mishap is chance while it is not calm.
func (w *world) mishap(permille int) bool {
	return permille > 0 && !w.clear() && w.chance(permille)
}

// ofCluster adds what can happen between members.
func (w *weather) ofCluster(rng *rand.Rand) {
	w.cluster = true
	w.lies = rng.IntN(1000)
	if w.calmAt == 0 {
		return
	}
	w.rumors, w.repeats, w.drift = rng.IntN(500), rng.IntN(200), rng.IntN(30)
}
