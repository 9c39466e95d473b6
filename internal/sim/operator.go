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

// enter starts a member on a host of its own.
func (st *stage) enter() *actor {
	for {
		st.members++
		h := st.w.newHost(fmt.Sprint("m", st.members))
		if st.w.weather.drift > 0 {
			h.drift = int64(st.w.rng.IntN(2*st.w.weather.drift+1) - st.w.weather.drift)
		}
		a, err := st.start(h)
		if err == nil {
			st.troupe, st.all = append(st.troupe, a), append(st.all, a)
			st.w.say("%s is there", a.Incarnation())
			return a
		}
		h.die()
		if !quitting(err) {
			st.w.fail("%s cannot start: %v", h.name, err)
		}
		st.w.sleep(100 * time.Millisecond)
	}
}

func (st *stage) start(h *host) (*actor, error) {
	a, cfg := &actor{st: st, h: h}, st.config(h)
	if st.attaches {
		st.attachable(a)
		cfg.Relay = a.relay()
	}
	if !st.cluster {
		m, err := actors.Start(context.Background(), cfg)
		if a.Member = m; err != nil {
			a.part()
			return a, err
		}
		a.keepTime(cfg.Store)
		return a, nil
	}
	if cfg.Reader == nil {
		cfg.Reader = persistence.NewReader(cfg.Store, cfg.Limits)
	}
	a.clusterMember = st.newClusterMember(h, cfg.Store, cfg.Reader)
	cfg.URL = urlOf(h)
	cfg.Lease, cfg.Others, cfg.Changed = cluster.DefaultTTL, st.others(a.clusterMember), a.pulse
	m, err := actors.Start(context.Background(), cfg)
	if err != nil {
		a.clusterMember.end()
		a.part()
		return nil, err
	}
	a.Member = m
	a.clusterMember.join(m, cfg.Store)
	a.keepTime(cfg.Store)
	return a, nil
}

// config is how the next member works.
func (st *stage) config(h *host) actors.Config {
	store, limits := persistence.Store(st.store), st.limitsOf()
	if st.behind != nil {
		store = st.behind(store)
	}
	if st.options.Unseen {
		store = &unseen{Store: store}
	}
	way := &door{Store: store, w: st.w, h: h}
	if st.reconnects {
		way.base = st.store
	}
	cfg := actors.Config{
		Store: way, Reader: st.reader(), Name: h.name, Limits: limits, Visibility: st.visibility,
		IdleAfter: time.Duration(100+st.w.rng.IntN(2000)) * time.Millisecond,
		Lease:     time.Duration(500+st.w.rng.IntN(3000)) * time.Millisecond,
		MaxReady:  pick(st.w.rng, 0, 0, 3), MaxUncommitted: pick(st.w.rng, 0, 0, 2),
		Host: h.forActors(), Retention: -1,
	}
	if st.planned { // nobody is refused but by what happens to members
		cfg.MaxReady, cfg.MaxUncommitted = 0, 0
	}
	c := carrier{stage: st, h: h}
	cfg.Carriers = map[flow.ExecType]actors.Carrier{flow.ExecFunc: c, flow.ExecHTTP: c, flow.ExecOutside: st.abroad.starters(h).Carrier()}
	cfg.Trackers = st.abroad.trackers(h)
	cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1 + st.w.rng.IntN(6), flow.ExecHTTP: 1 + st.w.rng.IntN(6)}
	return cfg
}

// leave takes a member from those who are asked.
func (st *stage) leave(a *actor) {
	st.troupe = slices.DeleteFunc(st.troupe, func(b *actor) bool { return a == b })
}

// operate keeps a member running until everybody has what they came for, through all misfortunes.
func (st *stage) operate() {
	a := st.enter()
	for st.w.weather.trouble > 0 && !st.w.clear() && !st.allEnded() {
		st.w.sleep(st.w.upTo(2 * st.w.weather.trouble))
		a = st.misfortune(a)
	}
	if st.w.weather.calmAt == 0 && st.w.chance(500) {
		st.w.sleep(st.w.upTo(8 * time.Second))
		a = st.handOver(a)
	}
	for !st.allEnded() {
		if closedNow(a.Lost()) {
			st.kill(a)
			a = st.enter()
		}
		st.w.sleep(100 * time.Millisecond)
	}
	st.leftovers(a)
	if st.w.chance(500) {
		st.stop(a, st.w.upTo(5*time.Second))
	}
	st.over = true
}

