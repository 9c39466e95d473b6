package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func rests(id string, due int64) persistence.Commit {
	return persistence.Commit{Task: id, Seq: 1, Rest: &persistence.Rest{Resting: true, Due: due}}
}

func (w *world) unfinished() []string {
	w.Helper()
	return got[string](w)(w.Unfinished(w.ctx(), nil, "", 99))
}

func (w *world) due(before int64) []persistence.Wake {
	w.Helper()
	return got[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, before, 99))
}

var rest = []behavior{
	{"a task at rest is brought back by its time", func(w *world) {
		w.must(created("a"), created("b"))
		w.must(rests("a", 10))
		require.True(w, w.load("a").Resting)
		require.Equal(w, []string{"b"}, w.unfinished())
		require.Empty(w, w.due(9))
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 10}}, w.due(10))
	}},
	{"awake, a task is unfinished and has no wake", func(w *world) {
		w.must(created("a"))
		w.must(rests("a", 10))
		w.must(persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}})
		require.False(w, w.load("a").Resting)
		require.Equal(w, []string{"a"}, w.unfinished())
		require.Empty(w, w.due(99))
		w.must(persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}})
	}},
	{"the last rest counts", func(w *world) {
		w.must(created("a"))
		w.must(rests("a", 10))
		w.must(rests("a", 20))
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 20}}, w.due(99))
		w.must(rests("a", 0))
		require.True(w, w.load("a").Resting)
		require.Empty(w, w.due(99))
	}},
	{"many rest and wake in one batch", func(w *world) {
		w.must(created("a"), created("b"), created("c"), created("d"))
		w.must(rests("a", 10), rests("b", 10), rests("c", 0))
		w.must(rests("b", 5), persistence.Commit{Task: "a", Seq: 1, Rest: &persistence.Rest{}}, rests("d", 7))
		require.Equal(w, []persistence.Wake{{Task: "b", Due: 5}, {Task: "d", Due: 7}}, w.due(99))
		require.Equal(w, []string{"a"}, w.unfinished())
	}},
	{"the earliest come first, and no more than asked for", func(w *world) {
		w.must(created("a"), created("b"), created("c"))
		w.must(rests("a", 30), rests("b", 10), rests("c", 20))
		require.Equal(w, []persistence.Wake{{Task: "b", Due: 10}, {Task: "c", Due: 20}},
			got[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 99, 2)))
	}},
	{"an ended task is finished", func(w *world) {
		w.must(created("a"), created("b"))
		w.must(persistence.Commit{Task: "a", Seq: 1, Columns: &persistence.Columns{Status: "completed", EndedAt: 3}})
		require.Equal(w, []string{"b"}, w.unfinished())
	}},
	{"unfinished tasks are read in pages, by the bytes of their ids", func(w *world) {
		w.must(created("b"), created("B"), created("a-1"), created("a1"), created("é"))
		require.Equal(w, []string{"B", "a-1", "a1", "b", "é"}, w.unfinished())
		require.Equal(w, []string{"a1", "b"}, got[string](w)(w.Unfinished(w.ctx(), nil, "a-1", 2)))
	}},
	{"unfinished and due tasks are told of the shards that are asked for", func(w *world) {
		var rests []persistence.Commit
		for i := range 300 {
			id := fmt.Sprintf("task-%03d", i)
			w.must(created(id))
			if i%2 == 0 {
				rests = append(rests, persistence.Commit{Task: id, Seq: 1, Rest: &persistence.Rest{Resting: true, Due: int64(i + 1)}})
			}
		}
		w.must(rests...)
		shards := persistence.ShardSet{persistence.ShardOf("task-000"), persistence.ShardOf("task-001"), persistence.ShardOf("task-002"), persistence.ShardOf("task-003")}
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
		require.Equal(w, unfinished, got[string](w)(w.Unfinished(w.ctx(), shards, "", 999)))
		require.Equal(w, unfinished[1:2], got[string](w)(w.Unfinished(w.ctx(), shards, unfinished[0], 1)))
		require.Equal(w, due, got[persistence.Wake](w)(w.DueWakes(w.ctx(), shards, 999, 999)))
		require.Equal(w, due[:1], got[persistence.Wake](w)(w.DueWakes(w.ctx(), shards, 999, 1)))
		require.Empty(w, got[string](w)(w.Unfinished(w.ctx(), persistence.ShardSet{}, "", 999)))
		require.Empty(w, got[persistence.Wake](w)(w.DueWakes(w.ctx(), persistence.ShardSet{}, 999, 999)))
		require.Len(w, got[string](w)(w.Unfinished(w.ctx(), persistence.AllShards(), "", 999)), 150)
	}},
}
