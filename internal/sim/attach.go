package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/actors/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// attachable gives a member the sessions of workers that attach to it.
func (st *stage) attachable(a *actor) {
	a.grace = pick(st.w.rng, -1, 300*time.Millisecond, 2*time.Second, 5*time.Second)
	if st.planned {
		a.grace = 5 * time.Second
	}
	a.sessions = attached.New(attached.Options{
		Secret: "of all members", Grace: a.grace, Heartbeat: heartbeat, Patience: st.w.upTo(5*time.Second) + 1,
		Workers: roll{st, a.h}, Log: func(string, string) attached.Log { return shelf{st, a.h} }, Note: a.note, Logger: st.log, Host: a.h.ground(),
	})
}

const heartbeat = time.Second

// note keeps what a worker calls the state of its job.
func (a *actor) note(ctx context.Context, task string, n flow.Note) error {
	var whom engine.Engine = a.Member
	if a.clusterMember != nil {
		whom = a.clusterMember.router
	}
	_, err := whom.Do(ctx, engine.Order{Task: task, Command: n})
	return err
}

// part has nobody attached any more. The member has gone, or goes.
func (a *actor) part() {
	if a.sessions != nil {
		a.sessions.Close()
	}
}

// credits are the free ones of a member's workers, by the services they offer.
type credits map[string]int

// tell takes what a member tells others.
func (all credits) tell(c *engine.Credits) {
	if c.Whole {
		clear(all)
	}
	for _, one := range c.List {
		all[strings.Join(one.Services, " ")] = one.Free
	}
}

// allFree says whether others are told that each worker of a member may have as many jobs as it takes, but for those it is at.
func (st *stage) allFree(a *actor) bool {
	if !st.attaches || len(a.h.credits) == 0 {
		return true
	}
	want, told := 0, 0
	for _, d := range st.hands {
		if p := d.seat; p != nil && p.a == a && !p.cut && !p.over() {
			want += d.credits - len(d.held)
		}
	}
	for _, free := range a.h.credits {
		told += free
	}
	return told == want || !slices.ContainsFunc(st.awake(), func(b *actor) bool { return a != b && st.store.member(b.Incarnation()) != nil })
}

// inHand are the jobs that workers of a member are at.
func (st *stage) inHand(a *actor) (ids []string) {
	for _, d := range st.hands {
		for _, n := range slices.Sorted(maps.Keys(d.held)) {
			if d.seat.a == a {
				ids = append(ids, d.held[n].GetId())
			}
		}
	}
	return ids
}

// roll is where a member lists who is attached. The store has the list, so what one member writes all of them see.
type roll struct {
	*stage
	h *host
}

// listed is when a worker has registered.
type listed map[string]int64

func (r roll) Register(_ context.Context, w persistence.Worker) error {
	d := door{w: r.w, h: r.h}
	if err := d.arrive(); err != nil {
		return err
	}
	r.workers[w.ID] = max(r.w.storeNow().UnixMilli(), r.workers[w.ID]+1)
	return d.back(nil)
}

func (r roll) Heartbeat(context.Context, string, int) error {
	d := door{w: r.w, h: r.h}
	return d.arrive()
}

func (r roll) Deregister(_ context.Context, id string) error {
	d := door{w: r.w, h: r.h}
	if err := d.arrive(); err != nil {
		return err
	}
	delete(r.workers, id)
	return d.back(nil)
}

func (r roll) Signs(id string) flow.Signs { return flow.Signs{Joined: r.workers[id]} }

// Awaited and Listed say of whoever alone carries out such jobs that he will be back: one is, in the end.
func (r roll) Awaited(x *flow.Exec) bool { return x.Type == flow.ExecRemote || r.w.chance(500) }
func (r roll) Listed(*flow.Exec) bool    { return true }

// shelf is where a member keeps what workers print.
type shelf struct {
	*stage
	h *host
}

func (shelf) Write(p []byte) (int, error) { return len(p), nil }

func (shelf) Add([]persistence.LogLine) {}

func (shelf) End() bool { return true }

// Close waits for the store, which may be away.
func (s shelf) Close() bool {
	d := door{w: s.w, h: s.h}
	if d.arrive() == nil {
		_ = d.back(nil)
	}
	return true
}
