package sim

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	permits "github.com/troupe-engine/troupe/persistence/model"
)

// storeImage is what a store held at one moment: a standby that was behind, or a backup.
type storeImage struct {
	members    []memberRecord
	owners     [persistence.Shards]string
	generation int64
	history    string
	kept       int64
	tasks      map[string]storedTask
	queue      map[string]persistence.QueueRow
	permits    *permits.Permits
	externals  *permits.Externals
	rateStarts map[string]map[string]int64 // of the checker
}

// takeImage copies what the store holds.
func (m *storeModel) takeImage() *storeImage {
	i := &storeImage{owners: m.owners, generation: m.generation, history: m.history, kept: m.kept, tasks: map[string]storedTask{}, queue: maps.Clone(m.queue),
		permits: m.permits.Clone(), externals: m.externals.Clone(), rateStarts: map[string]map[string]int64{}}
	for _, one := range m.members {
		i.members = append(i.members, *one)
	}
	for id, t := range m.tasks {
		one := *t
		one.rows = slices.Clone(t.rows)
		i.tasks[id] = one
	}
	for key, holders := range m.check.rateStarts {
		i.rateStarts[key] = maps.Clone(holders)
	}
	return i
}

// restoreImage puts the store back.
func (m *storeModel) restoreImage(i *storeImage) {
	m.owners, m.generation, m.history, m.kept, m.queue, m.permits, m.externals = i.owners, i.generation, i.history, i.kept, i.queue, i.permits, i.externals
	m.members, m.tasks = nil, map[string]*storedTask{}
	for _, one := range i.members {
		m.members = append(m.members, &one)
	}
	for id, t := range i.tasks {
		m.tasks[id] = &t
	}
	m.w.rewinds++
	m.check.rewindTo(i)
}

// renewedSince reports whether all who live have renewed their leases since. Where connections
// outlive that the store goes back, nothing else shows it.
func (m *storeModel) renewedSince(i *storeImage) bool {
	then := map[string]int64{}
	for _, one := range i.members {
		then[one.Incarnation] = one.renewals
	}
	return !slices.ContainsFunc(m.members, func(one *memberRecord) bool { return one.FencedAt == 0 && one.renewals <= then[one.Incarnation]+1 })
}

// rewindTo has the checker know what the store knows, and remember what was carried out in the
// history that is lost.
func (c *commitChecker) rewindTo(i *storeImage) {
	c.rateStarts = i.rateStarts
	for id, t := range c.tasks {
		if c.former[id] == nil {
			c.former[id] = &taskShadow{tokens: map[string]bool{}, attempts: map[flow.Address]bool{}}
		}
		maps.Copy(c.former[id].tokens, t.tokens)
		maps.Copy(c.former[id].attempts, t.attempts)
	}
	c.tasks = map[string]*taskShadow{}
	for _, id := range slices.Sorted(maps.Keys(i.tasks)) {
		in := i.tasks[id]
		t := c.newShadow(id, in.VersionID)
		for _, row := range in.rows {
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				c.w.failRun("task %s, row %d: %v", id, row.Seq, err)
				return
			}
			for n := range events {
				if err := t.applyEvent(&events[n]); err != nil {
					c.w.failRun("task %s, row %d: %v", id, row.Seq, err)
				}
				t.at = events[n].At
				flow.Evolve(t.state, &events[n])
			}
			t.seq = row.Seq
		}
		t.permits = permitsIn(t.state)
		c.tasks[id] = t
	}
}

// wasStarted reports whether an attempt was stored in a history that is lost.
func (c *commitChecker) wasStarted(task string, at flow.Address) bool {
	t := c.former[task]
	if t == nil {
		return false
	}
	_, started := t.attempts[at]
	return started
}

// wasClaimed reports the same of a claim.
func (c *commitChecker) wasClaimed(task, token string) bool {
	return c.former[task] != nil && c.former[task].tokens[token]
}

