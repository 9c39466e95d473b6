package actors

import (
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// The look-out for tasks at rest that are due: how often, and how far ahead.
const (
	wakeEvery = time.Second
	wakeAhead = 2500 * time.Millisecond
	wakeLimit = 20_000
)

// lookForWakes brings tasks at rest into memory shortly before they are due; their own alarms do the
// rest.
func (m *Member) lookForWakes() {
	var look func()
	look = func() {
		m.background(func() {
			if shards := m.owned.shards(); shards == nil || len(shards) > 0 {
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
	wakes, err := m.store.DueWakes(ctx, shards, m.now()+wakeAhead.Milliseconds(), wakeLimit)
	if err != nil && m.ctx.Err() == nil {
		m.log.Warn("due tasks could not be read from the store", "error", err)
	}
	if len(wakes) == 0 || m.stopping.Load() {
		return
	}
	ids := make([]string, len(wakes))
	for i, w := range wakes {
		ids[i] = w.Task
	}
	m.tell(m.tasks, wakeUp{ids})
}

// recoverBatch is how many unfinished tasks are taken up at once after a start.
const recoverBatch = 1000

// recoverUnfinished takes up the tasks of shards that were under way when somebody last had them.
func (m *Member) recoverUnfinished(shards persistence.ShardSet) {
	m.background(func() {
		for after := ""; m.ctx.Err() == nil; {
			ctx, cancel := m.storeCall()
			ids, err := m.store.Unfinished(ctx, shards, after, recoverBatch)
			cancel()
			switch {
			case m.ctx.Err() != nil:
				return
			case err != nil:
				m.log.Warn("unfinished tasks could not be read from the store", "error", err)
				m.pause(time.Second)
			case len(ids) == 0:
				return
			default:
				m.tell(m.tasks, wakeUp{ids})
				after = ids[len(ids)-1]
			}
		}
	})
}
