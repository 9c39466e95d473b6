package sim

import (
	"context"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
)

// mostMembers is the maximal number of members at the same time.
const mostMembers = 4

// runCluster runs a cluster under faults until all users have finished.
func (st *simRun) runCluster() {
	for range 1 + st.w.rng.IntN(3) {
		st.addMember()
	}
	next := st.w.now + st.troubleInterval()
	for !st.allEnded() {
		st.removeFenced()
		if st.w.drawFault(st.w.faults.rumors) {
			pickOne(st.w.rng, st.awakeMembers()...).scheduleLook() // a false hint
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

// restlessFor is how long members join and leave in a run with only planned moves.
const restlessFor = 20 * time.Second

// hasTrouble reports whether faults of members may still happen.
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

// removeFenced removes fenced members and keeps at least one member running.
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

// awakeMembers returns the members that are neither dead nor frozen.
func (st *simRun) awakeMembers() []*simMember {
	return slices.DeleteFunc(slices.Clone(st.activeMembers), func(a *simMember) bool { return a.h.frozen || a.h.dead })
}

// causeTrouble injects a fault into a random member.
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

// joinOrLeave lets a member join, or leave gracefully.
func (st *simRun) joinOrLeave(a *simMember, patience time.Duration) {
	if n := len(st.awakeMembers()); n < mostMembers && (n == 1 || st.w.drawChance(500)) {
		st.addMember()
		return
	}
	st.retireMember(a, patience)
}

// leaveGrace is the time limit for handing over the shards of a leaving member.
const leaveGrace = 5 * time.Second

// retireMember lets a member hand over its shards and stop.
func (st *simRun) retireMember(a *simMember, patience time.Duration) {
	st.w.addTrace("%s leaves the others", a.h.name)
	ctx, cancel := context.WithCancel(context.Background())
	grace := leaveGrace
	if st.planned { // a planned run finishes even with the slowest store
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

// freezeHost freezes a host for a while. Its member may lose its lease to the others meanwhile.
func (st *simRun) freezeHost(a *simMember) {
	st.w.addTrace("%s freezes", a.h.name)
	a.h.frozen = true
	st.w.startCoroutine(st.outside, "thaw", func() {
		st.w.sleepFor(st.w.upTo(6 * time.Second))
		st.w.addTrace("%s goes on", a.h.name)
		a.h.frozen = false
	})
}

// disconnectHost cuts a host off from the store, from the other members, from both or from neither
// for a while.
func (st *simRun) disconnectHost(a *simMember) {
	a.h.cutFromStore, a.h.cutFromPeers = st.w.drawChance(600), st.w.drawChance(600)
	st.w.addTrace("%s is cut off: of the store %v, of the others %v", a.h.name, a.h.cutFromStore, a.h.cutFromPeers)
	st.w.startCoroutine(st.outside, "mend", func() {
		st.w.sleepFor(st.w.upTo(6 * time.Second))
		st.w.addTrace("%s is connected again", a.h.name)
		a.h.cutFromStore, a.h.cutFromPeers = false, false
	})
}

// newOthers returns a member's knowledge of the rest of the cluster.
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

// obliviousOthers is a defect to be caught: members believe that they are alone, so they take over
// the jobs of living members.
type obliviousOthers struct{ actors.Others }

func (obliviousOthers) Alive() []string { return nil }