// reconnectStore is what a store does with a connection that leads to an older state than the one
// before: nothing goes over it before the members of the lost history are ended. A history that was
// not seen before is one that another member has begun for that reason.
func (d *storeConn) reconnectStore() {
	m := d.base
	if m == nil {
		return
	}
	if d.seen == nil {
		d.seen, d.rewinds = map[string]bool{}, d.w.rewinds
	}
	if d.rewinds != d.w.rewinds && d.seen[m.history] {
		_ = m.BeginHistory(context.Background(), m.history, 0) // it cannot fail
	}
	d.rewinds, d.seen[m.history] = d.w.rewinds, true
}

// goBack puts the store back by up to some seconds, a few times, while it is not calm.
func (st *simRun) goBack() {
	for !st.w.isCalm() {
		st.w.sleepFor(st.w.upTo(4 * time.Second))
		i := st.store.takeImage()
		st.w.sleepFor(st.w.upTo(3 * time.Second))
		if st.w.isCalm() {
			break
		}
		if !st.reconnects && !st.store.renewedSince(i) {
			continue
		}
		st.w.addTrace("the store goes back to %d tasks, of %d", len(i.tasks), len(st.store.tasks))
		st.store.restoreImage(i)
		st.counts.Rewinds++
	}
	st.steady = true
}

// liveThroughRewinds has the task ended in a history that stays: it is started again when it is
// lost, and gets what it waits for as often as it asks.
func (u *simUser) liveThroughRewinds() {
	u.w.sleepFor(u.w.upTo(3 * time.Second))
	for {
		u.startTask()
		steady := u.steady
		if u.followToEnd() && steady {
			break
		}
		u.w.sleepFor(200 * time.Millisecond)
	}
	u.done, u.ended = true, true
}

// followToEnd sends what the task waits for until it ends. It is false when the store has lost the
// task.
func (u *simUser) followToEnd() bool {
	for {
		t, in := u.check.tasks[u.task], u.store.tasks[u.task]
		switch {
		case in == nil:
			return !u.checkForgotten()
		case t.ended:
			return true
		}
		for _, key := range u.play.awaitedSignals(t.state) {
			u.requests++
			_ = u.sendOnce(flow.Signal{Key: key, Value: u.play.signals[key]}, fmt.Sprintf("%s/%d", u.name, u.requests))
		}
		u.w.sleepFor(300*time.Millisecond + u.w.upTo(time.Second))
	}
}

// checkForgotten complains when a task that the store has lost goes on at a member in calm weather.
// It is false.
func (u *simUser) checkForgotten() bool {
	if !u.steady || !u.isQuiet() {
		return true
	}
	ctx, stop := u.withPatience()
	defer stop()
	_, err := u.anyMember().Do(ctx, engine.Order{Task: u.task, Command: flow.Inquire{}})
	if u.store.tasks[u.task] == nil && err == nil {
		u.w.failRun("task %s, which the store has lost, is answered for", u.task)
	}
	return true
}

// bareForRewinds leaves out what remembers outside of the store what it was told.
func (st *simRun) bareForRewinds() {
	st.attaches, st.deletes, st.shrinks, st.limits.Deliveries = false, false, false, endless
	st.w.faults.sloppy = 0
	st.w.faults.calmAt = max(st.w.faults.calmAt, 10*time.Second)
	st.reconnects = !st.options.Unseen && (st.cluster || st.w.drawChance(500))
}

// drawSuitable draws a play that may be repeated from any of its moments: what is begun abroad
// stays there, and what people finish by hand is not finished twice.
func (st *simRun) drawSuitable() *flowScenario {
	for {
		if p := drawPlay(st.w.rng, true, false); !p.again && !p.direct && !bytes.Contains(p.definition, []byte("outside")) {
			return p
		}
	}
}

// unseenStore is a store whose renewals tell nothing by which a member could notice that it went
// back.
type unseenStore struct {
	persistence.Store
	renewals int64
}

func (s *unseenStore) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	p, err := s.Store.Renew(ctx, incarnation, ttl)
	s.renewals++
	p.Renewals, p.History = s.renewals, ""
	return p, err
}
