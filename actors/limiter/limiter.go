// Package limiter decides, through the store, which attempts and tasks get permits of the keys that
// this member owns. A Limiter is a structure with a lock.
package limiter

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Limiter manages the keys of this member's shards. It lets the store decide which attempts and
// tasks get a permit, and notifies their tasks. Tasks on any member notify it when they request or
// release permits. A slow sweep over all keys covers lost notices. The result does not depend on
// the asking member, because the store decides.
type Limiter struct {
	cfg Config

	mu sync.Mutex
	// keys to decide; true if it is unknown which tasks received the last decision
	pendingKeys map[string]bool
	// pending keys that are not being decided, in order of the requests
	keyQueue   []string
	activeKeys map[string]bool // keys being decided
	runners    int
	// keys of other members to notify; true as in pendingKeys
	foreignKeys map[string]bool
	notifying   bool
	scheduledAt map[string]int64 // when the rates of keys have room again, in Unix milliseconds

	Rulings, Failures atomic.Int64 // decisions requested from the store, and failed ones
}

// maxRulers is how many decisions run at once. keySweepInterval is the pause between sweeps.
// keySweepBatch is how many keys one sweep covers, and keyReadBatch how many keys one read returns.
const (
	maxRulers        = 4
	keySweepInterval = 5 * time.Second
	keySweepBatch    = 100
	keyReadBatch     = 1000
)

// Config configures a limiter.
type Config struct {
	Store       Store
	Incarnation string
	Shards      Shards
	Now         func() int64 // the store's time in Unix milliseconds
	Work        *background.Work
	Outages     Outages
	Log         *slog.Logger
	// IsStopping reports whether the member stops.
	IsStopping func() bool
	// SendOrder delivers an order to a task of this member and reports the task's answer.
	SendOrder func(o engine.Order, answered func(err error))
	// NotifyKeyOwners notifies the owners of keys that these have changed. Forward delivers an
	// order to the owner of its task on any member. Both are nil if the member owns all tasks.
	NotifyKeyOwners func(keys engine.Keys)
	Forward         func(o engine.Order)
}

// Store is the part of the store that a limiter needs.
type Store interface {
	Rule(ctx context.Context, incarnation string, q persistence.PermitQuestion) (persistence.Ruling, error)
	OpenKeys(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error)
}

// Outages receives the results of store calls.
type Outages interface {
	RecordFailure(what, thing string, err error) (times int)
	RecordSuccess(what, thing string)
	RecordCall(what, thing string, err error)
}

// Shards knows which tasks this member owns.
type Shards interface {
	OwnsTask(task string) bool
	OwnedShards() persistence.ShardSet
}

// Log messages about outages.
const (
	notRuled    = "deciding about a concurrency key failed"
	keysNotRead = "reading awaited concurrency keys failed"
)

// New creates the limiter of a member.
func New(cfg Config) *Limiter {
	return &Limiter{cfg: cfg, pendingKeys: map[string]bool{}, activeKeys: map[string]bool{},
		foreignKeys: map[string]bool{}, scheduledAt: map[string]int64{}}
}

// NotifyKeyChange reports that a task requests or releases a permit of a key. It never blocks.
func (l *Limiter) NotifyKeyChange(key string, anew bool) {
	if l.cfg.Shards.OwnsTask(key) {
		l.EnqueueKey(key, anew)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.foreignKeys[key] = l.foreignKeys[key] || anew
	if !l.notifying {
		l.notifying = true
		l.cfg.Work.Run(l.notifyOwners)
	}
}

// notifyOwners notifies the owners of keys, in one batch.
func (l *Limiter) notifyOwners() {
	l.mu.Lock()
	others := l.foreignKeys
	l.foreignKeys, l.notifying = map[string]bool{}, false
	l.mu.Unlock()
	said := map[bool]*engine.Keys{false: {}, true: {Anew: true}}
	for _, key := range slices.Sorted(maps.Keys(others)) {
		anew := others[key]
		if l.cfg.Shards.OwnsTask(key) { // this member owns the key now
			l.EnqueueKey(key, anew)
			continue
		}
		said[anew].Names = append(said[anew].Names, key)
	}
	l.cfg.NotifyKeyOwners(*said[false])
	l.cfg.NotifyKeyOwners(*said[true])
}

// EnqueueKey queues a key for a decision.
func (l *Limiter) EnqueueKey(key string, anew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, there := l.pendingKeys[key]
	l.pendingKeys[key] = was || anew
	if !there && !l.activeKeys[key] {
		l.keyQueue = append(l.keyQueue, key)
	}
	if l.runners < maxRulers {
		l.runners++
		l.cfg.Work.Run(l.rulePending)
	}
}

// CountPending returns how many keys wait for a decision.
func (l *Limiter) CountPending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pendingKeys)
}

// rulePending requests decisions from the store until no key is pending.
func (l *Limiter) rulePending() {
	for {
		q, ok := l.takeKey()
		if !ok {
			return
		}
		l.ruleKey(q)
	}
}

