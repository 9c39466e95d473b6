package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/cluster"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// addMember starts a member on a host of its own.
func (st *simRun) addMember() *simMember {
	for {
		st.members++
		h := st.w.newHost(fmt.Sprint("m", st.members))
		if st.w.faults.drift > 0 {
			h.drift = int64(st.w.rng.IntN(2*st.w.faults.drift+1) - st.w.faults.drift)
		}
		a, err := st.startMember(h)
		if err == nil {
			st.activeMembers, st.allMembers = append(st.activeMembers, a), append(st.allMembers, a)
			st.w.addTrace("%s is there", a.Incarnation())
			return a
		}
		h.crashHost()
		if !isLossError(err) {
			st.w.failRun("%s cannot start: %v", h.name, err)
		}
		st.w.sleepFor(100 * time.Millisecond)
	}
}

func (st *simRun) startMember(h *host) (*simMember, error) {
	a, cfg := &simMember{st: st, h: h}, st.memberConfig(h)
	if st.attaches {
		st.addSessions(a)
		cfg.Relay = a.newRelay()
	}
	if !st.cluster {
		m, err := actors.Start(context.Background(), cfg)
		if a.Member = m; err != nil {
			a.closeSessions()
			return a, err
		}
		a.startSchedules(cfg.Store)
		return a, nil
	}
	if cfg.Reader == nil {
		cfg.Reader = persistence.NewReader(cfg.Store, cfg.Limits)
	}
	a.clusterMember = st.newClusterMember(h, cfg.Store, cfg.Reader)
	cfg.URL = urlOf(h)
	cfg.Lease, cfg.Others, cfg.Changed = cluster.DefaultTTL, st.newOthers(a.clusterMember), a.forwardPulse
	m, err := actors.Start(context.Background(), cfg)
	if err != nil {
		a.clusterMember.leaveCluster()
		a.closeSessions()
		return nil, err
	}
	a.Member = m
	a.clusterMember.joinCluster(m, cfg.Store)
	a.startSchedules(cfg.Store)
	return a, nil
}

// memberConfig returns the configuration of the next member.
func (st *simRun) memberConfig(h *host) actors.Config {
	store, limits := persistence.Store(st.store), st.limitsOf()
	if st.wrapStore != nil {
		store = st.wrapStore(store)
	}
	if st.options.Unseen {
		store = &unseenStore{Store: store}
	}
	way := &storeConn{Store: store, w: st.w, h: h}
	if st.reconnects {
		way.base = st.store
	}
	cfg := actors.Config{
		Store: way, Reader: st.newReader(), Name: h.name, Limits: limits, Visibility: st.visibility,
		IdleAfter: time.Duration(100+st.w.rng.IntN(2000)) * time.Millisecond,
		Lease:     time.Duration(500+st.w.rng.IntN(3000)) * time.Millisecond,
		MaxReady:  pickOne(st.w.rng, 0, 0, 3), MaxUncommitted: pickOne(st.w.rng, 0, 0, 2),
		Host: h.forActors(), Retention: -1,
	}
	if st.planned { // no request is refused except because of a move
		cfg.MaxReady, cfg.MaxUncommitted = 0, 0
	}
	c := jobCarrier{simRun: st, h: h}
	cfg.Carriers = map[flow.ExecType]actors.Carrier{flow.ExecFunc: c, flow.ExecPush: c,
		flow.ExecExternal: st.externalSystem.startersFor(h).Carrier()}
	if st.options.Code {
		cfg.Carriers[flow.ExecCode] = st.newCodeCarrier(h)
		cfg.Concurrency = map[flow.ExecType]int{flow.ExecCode: 1 + st.w.rng.IntN(6)}
		return cfg
	}
	cfg.Trackers = st.externalSystem.trackersFor(h)
	cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1 + st.w.rng.IntN(6), flow.ExecPush: 1 + st.w.rng.IntN(6)}
	return cfg
}

// removeMember removes a member from the members that receive requests.
func (st *simRun) removeMember(a *simMember) {
	st.activeMembers = slices.DeleteFunc(st.activeMembers, func(b *simMember) bool { return a == b })
}

