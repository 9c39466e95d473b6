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
	permits "github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// storeImage is a copy of the store at one moment, like a lagging standby or a backup.
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
	rateStarts map[string]map[string]int64 // the checker's rateStarts
}

// takeImage copies the content of the store.
func (m *storeModel) takeImage() *storeImage {
	i := &storeImage{owners: m.owners, generation: m.generation, history: m.history, kept: m.kept,
		tasks: map[string]storedTask{}, queue: maps.Clone(m.queue),
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

// restoreImage restores a copy.
func (m *storeModel) restoreImage(i *storeImage) {
	m.owners, m.generation, m.history, m.kept, m.queue, m.permits, m.externals = i.owners,
		i.generation, i.history, i.kept, i.queue, i.permits, i.externals
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

// renewedSince reports whether all living members have renewed their leases since the copy. If
// connections survive the rewind, members can notice it only by these renewals.
func (m *storeModel) renewedSince(i *storeImage) bool {
	then := map[string]int64{}
	for _, one := range i.members {
		then[one.Incarnation] = one.renewals
	}
	return !slices.ContainsFunc(m.members,
		func(one *memberRecord) bool { return one.FencedAt == 0 && one.renewals <= then[one.Incarnation]+1 })
}

// rewindTo resets the checker to the restored state. It keeps the record of work carried out in the
// lost history.
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

// wasStarted reports whether an attempt was stored in a lost history.
func (c *commitChecker) wasStarted(task string, at flow.Address) bool {
	t := c.former[task]
	if t == nil {
		return false
	}
	_, started := t.attempts[at]
	return started
}

// wasClaimed reports whether a claim was stored in a lost history.
func (c *commitChecker) wasClaimed(task, token string) bool {
	return c.former[task] != nil && c.former[task].tokens[token]
}

// reconnectStore simulates a new connection that leads to an older state: the store sends nothing
// before the members of the lost history are ended. An unknown history was begun by another member
// in the same situation.
func (d *storeConn) reconnectStore() {
	m := d.base
	if m == nil {
		return
	}
	if d.seen == nil {
		d.seen, d.rewinds = map[string]bool{}, d.w.rewinds
	}
	if d.rewinds != d.w.rewinds && d.seen[m.history] {
		_ = m.BeginHistory(context.Background(), m.history, 0) // cannot fail
	}
	d.rewinds, d.seen[m.history] = d.w.rewinds, true
}

// goBack rewinds the store a few times by up to some seconds, until the faults end.
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

// liveThroughRewinds starts the task again whenever it is lost, and sends the signals it waits for,
// until it has ended in a lasting history.
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

// followToEnd sends the signals and answers that the task waits for until the task ends. It returns
// false if the store has lost the task.
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

// checkForgotten fails the run, and returns false, if a lost task continues at a member after the
// faults have ended.
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

// bareForRewinds turns off features with memory outside the store.
func (st *simRun) bareForRewinds() {
	st.attaches, st.deletes, st.shrinks, st.limits.Deliveries = false, false, false, endless
	st.w.faults.sloppy = 0
	st.w.faults.calmAt = max(st.w.faults.calmAt, 10*time.Second)
	st.reconnects = !st.options.Unseen && (st.cluster || st.w.drawChance(500))
}

// drawSuitable draws a scenario that may be repeated from any moment: without external work, and
// without units completed by hand.
func (st *simRun) drawSuitable() *flowScenario {
	for {
		if p := drawPlay(st.w.rng, true, false); !p.again && !p.direct && !bytes.Contains(p.definition, []byte("external")) {
			return p
		}
	}
}

// unseenStore hides in renewals everything by which a member could notice a rewind.
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
