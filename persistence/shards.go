package persistence

import "slices"

// Shards is the number of parts that the tasks of a cluster are divided into. It is part of the
// layout of every store, so it never changes.
const Shards = 1024

// ShardOf returns the shard of a task. The same id must map to the same shard forever, because
// stored data depends on it.
func ShardOf(task string) int {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(task) {
		hash = (hash ^ uint64(task[i])) * 1099511628211
	}
	// FNV-1a alone is skewed for similar ids, so the end of splitmix64 mixes the bits.
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return int((hash ^ hash>>31) % Shards)
}

// ShardSet selects tasks by their shards, each listed once; nil means all tasks.
type ShardSet []int

// Has reports whether the set selects a task.
func (s ShardSet) Has(task string) bool { return s == nil || slices.Contains(s, ShardOf(task)) }

// AllShards returns all shards in order.
func AllShards() []int {
	all := make([]int, Shards)
	for i := range all {
		all[i] = i
	}
	return all
}