// runMember runs a single member under faults until all users have finished.
func (st *simRun) runMember() {
	a := st.addMember()
	for st.w.faults.trouble > 0 && !st.w.isCalm() && !st.allEnded() {
		st.w.sleepFor(st.w.upTo(2 * st.w.faults.trouble))
		a = st.causeMisfortune(a)
	}
	if st.w.faults.calmAt == 0 && st.w.drawChance(500) {
		st.w.sleepFor(st.w.upTo(8 * time.Second))
		a = st.handOver(a)
	}
	for !st.allEnded() {
		if closedNow(a.Lost()) {
			st.killMember(a)
			a = st.addMember()
		}
		st.w.sleepFor(100 * time.Millisecond)
	}
	st.checkLeftovers(a)
	if st.w.drawChance(500) {
		st.stopMember(a, st.w.upTo(5*time.Second))
	}
	st.runDone = true
}

// checkLeftovers checks that a member holds nothing in memory and carries out nothing when no work
// is left.
func (st *simRun) checkLeftovers(a *simMember) {
	until := st.w.now + 2*time.Minute // a carrier checks that late whether a job is still needed
	for {
		s := a.Stats()
		if s.Actors["task"]+s.Actors["step"]+s.Ready+s.Uncommitted+s.Messages == 0 &&
			len(a.h.carrying) == 0 && len(st.inHand(a)) == 0 && st.allFree(a) || closedNow(a.Lost()) {
			return
		}
		if st.w.now > until {
			st.w.failRun("when everything has ended, %s still has %+v in memory and is at the "+
				"jobs %v, workers are at %v, and it tells of the credits %v", a.h.name, s,
				slices.Sorted(maps.Keys(a.h.carrying)), st.inHand(a), a.h.credits)
			return
		}
		st.w.sleepFor(200 * time.Millisecond)
	}
}

func (st *simRun) allEnded() bool {
	return !slices.ContainsFunc(st.users, func(u *simUser) bool { return !u.ended }) && (st.publisher == nil || st.publisher.ended) &&
		(st.timetable == nil || st.timetable.ended) && len(st.store.externals.Next(nil, 1)) == 0
}

func (st *simRun) causeMisfortune(a *simMember) *simMember {
	switch st.w.rng.IntN(4) {
	case 0:
		st.stopMember(a, st.w.upTo(5*time.Second))
	case 1:
		return st.replaceFrozen(a)
	default:
		st.crashMember(a)
	}
	return st.addMember()
}

func (st *simRun) crashMember(a *simMember) {
	st.w.addTrace("%s crashes", a.h.name)
	a.h.crashHost()
	st.killMember(a)
}

// killMember removes a member. A crashed member sends no more messages.
func (st *simRun) killMember(a *simMember) {
	st.removeMember(a)
	a.h.crashHost()
	if a.clusterMember != nil {
		a.clusterMember.leaveCluster()
	}
	a.Kill()
	a.closeSessions()
}

func (st *simRun) stopMember(a *simMember, patience time.Duration) {
	st.w.addTrace("%s stops", a.h.name)
	a.ends = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.sessions != nil && st.w.drawChance(500) {
		a.sessions.Leave() // like a member that serves streams
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer st.w.callAfter(nil, patience, cancel)()
	if err := a.Stop(ctx); err != nil && !isLossError(err) {
		st.w.failRun("%s cannot stop: %v", a.h.name, err)
	}
	st.removeMember(a)
	a.h.crashHost()
	a.closeSessions()
}

// handOver replaces a member as an upgrade would. Without faults it must be quick.
func (st *simRun) handOver(a *simMember) *simMember {
	began := st.w.now
	st.stopMember(a, time.Minute)
	if st.w.now-began > 10*time.Second {
		st.w.failRun("%s needed %s to stop", a.h.name, st.w.now-began)
	}
	return st.addMember()
}

// replaceFrozen lets another member take over from a frozen member, which later continues.
func (st *simRun) replaceFrozen(a *simMember) *simMember {
	st.w.addTrace("%s freezes", a.h.name)
	a.h.frozen = true
	next := st.addMember()
	st.w.startCoroutine(st.outside, "thaw", func() {
		st.w.sleepFor(st.w.upTo(3 * time.Second))
		st.w.addTrace("%s goes on", a.h.name)
		a.h.frozen = false
		st.w.parkUntil(func() bool { return closedNow(a.Lost()) })
		st.w.sleepFor(st.w.upTo(500 * time.Millisecond))
		st.killMember(a)
	})
	return next
}

func closedNow(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// isLossError reports whether the loss of a member explains an error.
func isLossError(err error) bool {
	return errors.Is(err, persistence.ErrTaken) || errors.Is(err, errLost) ||
		errors.Is(err, errDown) || errors.Is(err, persistence.ErrFenced)
}
