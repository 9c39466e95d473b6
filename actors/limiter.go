package actors

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// limiter sees to the keys of this member's shards: it has the store decide who is given one, and tells their tasks. What it
// has to look at it is told by those who ask and those who let go, here and on other members; what nobody told of it finds by
// looking at all keys in turn, slowly. Nothing depends on who asks the store: it decides, and tells whoever has not answered.
type limiter struct {
	m       *Member
	mu      sync.Mutex
	open    map[string]bool // keys to be decided about; true = nobody knows who has heard of the last decision
	line    []string        // those of them that nobody is at, in the order in which somebody asked
	taken   map[string]bool // keys that are being decided about
	running int
	others  map[string]bool // keys of others, who have yet to be told; true as in open
	telling bool
	later   map[string]int64 // keys whose rates have room again at a time

	rulings, failures atomic.Int64 // decisions that the store was asked for, and those that failed
}

// How many decisions are under way at once, how often keys are looked for that nobody told of, and how many; and how many keys are read at once.
const (
	rulers      = 4
	lookForKeys = 5 * time.Second
	sweptAtOnce = 100
	keysAtOnce  = 1000
)

func newLimiter(m *Member) *limiter {
	return &limiter{m: m, open: map[string]bool{}, taken: map[string]bool{}, others: map[string]bool{}, later: map[string]int64{}}
}

// stir says that something has changed about a key: somebody asks for it, or lets go. It never blocks.
func (l *limiter) stir(key string, anew bool) {
	if l.m.owned.owns(key) {
		l.look(key, anew)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others[key] = l.others[key] || anew
	if !l.telling {
		l.telling = true
		l.m.background(l.tellOthers)
	}
}

// tellOthers tells the owners of keys, those together that came together.
func (l *limiter) tellOthers() {
	l.mu.Lock()
	others := l.others
	l.others, l.telling = map[string]bool{}, false
	l.mu.Unlock()
	said := map[bool]*engine.Keys{false: {}, true: {Anew: true}}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		anew := others[key]
		if l.m.owned.owns(key) { // it is the member's by now
			l.look(key, anew)
			continue
		}
		said[anew].Names = append(said[anew].Names, key)
	}
	l.m.cfg.Others.Stir(*said[false])
	l.m.cfg.Others.Stir(*said[true])
}

// look has a key decided about.
func (l *limiter) look(key string, anew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, there := l.open[key]
	l.open[key] = was || anew
	if !there && !l.taken[key] {
		l.line = append(l.line, key)
	}
	if l.running < rulers {
		l.running++
		l.m.background(l.run)
	}
}

// waiting is how many keys are to be decided about.
func (l *limiter) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// run decides until there is nothing to be decided about.
func (l *limiter) run() {
	for {
		q, ok := l.take()
		if !ok {
			return
		}
		l.rule(q)
	}
}

// take takes the key that nobody is at for which somebody asked first: one that is asked for all the time keeps no other waiting. A member
// that goes leaves them to the next owners.
func (l *limiter) take() (q persistence.PermitQuestion, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) == 0 || l.m.stopping.Load() {
		l.running--
		return q, false
	}
	q.Key = l.line[0]
	q.Anew = l.open[q.Key]
	l.line = l.line[1:]
	delete(l.open, q.Key)
	l.taken[q.Key] = true
	return q, true
}

// quiet says whether nothing is being decided.
func (l *limiter) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == 0
}

// ruled lets others be at a key again.
func (l *limiter) ruled(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.taken, key)
	if _, open := l.open[key]; open {
		l.line = append(l.line, key)
	}
}

func (l *limiter) rule(q persistence.PermitQuestion) {
	ctx, cancel := l.m.storeCall()
	ruling, err := l.m.store.Rule(ctx, l.m.incarnation, q)
	cancel()
	l.rulings.Add(1)
	l.ruled(q.Key)
	switch {
	case l.m.ctx.Err() != nil || errors.Is(err, persistence.ErrFenced):
		return
	case err != nil:
		l.failures.Add(1)
		l.m.pause(storePause(l.m.outages.fails(notRuled, q.Key, err)))
		l.look(q.Key, true) // it may have been decided all the same
		return
	}
	l.m.outages.works(notRuled, q.Key)
	l.tell(&ruling)
	if ruling.More {
		l.look(q.Key, false)
	}
	if ruling.Retold {
		l.lookLater(q.Key, l.m.now()+persistence.PermitToldMS)
	}
	if ruling.Again > 0 {
		l.lookLater(q.Key, ruling.Again)
	}
}

// tell has those hear of a decision whom it is about, whoever has their tasks.
func (l *limiter) tell(r *persistence.Ruling) {
	for _, row := range r.Given {
		l.send(&row, func(a flow.Address) flow.Command { return flow.Granted{Address: a, Key: row.Key} })
	}
	for _, row := range r.Refused {
		l.send(&row, func(a flow.Address) flow.Command { return flow.Granted{Address: a, Key: row.Key, Refused: true} })
	}
	for _, row := range r.Evicted {
		l.send(&row, func(a flow.Address) flow.Command { return flow.Evict{Address: a, Key: row.Key} })
	}
}

