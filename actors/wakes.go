package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// wakeEvery is the pause between searches for resting tasks that are due. wakeAhead is how far they
// look ahead, and wakeLimit how many tasks they return.
const (
	wakeEvery = time.Second
	wakeAhead = 2500 * time.Millisecond
	wakeLimit = 20_000
)

// lookForWakes loads resting tasks shortly before they are due; their own alarms do the rest.
func (m *Member) lookForWakes() {
	var look func()
	look = func() {
		m.runBackground(func() {
			if shards := m.owned.ownedShards(); shards == nil || len(shards) > 0 {
				m.wakeDue(shards)
			}
			if m.ctx.Err() == nil {
				m.cfg.Host.Clock.AfterFunc(wakeEvery, look)
			}
		})
	}
	look()
}

// wakeDue loads the tasks of shards that are due soon.
func (m *Member) wakeDue(shards persistence.ShardSet) {
	ctx, cancel := m.storeCall()
	defer cancel()
	wakes, err := m.store.DueWakes(ctx, shards, m.nowMillis()+wakeAhead.Milliseconds(), wakeLimit)
	m.recordStoreCall(dueNotRead, "", err)
	if len(wakes) == 0 || m.stopping.Load() {
		return
	}
	ids := make([]string, len(wakes))
	for i, w := range wakes {
		ids[i] = w.Task
	}
	m.sendMessage(m.tasks, wakeTasks{tasks: ids})
}

// recoverBatch is how many unfinished tasks one read returns. maxRecovering is how many are loaded
// at once, so that requests for other tasks do not wait behind all of them.
const (
	recoverBatch  = 1000
	maxRecovering = 2 * recoverBatch
)

// recoverUnfinished loads the tasks of shards that were unfinished at their last owner.
func (m *Member) recoverUnfinished(shards persistence.ShardSet) {
	m.runBackground(func() {
		for after := ""; m.ctx.Err() == nil; {
			if !m.reserveRecovery() {
				return
			}
			ids, err := m.listUnfinished(shards, after)
			m.recoveries.Add(int64(len(ids) - recoverBatch))
			switch {
			case m.ctx.Err() != nil:
				return
			case err != nil:
				m.recordStoreCall(unfinishedNotRead, "", err)
				m.sleepFor(time.Second)
			case len(ids) == 0:
				m.recordStoreCall(unfinishedNotRead, "", nil)
				return
			default:
				m.sendMessage(m.tasks, wakeTasks{ids, func() { m.recoveries.Add(-1) }})
				after = ids[len(ids)-1]
			}
		}
	})
}

// reserveRecovery waits until there is room to load more tasks: not many others are loading, and
// few commits are waiting. It waits for the commits a second at most, so that a permanently busy
// member recovers tasks, too. It returns false if the member stops.
func (m *Member) reserveRecovery() bool {
	for waited := time.Duration(0); ; waited += restRecheck {
		busy := waited < time.Second && m.uncommitted.Load() > int64(m.cfg.MaxUncommitted/2)
		if !busy {
			if m.recoveries.Add(recoverBatch) <= maxRecovering {
				return true
			}
			m.recoveries.Add(-recoverBatch)
		}
		if !m.sleepFor(restRecheck) {
			return false
		}
	}
}

// listUnfinished returns the next unfinished tasks of shards that the member still owns.
func (m *Member) listUnfinished(shards persistence.ShardSet, after string) ([]string, error) {
	if shards != nil {
		shards = slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return !m.owned.hasShard(shard) })
	}
	ctx, cancel := m.storeCall()
	defer cancel()
	return m.store.Unfinished(ctx, shards, after, recoverBatch)
}