// takeKey takes the longest pending key that is not being decided, so that a busy key does not
// delay others. A stopping member takes no key, because the next owners decide.
func (l *Limiter) takeKey() (q persistence.PermitQuestion, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.keyQueue) == 0 || l.cfg.IsStopping() {
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

// IsIdle reports whether no decision is in progress.
func (l *Limiter) IsIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runners == 0
}

// releaseKey allows the next decision about a key.
func (l *Limiter) releaseKey(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.activeKeys, key)
	if _, open := l.pendingKeys[key]; open {
		l.keyQueue = append(l.keyQueue, key)
	}
}

func (l *Limiter) ruleKey(q persistence.PermitQuestion) {
	ctx, cancel := l.cfg.Work.StoreCall()
	ruling, err := l.cfg.Store.Rule(ctx, l.cfg.Incarnation, q)
	cancel()
	l.Rulings.Add(1)
	l.releaseKey(q.Key)
	switch {
	case l.cfg.Work.HasEnded() || errors.Is(err, persistence.ErrFenced):
		return
	case err != nil:
		l.Failures.Add(1)
		l.cfg.Work.Sleep(background.StorePause(l.cfg.Outages.RecordFailure(notRuled, q.Key, err)))
		l.EnqueueKey(q.Key, true) // the store may have decided despite the error
		return
	}
	l.cfg.Outages.RecordSuccess(notRuled, q.Key)
	l.sendRuling(&ruling)
	if ruling.More {
		l.EnqueueKey(q.Key, false)
	}
	if ruling.Retold {
		l.scheduleKey(q.Key, l.cfg.Now()+persistence.PermitToldMS)
	}
	if ruling.Again > 0 {
		l.scheduleKey(q.Key, ruling.Again)
	}
}

// sendRuling notifies the affected tasks of a decision, on any member.
func (l *Limiter) sendRuling(r *persistence.Ruling) {
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

func (l *Limiter) sendToTask(row *persistence.PermitRow, cmd func(flow.Address) flow.Command) {
	_, a, err := flow.ParseJobID(row.Holder)
	if err != nil {
		l.cfg.Log.Error("holder of a concurrency key has an invalid name", "task", row.Task, "error", err)
		return
	}
	o := engine.Order{Task: row.Task, Command: cmd(a)}
	l.cfg.SendOrder(o, func(err error) {
		if !engine.IsDelivered(err) {
			l.forwardToOwner(o, row.Key)
		}
	})
}

// forwardToOwner delivers a decision to a task that did not accept it, because the task crashed or
// moved. A sole member asks the store again later instead.
func (l *Limiter) forwardToOwner(o engine.Order, key string) {
	if l.cfg.Forward == nil {
		l.scheduleKey(key, l.cfg.Now()+persistence.PermitToldMS)
		return
	}
	l.cfg.Forward(o)
}

// scheduleKey queues a key at the time when its rate has room again.
func (l *Limiter) scheduleKey(key string, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if set, there := l.scheduledAt[key]; there && set <= at {
		return
	}
	l.scheduledAt[key] = at
	l.cfg.Work.After(flow.Milliseconds(at-l.cfg.Now())+time.Millisecond, func() {
		l.mu.Lock()
		if l.scheduledAt[key] == at {
			delete(l.scheduledAt, key)
		}
		l.mu.Unlock()
		l.EnqueueKey(key, false)
	})
}

// EnqueueShards queues all keys of newly owned shards, because notices to their last owner may be
// lost.
func (l *Limiter) EnqueueShards(shards persistence.ShardSet) {
	l.cfg.Work.Run(func() {
		for after := ""; !l.cfg.Work.HasEnded(); {
			keys, err := l.openKeys(shards, after, keyReadBatch)
			if err != nil {
				l.cfg.Work.Sleep(time.Second)
				continue
			}
			for _, key := range keys {
				l.EnqueueKey(key, true)
				after = key
			}
			if len(keys) < keyReadBatch {
				return
			}
		}
	})
}

func (l *Limiter) openKeys(shards persistence.ShardSet, after string, limit int) ([]string, error) {
	ctx, cancel := l.cfg.Work.StoreCall()
	defer cancel()
	keys, err := l.cfg.Store.OpenKeys(ctx, shards, after, limit)
	l.cfg.Outages.RecordCall(keysNotRead, "", err)
	return keys, err
}

// SweepKeys periodically queues some keys of the member's shards, because notices may be lost.
func (l *Limiter) SweepKeys() {
	after := ""
	var look func()
	look = func() {
		l.cfg.Work.Run(func() {
			if shards := l.cfg.Shards.OwnedShards(); shards == nil || len(shards) > 0 {
				keys, err := l.openKeys(shards, after, keySweepBatch)
				for _, key := range keys {
					l.EnqueueKey(key, false)
					after = key
				}
				if err == nil && len(keys) < keySweepBatch {
					after = ""
				}
			}
			if !l.cfg.Work.HasEnded() {
				l.cfg.Work.After(keySweepInterval, look)
			}
		})
	}
	l.cfg.Work.After(keySweepInterval, look)
}
