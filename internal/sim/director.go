package sim

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// mostMembers is how many live at once.
const mostMembers = 4

// direct keeps a cluster running until everybody has what they came for, through all misfortunes.
func (st *stage) direct() {
	for range 1 + st.w.rng.IntN(3) {
		st.enter()
	}
	next := st.w.now + st.between()
	for !st.allEnded() {
		st.reap()
		if st.w.mishap(st.w.weather.rumors) {
			pick(st.w.rng, st.awake()...).hint() // of something that is not so
		}
		if st.w.now >= next && st.restless() {
			st.happen()
			next = st.w.now + st.between()
		}
		st.w.sleep(100 * time.Millisecond)
	}
	for _, a := range st.awake() {
		st.leftovers(a)
	}
	if st.w.chance(500) {
		for _, a := range st.awake() {
			st.retire(a, st.w.upTo(5*time.Second))
		}
	}
	st.over = true
}

// restlessFor is how long members come and go in a run in which they do nothing else.
const restlessFor = 20 * time.Second

// restless says whether something may happen to members.
func (st *stage) restless() bool {
	if st.planned {
		return st.w.now < restlessFor
	}
	return st.w.weather.trouble > 0 && !st.w.clear()
}

func (st *stage) between() time.Duration {
	if st.planned {
		return st.w.upTo(4 * time.Second)
	}
	return st.w.upTo(2 * st.w.weather.trouble)
}

// reap clears away who was fenced. Somebody has to be there.
func (st *stage) reap() {
	for _, a := range st.awake() {
		if closedNow(a.Lost()) {
			st.w.say("%s has lost its lease", a.h.name)
			st.kill(a)
		}
	}
	if len(st.awake()) == 0 {
		st.enter()
	}
}

// awake are the members that are neither dead nor frozen.
func (st *stage) awake() []*actor {
	return slices.DeleteFunc(slices.Clone(st.troupe), func(a *actor) bool { return a.h.frozen || a.h.dead })
}

// happen lets something happen to one of the members.
func (st *stage) happen() {
	a := pick(st.w.rng, st.awake()...)
	if st.planned {
		st.comeOrGo(a, time.Minute)
		return
	}
	switch st.w.rng.IntN(6) {
	case 0, 1:
		st.comeOrGo(a, st.w.upTo(5*time.Second))
	case 2:
		st.freeze(a)
	case 3:
		st.cut(a)
	default:
		st.crash(a)
		st.enter()
	}
}

// comeOrGo has a member join, or leave as one does that is stopped.
func (st *stage) comeOrGo(a *actor, patience time.Duration) {
	if n := len(st.awake()); n < mostMembers && (n == 1 || st.w.chance(500)) {
		st.enter()
		return
	}
	st.retire(a, patience)
}

// leaveGrace is how long it may take until others have what a member owns.
const leaveGrace = 5 * time.Second

// retire has a member hand over what it owns and stop.
func (st *stage) retire(a *actor, patience time.Duration) {
	st.w.say("%s leaves the others", a.h.name)
	ctx, cancel := context.WithCancel(context.Background())
	grace := leaveGrace
	if st.planned { // also with the slowest store it ends by itself
		grace = time.Minute
	}
	stop := st.w.after(nil, grace, cancel)
	if err := a.keeper.Leave(ctx); err != nil {
		st.w.say("%s: %v", a.h.name, err)
		if st.planned {
			st.w.fail("%s cannot hand over: %v", a.h.name, err)
		}
	}
	stop()
	cancel()
	st.leave(a)
	served := st.w.now + patience
	st.w.after(nil, patience, func() {})
	st.w.park(func() bool { return a.h.requests == 0 || st.w.now >= served })
	st.stop(a, patience)
	a.clusterMember.end()
}

// freeze stops a host for a while. Whether its member finds its lease lost then is up to the others.
func (st *stage) freeze(a *actor) {
	st.w.say("%s freezes", a.h.name)
	a.h.frozen = true
	st.w.launch(st.outside, "thaw", func() {
		st.w.sleep(st.w.upTo(6 * time.Second))
		st.w.say("%s goes on", a.h.name)
		a.h.frozen = false
	})
}

// cut has a host reach the store no longer, or the others, or neither, for a while.
func (st *stage) cut(a *actor) {
	a.h.lonely, a.h.apart = st.w.chance(600), st.w.chance(600)
	st.w.say("%s is cut off: of the store %v, of the others %v", a.h.name, a.h.lonely, a.h.apart)
	st.w.launch(st.outside, "mend", func() {
		st.w.sleep(st.w.upTo(6 * time.Second))
		st.w.say("%s is connected again", a.h.name)
		a.h.lonely, a.h.apart = false, false
	})
}

// others is what a member knows of the rest of the cluster.
func (st *stage) others(c *clusterMember) actors.Others {
	of := c.router.Others()
	switch {
	case st.options.Oblivious:
		return oblivious{of}
	case st.options.Gullible:
		return of
	}
	return informed{of, c}
}

// oblivious is a defect to be caught: members believe that nobody else lives, so they take over what others carry.
type oblivious struct{ actors.Others }

func (oblivious) Alive() []string { return nil }
