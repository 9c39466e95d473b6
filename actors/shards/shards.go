// Package shards tracks which shards belong to this member. The tasks actor changes the ownership;
// all other code reads it as a hint.
package shards

import (
	"sync/atomic"

	"github.com/troupe-engine/troupe/persistence"
)

// Ownership stores which shards this member owns. The tasks actor changes it and refuses commands
// for other shards.
type Ownership struct {
	ownsAll bool // the member owns all shards until it ends
	// when the member got each shard, by the store's time; 0 if not owned
	since [persistence.Shards]atomic.Int64
}

// OwnAll makes the member the permanent owner of all tasks.
func (o *Ownership) OwnAll(now int64) {
	o.ownsAll = true
	for shard := range o.since {
		o.AddShard(shard, now)
	}
}

// OwnsAll reports whether the member owns all shards until it ends.
func (o *Ownership) OwnsAll() bool { return o.ownsAll }

// AddShard makes the member the owner of a shard.
func (o *Ownership) AddShard(shard int, now int64) { o.since[shard].Store(max(now, 1)) }

// DropShard ends the ownership of a shard.
func (o *Ownership) DropShard(shard int) { o.since[shard].Store(0) }

// HasShard reports whether the member owns a shard.
func (o *Ownership) HasShard(shard int) bool { return o.since[shard].Load() != 0 }

// OwnsTask reports whether the member owns a task.
func (o *Ownership) OwnsTask(task string) bool {
	return o.ownsAll || o.HasShard(persistence.ShardOf(task))
}

// SinceOf returns when the member became the owner of a task, in Unix milliseconds; 0 if it is not
// the owner.
func (o *Ownership) SinceOf(task string) int64 {
	if o.ownsAll {
		return o.since[0].Load()
	}
	return o.since[persistence.ShardOf(task)].Load()
}

// OwnedShards returns the shards that the member owns; nil if all.
func (o *Ownership) OwnedShards() persistence.ShardSet {
	if o.ownsAll {
		return nil
	}
	owned := persistence.ShardSet{}
	for shard := range o.since {
		if o.HasShard(shard) {
			owned = append(owned, shard)
		}
	}
	return owned
}