// leftovers are what a member has in memory, or carries out, when nothing is left to do.
func (st *stage) leftovers(a *actor) {
	until := st.w.now + 2*time.Minute // it may take as long until it asks whether anybody waits for a job
	for {
		s := a.Stats()
		if s.Actors["task"]+s.Actors["step"]+s.Ready+s.Uncommitted+s.Messages == 0 && len(a.h.carrying) == 0 && len(st.inHand(a)) == 0 && st.allFree(a) || closedNow(a.Lost()) {
			return
		}
		if st.w.now > until {
			st.w.fail("when everything has ended, %s still has %+v in memory and is at the jobs %v, workers are at %v, and it tells of the credits %v", a.h.name, s,
				slices.Sorted(maps.Keys(a.h.carrying)), st.inHand(a), a.h.credits)
			return
		}
		st.w.sleep(200 * time.Millisecond)
	}
}

func (st *stage) allEnded() bool {
	return !slices.ContainsFunc(st.users, func(u *user) bool { return !u.ended }) && (st.publisher == nil || st.publisher.ended) &&
		(st.timetable == nil || st.timetable.ended) && len(st.store.externals.Next(nil, 1)) == 0
}

func (st *stage) misfortune(a *actor) *actor {
	switch st.w.rng.IntN(4) {
	case 0:
		st.stop(a, st.w.upTo(5*time.Second))
	case 1:
		return st.replaceFrozen(a)
	default:
		st.crash(a)
	}
	return st.enter()
}

func (st *stage) crash(a *actor) {
	st.w.say("%s crashes", a.h.name)
	a.h.die()
	st.kill(a)
}

// kill clears away a member. Of one that has crashed nobody hears anything any more.
func (st *stage) kill(a *actor) {
	st.leave(a)
	a.h.die()
	if a.clusterMember != nil {
		a.clusterMember.end()
	}
	a.Kill()
	a.part()
}

func (st *stage) stop(a *actor, patience time.Duration) {
	st.w.say("%s stops", a.h.name)
	a.ends = true
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.sessions != nil && st.w.chance(500) {
		a.sessions.Leave() // as one does that serves streams
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer st.w.after(nil, patience, cancel)()
	if err := a.Stop(ctx); err != nil && !quitting(err) {
		st.w.fail("%s cannot stop: %v", a.h.name, err)
	}
	st.leave(a)
	a.h.die()
	a.part()
}

// handOver replaces a member as an upgrade would. In fine weather nothing is in its way.
func (st *stage) handOver(a *actor) *actor {
	began := st.w.now
	st.stop(a, time.Minute)
	if st.w.now-began > 10*time.Second {
		st.w.fail("%s needed %s to stop", a.h.name, st.w.now-began)
	}
	return st.enter()
}

// replaceFrozen has another member take over from one that is not dead at all.
func (st *stage) replaceFrozen(a *actor) *actor {
	st.w.say("%s freezes", a.h.name)
	a.h.frozen = true
	next := st.enter()
	st.w.launch(st.outside, "thaw", func() {
		st.w.sleep(st.w.upTo(3 * time.Second))
		st.w.say("%s goes on", a.h.name)
		a.h.frozen = false
		st.w.park(func() bool { return closedNow(a.Lost()) })
		st.w.sleep(st.w.upTo(500 * time.Millisecond))
		st.kill(a)
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

// quitting says whether an error is one that a member's loss explains.
func quitting(err error) bool {
	return errors.Is(err, persistence.ErrTaken) || errors.Is(err, errLost) || errors.Is(err, errDown) || errors.Is(err, persistence.ErrFenced)
}
