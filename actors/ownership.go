package actors

import (
	"sync/atomic"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// ownership says which shards' tasks are this member's. The actor of all tasks changes it and refuses what is for others;
// to everybody else it is a hint.
type ownership struct {
	fixed bool                             // all are, for as long as the member lives
	since [persistence.Shards]atomic.Int64 // when it got each, by the store's time; 0 = it is not the member's
}

// ownAll gives a member all tasks for good.
func (o *ownership) ownAll(now int64) {
	o.fixed = true
	for shard := range o.since {
		o.set(shard, now)
	}
}

func (o *ownership) set(shard int, now int64) { o.since[shard].Store(max(now, 1)) }

func (o *ownership) has(shard int) bool { return o.since[shard].Load() != 0 }

// owns says whether a task is this member's.
func (o *ownership) owns(task string) bool { return o.fixed || o.has(persistence.ShardOf(task)) }

// sinceOf is when the member got a task.
func (o *ownership) sinceOf(task string) int64 {
	if o.fixed {
		return o.since[0].Load()
	}
	return o.since[persistence.ShardOf(task)].Load()
}

// shards are those that the member owns; nil = all.
func (o *ownership) shards() persistence.ShardSet {
	if o.fixed {
		return nil
	}
	owned := persistence.ShardSet{}
	for shard := range o.since {
		if o.has(shard) {
			owned = append(owned, shard)
		}
	}
	return owned
}

func errMoved(task string) error {
	return flow.Errorf(flow.Moved, "task %s has moved to another member: ask again", task)
}
