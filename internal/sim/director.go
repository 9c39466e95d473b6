package sim

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// mostMembers is how many live at once.
const mostMembers = 4

// runCluster keeps a cluster running until everybody has what they came for, through all
// misfortunes.
func (st *simRun) runCluster() {
	for range 1 + st.w.rng.IntN(3) {
		st.addMember()
	}
	next := st.w.now + st.troubleInterval()
	for !st.allEnded() {
		st.removeFenced()
		if st.w.drawFault(st.w.faults.rumors) {
			pickOne(st.w.rng, st.awakeMembers()...).scheduleLook() // of something that is not so
		}
		if st.w.now >= next && st.hasTrouble() {
			st.causeTrouble()
			next = st.w.now + st.troubleInterval()
		}
		st.w.sleepFor(100 * time.Millisecond)
	}
	for _, a := range st.awakeMembers() {
		st.checkLeftovers(a)
	}
	if st.w.drawChance(500) {
		for _, a := range st.awakeMembers() {
			st.retireMember(a, st.w.upTo(5*time.Second))
		}
	}
	st.runDone = true
}

// restlessFor is how long members come and go in a run in which they do nothing else.
const restlessFor = 20 * time.Second

// hasTrouble reports whether something may happen to members.
func (st *simRun) hasTrouble() bool {
	if st.planned {
		return st.w.now < restlessFor
	}
	return st.w.faults.trouble > 0 && !st.w.isCalm()
}

func (st *simRun) troubleInterval() time.Duration {
	if st.planned {
		return st.w.upTo(4 * time.Second)
	}
	return st.w.upTo(2 * st.w.faults.trouble)
}

// removeFenced clears away who was fenced. Somebody has to be there.
func (st *simRun) removeFenced() {
	for _, a := range st.awakeMembers() {
		if closedNow(a.Lost()) {
			st.w.addTrace("%s has lost its lease", a.h.name)
			st.killMember(a)
		}
	}
	if len(st.awakeMembers()) == 0 {
		st.addMember()
	}
}

// awakeMembers are the members that are neither dead nor frozen.
func (st *simRun) awakeMembers() []*simMember {
	return slices.DeleteFunc(slices.Clone(st.activeMembers), func(a *simMember) bool { return a.h.frozen || a.h.dead })
}

// causeTrouble lets something happen to one of the members.
func (st *simRun) causeTrouble() {
	a := pickOne(st.w.rng, st.awakeMembers()...)
	if st.planned {
		st.joinOrLeave(a, time.Minute)
		return
	}
	switch st.w.rng.IntN(6) {
	case 0, 1:
		st.joinOrLeave(a, st.w.upTo(5*time.Second))
	case 2:
		st.freezeHost(a)
	case 3:
		st.disconnectHost(a)
	default:
		st.crashMember(a)
		st.addMember()
	}
}

// joinOrLeave has a member join, or leave as one does that is stopped.
func (st *simRun) joinOrLeave(a *simMember, patience time.Duration) {
	if n := len(st.awakeMembers()); n < mostMembers && (n == 1 || st.w.drawChance(500)) {
		st.addMember()
		return
	}
	st.retireMember(a, patience)
}

// leaveGrace is how long it may take until others have what a member owns.
const leaveGrace = 5 * time.Second

// retireMember has a member hand over what it owns and stop.
func (st *simRun) retireMember(a *simMember, patience time.Duration) {
	st.w.addTrace("%s leaves the others", a.h.name)
	ctx, cancel := context.WithCancel(context.Background())
	grace := leaveGrace
	if st.planned { // also with the slowest store it ends by itself
		grace = time.Minute
	}
	stop := st.w.callAfter(nil, grace, cancel)
	if err := a.keeper.Leave(ctx); err != nil {
		st.w.addTrace("%s: %v", a.h.name, err)
		if st.planned {
			st.w.failRun("%s cannot hand over: %v", a.h.name, err)
		}
	}
	stop()
	cancel()
	st.removeMember(a)
	served := st.w.now + patience
	st.w.callAfter(nil, patience, func() {})
	st.w.parkUntil(func() bool { return a.h.requests == 0 || st.w.now >= served })
	st.stopMember(a, patience)
	a.clusterMember.leaveCluster()
}

// freezeHost stops a host for a while. Whether its member finds its lease lost then is up to the
// others.
func (st *simRun) freezeHost(a *simMember) {
	st.w.addTrace("%s freezes", a.h.name)
	a.h.frozen = true
	st.w.startCoroutine(st.outside, "thaw", func() {
		st.w.sleepFor(st.w.upTo(6 * time.Second))
		st.w.addTrace("%s goes on", a.h.name)
		a.h.frozen = false
	})
}

// disconnectHost has a host reach the store no longer, or the others, or neither, for a while.
func (st *simRun) disconnectHost(a *simMember) {
	a.h.cutFromStore, a.h.cutFromPeers = st.w.drawChance(600), st.w.drawChance(600)
	st.w.addTrace("%s is cut off: of the store %v, of the others %v", a.h.name, a.h.cutFromStore, a.h.cutFromPeers)
	st.w.startCoroutine(st.outside, "mend", func() {
		st.w.sleepFor(st.w.upTo(6 * time.Second))
		st.w.addTrace("%s is connected again", a.h.name)
		a.h.cutFromStore, a.h.cutFromPeers = false, false
	})
}

// newOthers is what a member knows of the rest of the cluster.
func (st *simRun) newOthers(c *clusterMember) actors.Others {
	of := c.router.Others()
	switch {
	case st.options.Oblivious:
		return obliviousOthers{of}
	case st.options.Gullible:
		return of
	}
	return informedOthers{of, c}
}

// obliviousOthers is a defect to be caught: members believe that nobody else lives, so they take
// over what others carry.
type obliviousOthers struct{ actors.Others }

func (obliviousOthers) Alive() []string { return nil }
