package persistence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// Stored data depends on these shards, so they must never change.
func TestATaskIsInTheSameShardForEver(t *testing.T) {
	for task, shard := range map[string]int{"": 155, "a": 248, "b": 5, "task-01985000-0000-7000-8000-000000000001": 58, "é\x00": 215} {
		require.Equal(t, shard, persistence.ShardOf(task), "%q", task)
	}
}

// With 100 tasks per shard on average, the standard deviation is 10, and no shard may be off by 60.
func TestTasksOfSimilarNamesAreSpreadOverTheShards(t *testing.T) {
	for _, format := range []string{"task-%d", "task-01985000-0000-7000-8000-%012d", "%dx"} {
		var tasks [persistence.Shards]int
		for i := range 100 * persistence.Shards {
			tasks[persistence.ShardOf(fmt.Sprintf(format, i))]++
		}
		for shard, n := range tasks {
			require.InDelta(t, 100, n, 60, "shard %d of %s", shard, format)
		}
	}
}

func TestASetOfShardsPicksTheirTasks(t *testing.T) {
	require.True(t, persistence.ShardSet(nil).Has("a"))
	require.False(t, persistence.ShardSet{}.Has("a"))
	require.True(t, persistence.ShardSet{persistence.ShardOf("b"), persistence.ShardOf("a")}.Has("a"))
	require.True(t, persistence.ShardSet(persistence.AllShards()).Has("a"))
}