func (l *limiter) send(row *persistence.PermitRow, cmd func(flow.Address) flow.Command) {
	_, a, err := flow.ParseJobID(row.Holder)
	if err != nil {
		l.m.log.Error("the holder of a key has no name that means anything", "task", row.Task, "error", err)
		return
	}
	o := engine.Order{Task: row.Task, Command: cmd(a)}
	l.m.tell(l.m.tasks, &command{task: o.Task, cmd: o.Command, reply: func(a answer) {
		if !taken(a.err) {
			l.sendOn(o, row.Key)
		}
	}})
}

// sendOn has a task hear all the same which has not taken what it was told, because it has crashed, or is not here any more: the orderForwarder finds it
// wherever it is. Of a member alone the store repeats it.
func (l *limiter) sendOn(o engine.Order, key string) {
	if l.m.cfg.Others == nil {
		l.lookLater(key, l.m.now()+persistence.PermitToldMS)
		return
	}
	l.m.orderForwarder.add(o)
}

// lookLater looks at a key when its rate has room again.
func (l *limiter) lookLater(key string, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set, there := l.later[key]; there && set <= at {
		return
	}
	l.later[key] = at
	l.m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-l.m.now())+time.Millisecond, func() {
		l.mu.Lock()
		if l.later[key] == at {
			delete(l.later, key)
		}
		l.mu.Unlock()
		l.look(key, false)
	})
}

// gain looks at all keys of shards that the member owns from now on: nobody knows what their last owner came to tell.
func (l *limiter) gain(shards persistence.ShardSet) {
	l.m.background(func() {
		for after := ""; l.m.ctx.Err() == nil; {
			keys, err := l.openKeys(shards, after, keysAtOnce)
			if err != nil {
				l.m.pause(time.Second)
				continue
			}
			for _, key := range keys {
				l.look(key, true)
				after = key
			}
			if len(keys) < keysAtOnce {
				return
			}
		}
	})
}

func (l *limiter) openKeys(shards persistence.ShardSet, after string, limit int) ([]string, error) {
	ctx, cancel := l.m.storeCall()
	defer cancel()
	keys, err := l.m.store.OpenKeys(ctx, shards, after, limit)
	l.m.tried(keysNotRead, "", err)
	return keys, err
}

// sweep looks at some keys of the member's shards, again and again at the next ones: word of them may have been lost.
func (l *limiter) sweep() {
	after := ""
	var look func()
	look = func() {
		l.m.background(func() {
			if shards := l.m.owned.shards(); shards == nil || len(shards) > 0 {
				keys, err := l.openKeys(shards, after, sweptAtOnce)
				for _, key := range keys {
					l.look(key, false)
					after = key
				}
				if err == nil && len(keys) < sweptAtOnce {
					after = ""
				}
			}
			if l.m.ctx.Err() == nil {
				l.m.cfg.Host.Clock.AfterFunc(lookForKeys, look)
			}
		})
	}
	l.m.cfg.Host.Clock.AfterFunc(lookForKeys, look)
}

// Stirred says that something has changed about keys of this member's shards.
func (m *Member) Stirred(keys engine.Keys) {
	for _, key := range keys.Names {
		m.limiter.look(key, keys.Anew)
	}
}

// addPermits makes and ends the rows of those who ask for keys, with the events they follow from.
func (t *task) addPermits(c *persistence.Commit, e flow.Effect) {
	if c.Permits == nil {
		c.Permits = &persistence.PermitChanges{}
	}
	switch e := e.(type) {
	case flow.Ask:
		c.Permits.Ask = append(c.Permits.Ask, persistence.PermitRow{
			Holder: flow.JobID(t.id, e.Address), Key: e.Key, Limit: e.Limit, PerMS: e.PerMS, Full: string(e.Full), Priority: e.Priority, Fair: e.Fair,
			AskedAt: e.AskedAt, Turn: e.Turn,
		})
	case flow.Held:
		c.Permits.Hold = append(c.Permits.Hold, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	case flow.Release:
		c.Permits.Release = append(c.Permits.Release, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	}
}

// asksOf takes what is asked of keys out of effects.
func asksOf(effects []flow.Effect) (asks []flow.Ask, others []flow.Effect) {
	for _, e := range effects {
		if ask, ok := e.(flow.Ask); ok {
			asks = append(asks, ask)
			continue
		}
		others = append(others, e)
	}
	return asks, others
}

// asksAnew says that whoever has asked for keys does not know whether they were given.
func (m *Member) asksAnew(asks []flow.Ask) {
	for _, ask := range asks {
		m.limiter.stir(ask.Key, true)
	}
}

// permitsOf finds what a task waits for or has, each as what lets go of it.
func (m *Member) permitsOf(task string) ([]flow.Effect, error) {
	ctx, cancel := m.storeCall()
	defer cancel()
	rows, err := m.store.PermitsOf(ctx, task)
	var effects []flow.Effect
	for _, row := range rows {
		if _, a, err := flow.ParseJobID(row.Holder); err == nil {
			effects = append(effects, flow.Release{Address: a, Key: row.Key})
		}
	}
	return effects, err
}

func aboutPermit(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Granted, flow.Evict:
		return true
	}
	return false
}
