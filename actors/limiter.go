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

// limiter manages the keys of this member's shards: it lets the store decide which attempts and
// tasks get a permit, and notifies their tasks. Tasks that ask for a permit or release one notify
// it, here and from other members. A slow sweep over all keys finds changes whose notices were
// lost. The result does not depend on which member asks the store: the store decides, and names all
// holders that have not answered.
type limiter struct {
	m  *Member
	mu sync.Mutex
	// keys to decide about; true if it is unknown which tasks received the last decision
	pendingKeys map[string]bool
	// those keys that are not being decided, in the order of the requests
	keyQueue   []string
	activeKeys map[string]bool // keys being decided
	runners    int
	// keys of other members that have yet to be notified; true as in pendingKeys
	foreignKeys map[string]bool
	notifying   bool
	scheduledAt map[string]int64 // keys whose rates have room again, by time

	rulings, failures atomic.Int64 // decisions requested from the store, and failed ones
}

// maxRulers is how many decisions run at once. keySweepInterval is the pause between sweeps,
// keySweepBatch how many keys a sweep covers, and keyReadBatch how many keys one read returns.
const (
	maxRulers        = 4
	keySweepInterval = 5 * time.Second
	keySweepBatch    = 100
	keyReadBatch     = 1000
)

func newLimiter(m *Member) *limiter {
	return &limiter{m: m, pendingKeys: map[string]bool{}, activeKeys: map[string]bool{},
		foreignKeys: map[string]bool{}, scheduledAt: map[string]int64{}}
}

// notifyKeyChange reports that a task asks for a permit of a key, or releases one. It never blocks.
func (l *limiter) notifyKeyChange(key string, anew bool) {
	if l.m.owned.ownsTask(key) {
		l.enqueueKey(key, anew)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.foreignKeys[key] = l.foreignKeys[key] || anew
	if !l.notifying {
		l.notifying = true
		l.m.runBackground(l.notifyOwners)
	}
}

// notifyOwners notifies the owners of keys, in one batch.
func (l *limiter) notifyOwners() {
	l.mu.Lock()
	others := l.foreignKeys
	l.foreignKeys, l.notifying = map[string]bool{}, false
	l.mu.Unlock()
	said := map[bool]*engine.Keys{false: {}, true: {Anew: true}}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		anew := others[key]
		if l.m.owned.ownsTask(key) { // the member owns it now
			l.enqueueKey(key, anew)
			continue
		}
		said[anew].Names = append(said[anew].Names, key)
	}
	l.m.cfg.Others.Stir(*said[false])
	l.m.cfg.Others.Stir(*said[true])
}

// enqueueKey queues a key for a decision.
func (l *limiter) enqueueKey(key string, anew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, there := l.pendingKeys[key]
	l.pendingKeys[key] = was || anew
	if !there && !l.activeKeys[key] {
		l.keyQueue = append(l.keyQueue, key)
	}
	if l.runners < maxRulers {
		l.runners++
		l.m.runBackground(l.rulePending)
	}
}

// countPending returns how many keys wait for a decision.
func (l *limiter) countPending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pendingKeys)
}

// rulePending decides until no key is pending.
func (l *limiter) rulePending() {
	for {
		q, ok := l.takeKey()
		if !ok {
			return
		}
		l.ruleKey(q)
	}
}

// takeKey takes the longest pending key that is not being decided, so that a busy key does not
// delay others. A stopping member leaves the keys to the next owners.
func (l *limiter) takeKey() (q persistence.PermitQuestion, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.keyQueue) == 0 || l.m.stopping.Load() {
		l.runners--
		return q, false
	}
	q.Key = l.keyQueue[0]
	q.Anew = l.pendingKeys[q.Key]
	l.keyQueue = l.keyQueue[1:]
	delete(l.pendingKeys, q.Key)
	l.activeKeys[q.Key] = true
	return q, true
}

// isIdle reports whether no decision is in progress.
func (l *limiter) isIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runners == 0
}

// releaseKey allows the next decision about a key.
func (l *limiter) releaseKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.activeKeys, key)
	if _, open := l.pendingKeys[key]; open {
		l.keyQueue = append(l.keyQueue, key)
	}
}

func (l *limiter) ruleKey(q persistence.PermitQuestion) {
	ctx, cancel := l.m.storeCall()
	ruling, err := l.m.store.Rule(ctx, l.m.incarnation, q)
	cancel()
	l.rulings.Add(1)
	l.releaseKey(q.Key)
	switch {
	case l.m.ctx.Err() != nil || errors.Is(err, persistence.ErrFenced):
		return
	case err != nil:
		l.failures.Add(1)
		l.m.sleepFor(storePause(l.m.outages.recordFailure(notRuled, q.Key, err)))
		l.enqueueKey(q.Key, true) // the store may have decided nevertheless
		return
	}
	l.m.outages.recordSuccess(notRuled, q.Key)
	l.sendRuling(&ruling)
	if ruling.More {
		l.enqueueKey(q.Key, false)
	}
	if ruling.Retold {
		l.scheduleKey(q.Key, l.m.nowMillis()+persistence.PermitToldMS)
	}
	if ruling.Again > 0 {
		l.scheduleKey(q.Key, ruling.Again)
	}
}

