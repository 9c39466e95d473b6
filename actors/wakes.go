package actors

import (
	"slices"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// The look-out for tasks at rest that are due: how often, and how far ahead.
const (
	wakeEvery = time.Second
	wakeAhead = 2500 * time.Millisecond
	wakeLimit = 20_000
)

// lookForWakes brings tasks at rest into memory shortly before they are due; their own alarms do
// the rest.
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

// wakeDue brings the tasks of shards into memory that are about to be due.
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

// How many unfinished tasks are looked for at once, and how many are being taken up at most:
// whoever asks for another one does not stand behind all of them.
const (
	recoverBatch  = 1000
	maxRecovering = 2 * recoverBatch
)

// recoverUnfinished takes up the tasks of shards that were under way when somebody last had them.
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

// reserveRecovery waits until there is room for more tasks to be taken up: not many others are, and
// little of what they lead to has yet to be stored. For that it waits for a second at most: who is
// always busy takes them up, too. False: the member goes.
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

// listUnfinished are the next ones, of shards that are still the member's.
func (m *Member) listUnfinished(shards persistence.ShardSet, after string) ([]string, error) {
	if shards != nil {
		shards = slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return !m.owned.hasShard(shard) })
	}
	ctx, cancel := m.storeCall()
	defer cancel()
	return m.store.Unfinished(ctx, shards, after, recoverBatch)
}
