package actors

import (
	"sync/atomic"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shardOwnership says which shards' tasks are this member's. The actor of all tasks changes it and
// refuses what is for others; to everybody else it is a hint.
type shardOwnership struct {
	ownsAll bool                             // all are, for as long as the member lives
	since   [persistence.Shards]atomic.Int64 // when it got each, by the store's time; 0 = it is not the member's
}

// ownAll gives a member all tasks for good.
func (o *shardOwnership) ownAll(now int64) {
	o.ownsAll = true
	for shard := range o.since {
		o.addShard(shard, now)
	}
}

func (o *shardOwnership) addShard(shard int, now int64) { o.since[shard].Store(max(now, 1)) }

func (o *shardOwnership) hasShard(shard int) bool { return o.since[shard].Load() != 0 }

// ownsTask reports whether a task is this member's.
func (o *shardOwnership) ownsTask(task string) bool {
	return o.ownsAll || o.hasShard(persistence.ShardOf(task))
}

// sinceOf is when the member got a task.
func (o *shardOwnership) sinceOf(task string) int64 {
	if o.ownsAll {
		return o.since[0].Load()
	}
	return o.since[persistence.ShardOf(task)].Load()
}

// ownedShards are those that the member owns; nil = all.
func (o *shardOwnership) ownedShards() persistence.ShardSet {
	if o.ownsAll {
		return nil
	}
	owned := persistence.ShardSet{}
	for shard := range o.since {
		if o.hasShard(shard) {
			owned = append(owned, shard)
		}
	}
	return owned
}

func errMoved(task string) error {
	return flow.Errorf(flow.Moved, "task %s has moved to another member: ask again", task)
}
