package persistence

import "slices"

// Shards is how many parts the tasks of a cluster are divided into. A store is made for as many, so
// it never changes.
const Shards = 1024

// ShardOf says in which part a task is. It is a promise to what is stored: the same id is in the
// same part for ever.
func ShardOf(task string) int {
	hash := uint64(14695981039346656037) // FNV-1a …
	for i := range len(task) {
		hash = (hash ^ uint64(task[i])) * 1099511628211
	}
	// … which alone is skewed for ids that resemble each other: mixed by the end of splitmix64.
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return int((hash ^ hash>>31) % Shards)
}

// ShardSet picks tasks by their shards, each named once; nil = all of them.
type ShardSet []int

// Has reports whether a task is meant.
func (s ShardSet) Has(task string) bool { return s == nil || slices.Contains(s, ShardOf(task)) }

// AllShards is every shard, in order.
func AllShards() []int {
	all := make([]int, Shards)
	for i := range all {
		all[i] = i
	}
	return all
}
