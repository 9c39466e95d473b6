// Package wakes finds tasks in the store that are due or were left unfinished by their last owner,
// and loads them. A Waker is a structure with atomics.
package wakes

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/persistence"
)

// wakeEvery is the pause between searches for due tasks. wakeAhead is how far a search looks ahead,
// and wakeLimit how many tasks it returns.
const (
	wakeEvery = time.Second
	wakeAhead = 2500 * time.Millisecond
	wakeLimit = 20_000
)

// Log messages about outages.
const (
	unfinishedNotRead = "reading unfinished tasks failed"
	dueNotRead        = "reading due tasks failed"
)

// Waker finds tasks in the store that are due or unfinished, and loads them.
type Waker struct {
	cfg        Config
	recoveries atomic.Int64 // unfinished tasks that are being loaded
}

// Config configures a waker.
type Config struct {
	Store      Store
	Shards     Shards
	Now        func() int64 // the store's time in Unix milliseconds
	Work       *background.Work
	Outages    Outages
	IsStopping func() bool
	// Uncommitted returns how many commits wait for the store. Above MaxUncommitted, the recovery
	// of unfinished tasks pauses.
	Uncommitted    func() int64
	MaxUncommitted int64
	// Wake loads tasks. For each task, it calls onLoaded, if set, when the task is loaded or cannot
	// be.
	Wake func(tasks []string, onLoaded func())
}

// Store is the part of the store that a waker needs.
type Store interface {
	DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error)
	Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error)
}

// Shards knows which tasks this member owns.
type Shards interface {
	OwnedShards() persistence.ShardSet
	HasShard(shard int) bool
}

// Outages receives the results of store calls.
type Outages interface {
	RecordCall(what, thing string, err error)
}

// New creates the waker of a member.
func New(cfg Config) *Waker { return &Waker{cfg: cfg} }

// recoveryRecheck is the pause before a recovery checks again for room.
const recoveryRecheck = 10 * time.Millisecond

// LookForDue periodically loads resting tasks shortly before they are due. The alarms of the loaded
// tasks do the rest.
func (w *Waker) LookForDue() {
	var look func()
	look = func() {
		w.cfg.Work.Run(func() {
			if shards := w.cfg.Shards.OwnedShards(); shards == nil || len(shards) > 0 {
				w.WakeDue(shards)
			}
			if !w.cfg.Work.HasEnded() {
				w.cfg.Work.After(wakeEvery, look)
			}
		})
	}
	look()
}

// WakeDue loads the tasks of shards that are due soon.
func (w *Waker) WakeDue(shards persistence.ShardSet) {
	ctx, cancel := w.cfg.Work.StoreCall()
	defer cancel()
	wakes, err := w.cfg.Store.DueWakes(ctx, shards, w.cfg.Now()+wakeAhead.Milliseconds(), wakeLimit)
	w.cfg.Outages.RecordCall(dueNotRead, "", err)
	if len(wakes) == 0 || w.cfg.IsStopping() {
		return
	}
	ids := make([]string, len(wakes))
	for i, wake := range wakes {
		ids[i] = wake.Task
	}
	w.cfg.Wake(ids, nil)
}

// recoverBatch is how many unfinished tasks one read returns. maxRecovering is how many load at
// once, so that requests for other tasks do not wait for all of them.
const (
	recoverBatch  = 1000
	maxRecovering = 2 * recoverBatch
)

// RecoverUnfinished loads the tasks of shards that were unfinished at their last owner.
func (w *Waker) RecoverUnfinished(shards persistence.ShardSet) {
	w.cfg.Work.Run(func() {
		for after := ""; !w.cfg.Work.HasEnded(); {
			if !w.reserveRecovery() {
				return
			}
			ids, err := w.listUnfinished(shards, after)
			w.recoveries.Add(int64(len(ids) - recoverBatch))
			switch {
			case w.cfg.Work.HasEnded():
				return
			case err != nil:
				w.cfg.Outages.RecordCall(unfinishedNotRead, "", err)
				w.cfg.Work.Sleep(time.Second)
			case len(ids) == 0:
				w.cfg.Outages.RecordCall(unfinishedNotRead, "", nil)
				return
			default:
				w.cfg.Wake(ids, func() { w.recoveries.Add(-1) })
				after = ids[len(ids)-1]
			}
		}
	})
}

// reserveRecovery waits until there is room to load more tasks: few others are loading, and few
// commits are waiting. It waits at most a second for the commits, so a busy member also makes
// progress. It returns false if the member stops.
func (w *Waker) reserveRecovery() bool {
	for waited := time.Duration(0); ; waited += recoveryRecheck {
		busy := waited < time.Second && w.cfg.Uncommitted() > w.cfg.MaxUncommitted
		if !busy {
			if w.recoveries.Add(recoverBatch) <= maxRecovering {
				return true
			}
			w.recoveries.Add(-recoverBatch)
		}
		if !w.cfg.Work.Sleep(recoveryRecheck) {
			return false
		}
	}
}

// listUnfinished returns the next unfinished tasks of shards that the member still owns.
func (w *Waker) listUnfinished(shards persistence.ShardSet, after string) ([]string, error) {
	if shards != nil {
		shards = slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return !w.cfg.Shards.HasShard(shard) })
	}
	ctx, cancel := w.cfg.Work.StoreCall()
	defer cancel()
	return w.cfg.Store.Unfinished(ctx, shards, after, recoverBatch)
}