// sendRuling notifies the tasks that a decision concerns, on whichever member they are.
func (l *limiter) sendRuling(r *persistence.Ruling) {
	for _, row := range r.Given {
		l.sendToTask(&row, func(a flow.Address) flow.Command { return flow.Granted{Address: a, Key: row.Key} })
	}
	for _, row := range r.Refused {
		l.sendToTask(&row, func(a flow.Address) flow.Command { return flow.Granted{Address: a, Key: row.Key, Refused: true} })
	}
	for _, row := range r.Evicted {
		l.sendToTask(&row, func(a flow.Address) flow.Command { return flow.Evict{Address: a, Key: row.Key} })
	}
}

func (l *limiter) sendToTask(row *persistence.PermitRow, cmd func(flow.Address) flow.Command) {
	_, a, err := flow.ParseJobID(row.Holder)
	if err != nil {
		l.m.log.Error("the holder of a key has no name that means anything", "task", row.Task, "error", err)
		return
	}
	o := engine.Order{Task: row.Task, Command: cmd(a)}
	l.m.sendMessage(l.m.tasks, &taskCommand{task: o.Task, command: o.Command, reply: func(a commandAnswer) {
		if !isDelivered(a.err) {
			l.forwardToOwner(o, row.Key)
		}
	}})
}

// forwardToOwner delivers a decision to a task that did not take it, because it crashed or moved:
// the orderForwarder finds its owner. A sole member asks the store again later.
func (l *limiter) forwardToOwner(o engine.Order, key string) {
	if l.m.cfg.Others == nil {
		l.scheduleKey(key, l.m.nowMillis()+persistence.PermitToldMS)
		return
	}
	l.m.orderForwarder.enqueueOrder(o)
}

// scheduleKey queues a key at the time when its rate has room again.
func (l *limiter) scheduleKey(key string, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set, there := l.scheduledAt[key]; there && set <= at {
		return
	}
	l.scheduledAt[key] = at
	l.m.cfg.Host.Clock.AfterFunc(flow.Milliseconds(at-l.m.nowMillis())+time.Millisecond, func() {
		l.mu.Lock()
		if l.scheduledAt[key] == at {
			delete(l.scheduledAt, key)
		}
		l.mu.Unlock()
		l.enqueueKey(key, false)
	})
}

// enqueueShards queues all keys of newly owned shards, because the notices of their last owner may
// be lost.
func (l *limiter) enqueueShards(shards persistence.ShardSet) {
	l.m.runBackground(func() {
		for after := ""; l.m.ctx.Err() == nil; {
			keys, err := l.openKeys(shards, after, keyReadBatch)
			if err != nil {
				l.m.sleepFor(time.Second)
				continue
			}
			for _, key := range keys {
				l.enqueueKey(key, true)
				after = key
			}
			if len(keys) < keyReadBatch {
				return
			}
		}
	})
}

func (l *limiter) openKeys(shards persistence.ShardSet, after string, limit int) ([]string, error) {
	ctx, cancel := l.m.storeCall()
	defer cancel()
	keys, err := l.m.store.OpenKeys(ctx, shards, after, limit)
	l.m.recordStoreCall(keysNotRead, "", err)
	return keys, err
}

// sweepKeys periodically queues the next keys of the member's shards, because notices may be lost.
func (l *limiter) sweepKeys() {
	after := ""
	var look func()
	look = func() {
		l.m.runBackground(func() {
			if shards := l.m.owned.ownedShards(); shards == nil || len(shards) > 0 {
				keys, err := l.openKeys(shards, after, keySweepBatch)
				for _, key := range keys {
					l.enqueueKey(key, false)
					after = key
				}
				if err == nil && len(keys) < keySweepBatch {
					after = ""
				}
			}
			if l.m.ctx.Err() == nil {
				l.m.cfg.Host.Clock.AfterFunc(keySweepInterval, look)
			}
		})
	}
	l.m.cfg.Host.Clock.AfterFunc(keySweepInterval, look)
}

// Stirred reports that keys of this member's shards have changed.
func (m *Member) Stirred(keys engine.Keys) {
	for _, key := range keys.Names {
		m.limiter.enqueueKey(key, keys.Anew)
	}
}

// addPermits adds the changes to permit rows to the commit of the events that they follow from.
func (t *task) addPermits(c *persistence.Commit, e flow.Effect) {
	if c.Permits == nil {
		c.Permits = &persistence.PermitChanges{}
	}
	switch e := e.(type) {
	case flow.Ask:
		c.Permits.Ask = append(c.Permits.Ask, persistence.PermitRow{
			Holder: flow.JobID(t.id, e.Address), Key: e.Key, Limit: e.Limit, PerMS: e.PerMS,
			Full: string(e.Full), Priority: e.Priority, Fair: e.Fair,
			AskedAt: e.AskedAt, Turn: e.Turn,
		})
	case flow.Held:
		c.Permits.Hold = append(c.Permits.Hold, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	case flow.Release:
		c.Permits.Release = append(c.Permits.Release, persistence.PermitID{Holder: flow.JobID(t.id, e.Address), Key: e.Key})
	}
}

// splitAsks separates permit requests from other effects.
func splitAsks(effects []flow.Effect) (asks []flow.Ask, others []flow.Effect) {
	for _, e := range effects {
		if ask, ok := e.(flow.Ask); ok {
			asks = append(asks, ask)
			continue
		}
		others = append(others, e)
	}
	return asks, others
}

// requeueAsks queues the keys of tasks that do not know whether their permits were granted.
func (m *Member) requeueAsks(asks []flow.Ask) {
	for _, ask := range asks {
		m.limiter.notifyKeyChange(ask.Key, true)
	}
}

// permitsOf finds the permits that a task has or waits for. It returns the effects that release
// them.
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

func isPermitCommand(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Granted, flow.Evict:
		return true
	}
	return false
}
