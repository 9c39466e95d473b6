package actors

import (
	"sync/atomic"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// shardOwnership stores which shards this member owns. The actor of all tasks changes it and
// refuses commands for others; for all other code it is a hint.
type shardOwnership struct {
	ownsAll bool // the member owns all shards until it ends
	// when it got each shard, by the store's time; 0 if it does not own it
	since [persistence.Shards]atomic.Int64
}

// ownAll makes the member the permanent owner of all tasks.
func (o *shardOwnership) ownAll(now int64) {
	o.ownsAll = true
	for shard := range o.since {
		o.addShard(shard, now)
	}
}

func (o *shardOwnership) addShard(shard int, now int64) { o.since[shard].Store(max(now, 1)) }

func (o *shardOwnership) hasShard(shard int) bool { return o.since[shard].Load() != 0 }

// ownsTask reports whether the member owns a task.
func (o *shardOwnership) ownsTask(task string) bool {
	return o.ownsAll || o.hasShard(persistence.ShardOf(task))
}

// sinceOf returns when the member got a task.
func (o *shardOwnership) sinceOf(task string) int64 {
	if o.ownsAll {
		return o.since[0].Load()
	}
	return o.since[persistence.ShardOf(task)].Load()
}

// ownedShards returns the shards that the member owns; nil if all.
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
