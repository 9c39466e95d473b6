package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/carriers/attached"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// addSessions gives a member the sessions for attached workers.
func (st *simRun) addSessions(a *simMember) {
	a.grace = pickOne(st.w.rng, -1, 300*time.Millisecond, 2*time.Second, 5*time.Second)
	if st.planned {
		a.grace = 5 * time.Second
	}
	a.sessions = attached.New(attached.Options{
		Secret: "of all members", Grace: a.grace, Heartbeat: heartbeat, Patience: st.w.upTo(5*time.Second) + 1,
		Workers: memberRegistry{st, a.h}, Log: func(string,
			string) attached.Log {
			return workerLogs{st, a.h}
		}, Note: a.noteJob, Logger: st.log, Host: a.h.baseHost(),
	})
}

const heartbeat = time.Second

// noteJob stores the job state reported by a worker.
func (a *simMember) noteJob(ctx context.Context, task string, n flow.Note) error {
	var whom engine.Engine = a.Member
	if a.clusterMember != nil {
		whom = a.clusterMember.router
	}
	_, err := whom.Do(ctx, engine.Order{Task: task, Command: n})
	return err
}

// closeSessions ends all sessions of a member that has ended or is ending.
func (a *simMember) closeSessions() {
	if a.sessions != nil {
		a.sessions.Close()
	}
}

// creditCounts are the free credits of a member's workers, by the services they offer.
type creditCounts map[string]int

// applyCredits applies a credits message of a member.
func (all creditCounts) applyCredits(c *engine.Credits) {
	if c.Whole {
		clear(all)
	}
	for _, one := range c.List {
		all[strings.Join(one.Services, " ")] = one.Free
	}
}

// allFree reports whether the published credits of a member equal the credits of its workers minus
// the jobs in their hands.
func (st *simRun) allFree(a *simMember) bool {
	if !st.attaches || len(a.h.credits) == 0 {
		return true
	}
	want, told := 0, 0
	for _, d := range st.attachedWorkers {
		if p := d.sessionStream; p != nil && p.a == a && !p.cut && !p.isOver() {
			want += d.credits - len(d.held)
		}
	}
	for _, free := range a.h.credits {
		told += free
	}
	return told == want || !slices.ContainsFunc(st.awakeMembers(),
		func(b *simMember) bool { return a != b && st.store.findMember(b.Incarnation()) != nil })
}

// inHand returns the ids of the jobs that the workers of a member carry out.
func (st *simRun) inHand(a *simMember) (ids []string) {
	for _, d := range st.attachedWorkers {
		for _, n := range slices.Sorted(maps.Keys(d.held)) {
			if d.sessionStream.a == a {
				ids = append(ids, d.held[n].GetId())
			}
		}
	}
	return ids
}

// memberRegistry is a member's access to the list of attached workers. The list is in the store and
// shared by all members.
type memberRegistry struct {
	*simRun
	h *host
}

// registrationTimes holds the registration time of each worker.
type registrationTimes map[string]int64

func (r memberRegistry) Register(_ context.Context, w persistence.Worker) error {
	d := storeConn{w: r.w, h: r.h}
	if err := d.sendRequest(); err != nil {
		return err
	}
	r.workers[w.ID] = max(r.w.storeNow().UnixMilli(), r.workers[w.ID]+1)
	return d.returnAnswer(nil)
}

func (r memberRegistry) Heartbeat(context.Context, string, int) error {
	d := storeConn{w: r.w, h: r.h}
	return d.sendRequest()
}

func (r memberRegistry) Deregister(_ context.Context, id string) error {
	d := storeConn{w: r.w, h: r.h}
	if err := d.sendRequest(); err != nil {
		return err
	}
	delete(r.workers, id)
	return d.returnAnswer(nil)
}

func (r memberRegistry) Signs(id string) flow.Signs { return flow.Signs{Joined: r.workers[id]} }

// Awaited and Listed report whether a worker for such jobs is expected to return. One always does
// eventually.
func (r memberRegistry) Awaited(x *flow.Exec) bool {
	return x.Type == flow.ExecRemote || r.w.drawChance(500)
}
func (r memberRegistry) Listed(*flow.Exec) bool { return true }

// workerLogs stores the output of workers for a member.
type workerLogs struct {
	*simRun
	h *host
}

func (workerLogs) Write(p []byte) (int, error) { return len(p), nil }

func (workerLogs) Add([]persistence.LogLine) {}

func (workerLogs) End() bool { return true }

// Close waits for the store, which may be unavailable.
func (s workerLogs) Close() bool {
	d := storeConn{w: s.w, h: s.h}
	if d.sendRequest() == nil {
		_ = d.returnAnswer(nil)
	}
	return true
}
