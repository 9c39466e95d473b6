package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func restCommit(id string, due int64) persistence.Commit {
	return persistence.Commit{Task: id, Seq: 1, Rest: &persistence.Rest{Resting: true, Due: due}}
}

func (w *testEnv) listUnfinished() []string {
	w.Helper()
	return requireList[string](w)(w.Unfinished(w.ctx(), nil, "", 99))
}

func (w *testEnv) dueWakes(before int64) []persistence.Wake {
	w.Helper()
	return requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, before, 99))
}

var rest = []storeBehavior{
	{"a task at rest is brought back by its time", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		w.mustCommit(restCommit("a", 10))
		require.True(w, w.loadTask("a").Resting)
		require.Equal(w, []string{"b"}, w.listUnfinished())
		require.Empty(w, w.dueWakes(9))
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 10}}, w.dueWakes(10))
	}},
	{"awake, a task is unfinished and has no wake", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(restCommit("a", 10))
		w.mustCommit(persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}})
		require.False(w, w.loadTask("a").Resting)
		require.Equal(w, []string{"a"}, w.listUnfinished())
		require.Empty(w, w.dueWakes(99))
		w.mustCommit(persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}})
	}},
	{"the last rest counts", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(restCommit("a", 10))
		w.mustCommit(restCommit("a", 20))
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 20}}, w.dueWakes(99))
		w.mustCommit(restCommit("a", 0))
		require.True(w, w.loadTask("a").Resting)
		require.Empty(w, w.dueWakes(99))
	}},
	{"many rest and wake in one batch", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("c"), createCommit("d"))
		w.mustCommit(restCommit("a", 10), restCommit("b", 10), restCommit("c", 0))
		w.mustCommit(restCommit("b", 5), persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}}, restCommit("d", 7))
		require.Equal(w, []persistence.Wake{{Task: "b", Due: 5}, {Task: "d", Due: 7}}, w.dueWakes(99))
		require.Equal(w, []string{"a"}, w.listUnfinished())
	}},
	{"the earliest come first, and no more than asked for", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("c"))
		w.mustCommit(restCommit("a", 30), restCommit("b", 10), restCommit("c", 20))
		require.Equal(w, []persistence.Wake{{Task: "b", Due: 10}, {Task: "c", Due: 20}},
			requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 99, 2)))
	}},
	{"an ended task is finished", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		w.mustCommit(persistence.Commit{Task: "a", Seq: 1, Columns: &persistence.Columns{Status: "completed", EndedAt: 3}})
		require.Equal(w, []string{"b"}, w.listUnfinished())
	}},
	{"unfinished tasks are read in pages, by the bytes of their ids", func(w *testEnv) {
		w.mustCommit(createCommit("b"), createCommit("B"), createCommit("a-1"), createCommit("a1"), createCommit("é"))
		require.Equal(w, []string{"B", "a-1", "a1", "b", "é"}, w.listUnfinished())
		require.Equal(w, []string{"a1", "b"}, requireList[string](w)(w.Unfinished(w.ctx(), nil, "a-1", 2)))
	}},
	{"unfinished and due tasks are told of the shards that are asked for", func(w *testEnv) {
		var rests []persistence.Commit
		for i := range 300 {
			id := fmt.Sprintf("task-%03d", i)
			w.mustCommit(createCommit(id))
			if i%2 == 0 {
				rests = append(rests, persistence.Commit{Task: id, Seq: 1, Rest: &persistence.Rest{Resting: true, Due: int64(i + 1)}})
			}
		}
		w.mustCommit(rests...)
		shards := persistence.ShardSet{persistence.ShardOf("task-000"),
			persistence.ShardOf("task-001"), persistence.ShardOf("task-002"), persistence.ShardOf("task-003")}
		var unfinished []string
		var due []persistence.Wake
		for i := range 300 {
			id := fmt.Sprintf("task-%03d", i)
			switch {
			case !shards.Has(id):
			case i%2 == 0:
				due = append(due, persistence.Wake{Task: id, Due: int64(i + 1)})
			default:
				unfinished = append(unfinished, id)
			}
		}
		require.Equal(w, unfinished, requireList[string](w)(w.Unfinished(w.ctx(), shards, "", 999)))
		require.Equal(w, unfinished[1:2], requireList[string](w)(w.Unfinished(w.ctx(), shards, unfinished[0], 1)))
		require.Equal(w, due, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), shards, 999, 999)))
		require.Equal(w, due[:1], requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), shards, 999, 1)))
		require.Empty(w, requireList[string](w)(w.Unfinished(w.ctx(), persistence.ShardSet{}, "", 999)))
		require.Empty(w, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), persistence.ShardSet{}, 999, 999)))
		require.Len(w, requireList[string](w)(w.Unfinished(w.ctx(), persistence.AllShards(), "", 999)), 150)
	}},
}
