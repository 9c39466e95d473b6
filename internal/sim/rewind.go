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

// image is what a store held at one moment: a standby that was behind, or a backup.
type image struct {
	members    []membership
	owners     [persistence.Shards]string
	generation int64
	history    string
	kept       int64
	tasks      map[string]stored
	queue      map[string]persistence.QueueRow
	permits    *permits.Permits
	externals  *permits.Externals
	begun      map[string]map[string]int64 // of the checker
}

// image copies what the store holds.
func (m *model) image() *image {
	i := &image{owners: m.owners, generation: m.generation, history: m.history, kept: m.kept, tasks: map[string]stored{}, queue: maps.Clone(m.queue),
		permits: m.permits.Clone(), externals: m.externals.Clone(), begun: map[string]map[string]int64{}}
	for _, one := range m.members {
		i.members = append(i.members, *one)
	}
	for id, t := range m.tasks {
		one := *t
		one.rows = slices.Clone(t.rows)
		i.tasks[id] = one
	}
	for key, holders := range m.check.begun {
		i.begun[key] = maps.Clone(holders)
	}
	return i
}

// restore puts the store back.
func (m *model) restore(i *image) {
	m.owners, m.generation, m.history, m.kept, m.queue, m.permits, m.externals = i.owners, i.generation, i.history, i.kept, i.queue, i.permits, i.externals
	m.members, m.tasks = nil, map[string]*stored{}
	for _, one := range i.members {
		m.members = append(m.members, &one)
	}
	for id, t := range i.tasks {
		m.tasks[id] = &t
	}
	m.w.rewinds++
	m.check.rewound(i)
}

// renewedSince reports whether all who live have renewed their leases since. Where connections outlive that the store goes back, nothing else
// shows it.
func (m *model) renewedSince(i *image) bool {
	then := map[string]int64{}
	for _, one := range i.members {
		then[one.Incarnation] = one.renewals
	}
	return !slices.ContainsFunc(m.members, func(one *membership) bool { return one.FencedAt == 0 && one.renewals <= then[one.Incarnation]+1 })
}

// rewound has the checker know what the store knows, and remember what was carried out in the history that is lost.
func (c *checker) rewound(i *image) {
	c.begun = i.begun
	for id, t := range c.tasks {
		if c.former[id] == nil {
			c.former[id] = &shadow{tokens: map[string]bool{}, attempts: map[flow.Address]bool{}}
		}
		maps.Copy(c.former[id].tokens, t.tokens)
		maps.Copy(c.former[id].attempts, t.attempts)
	}
	c.tasks = map[string]*shadow{}
	for _, id := range slices.Sorted(maps.Keys(i.tasks)) {
		in := i.tasks[id]
		t := c.newShadow(id, in.VersionID)
		for _, row := range in.rows {
			events, err := flow.DecodeEvents(row.Events)
			if err != nil {
				c.w.fail("task %s, row %d: %v", id, row.Seq, err)
				return
			}
			for n := range events {
				if err := t.event(&events[n]); err != nil {
					c.w.fail("task %s, row %d: %v", id, row.Seq, err)
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
func (c *checker) wasStarted(task string, at flow.Address) bool {
	t := c.former[task]
	if t == nil {
		return false
	}
	_, started := t.attempts[at]
	return started
}

// wasClaimed reports the same of a claim.
func (c *checker) wasClaimed(task, token string) bool {
	return c.former[task] != nil && c.former[task].tokens[token]
}

// connect is what a store does with a connection that leads to an older state than the one before: nothing goes over it before
// the members of the lost history are ended. A history that was not seen before is one that another member has begun for that reason.
func (d *door) connect() {
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
func (st *stage) goBack() {
	for !st.w.clear() {
		st.w.sleep(st.w.upTo(4 * time.Second))
		i := st.store.image()
		st.w.sleep(st.w.upTo(3 * time.Second))
		if st.w.clear() {
			break
		}
		if !st.reconnects && !st.store.renewedSince(i) {
			continue
		}
		st.w.say("the store goes back to %d tasks, of %d", len(i.tasks), len(st.store.tasks))
		st.store.restore(i)
		st.seen.Rewinds++
	}
	st.steady = true
}

// liveThroughRewinds has the task ended in a history that stays: it is started again when it is lost, and gets what it waits for as
// often as it asks.
func (u *user) liveThroughRewinds() {
	u.w.sleep(u.w.upTo(3 * time.Second))
	for {
		u.start()
		steady := u.steady
		if u.lasts() && steady {
			break
		}
		u.w.sleep(200 * time.Millisecond)
	}
	u.done, u.ended = true, true
}

// lasts sends what the task waits for until it ends. It is false when the store has lost the task.
func (u *user) lasts() bool {
	for {
		t, in := u.check.tasks[u.task], u.store.tasks[u.task]
		switch {
		case in == nil:
			return !u.known()
		case t.ended:
			return true
		}
		for _, key := range u.play.unheard(t.state) {
			u.requests++
			_ = u.ask(flow.Signal{Key: key, Value: u.play.signals[key]}, fmt.Sprintf("%s/%d", u.name, u.requests))
		}
		u.w.sleep(300*time.Millisecond + u.w.upTo(time.Second))
	}
}

// known complains when a task that the store has lost goes on at a member in calm weather. It is false.
func (u *user) known() bool {
	if !u.steady || !u.quiet() {
		return true
	}
	ctx, stop := u.patience()
	defer stop()
	_, err := u.anyMember().Do(ctx, engine.Order{Task: u.task, Command: flow.Inquire{}})
	if u.store.tasks[u.task] == nil && err == nil {
		u.w.fail("task %s, which the store has lost, is answered for", u.task)
	}
	return true
}

// bareForRewinds leaves out what remembers outside of the store what it was told.
func (st *stage) bareForRewinds() {
	st.attaches, st.deletes, st.shrinks, st.limits.Deliveries = false, false, false, endless
	st.w.weather.sloppy = 0
	st.w.weather.calmAt = max(st.w.weather.calmAt, 10*time.Second)
	st.reconnects = !st.options.Unseen && (st.cluster || st.w.chance(500))
}

// drawSuitable draws a play that may be repeated from any of its moments: what is begun abroad stays there, and what people finish by
// hand is not finished twice.
func (st *stage) drawSuitable() *play {
	for {
		if p := drawPlay(st.w.rng, true, false); !p.again && !p.direct && !bytes.Contains(p.definition, []byte("outside")) {
			return p
		}
	}
}

// unseen is a store whose renewals tell nothing by which a member could notice that it went back.
type unseen struct {
	persistence.Store
	renewals int64
}

func (s *unseen) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	p, err := s.Store.Renew(ctx, incarnation, ttl)
	s.renewals++
	p.Renewals, p.History = s.renewals, ""
	return p, err
}
