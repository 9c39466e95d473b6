package storetest

import (
	"encoding/json"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// newExternal returns an external of task a that is due at a time.
func newExternal(job string, index int, next int64) persistence.ExternalRow {
	return persistence.ExternalRow{NextAt: next, External: flow.External{Task: "a", Job: job,
		Index: index, Service: "s", ID: job + strconv.Itoa(index),
		Data: json.RawMessage(` {"x": [1]}`), StartedAt: 5}}
}

// createTracked creates task a with externals.
func (w *testEnv) createTracked(rows ...persistence.ExternalRow) {
	w.Helper()
	w.mustCommit(createCommit("a"))
	w.mustCommit(changeCommit(appendCommit("a", 2),
		func(c *persistence.Commit) { c.Externals = &persistence.ExternalChanges{Track: rows} }))
}

// nextIDs returns the ids of the externals to poll next.
func (w *testEnv) nextIDs(limit int) []string {
	w.Helper()
	ids := []string{}
	for _, r := range requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, limit)) {
		ids = append(ids, r.ID)
	}
	return ids
}

// newNote returns the result of a poll of a row.
func newNote(r persistence.ExternalRow, next int64) persistence.ExternalNote {
	return persistence.ExternalNote{ExternalID: r.Key(), NextAt: next, Polls: r.Polls + 1}
}

var externals = []storeBehavior{
	{"work outside is looked at in order of time, and comes back as it was given", func(w *testEnv) {
		rows := []persistence.ExternalRow{newExternal("y", 1, 7), newExternal("x", 0, 9), newExternal("y", 0, 7)}
		w.createTracked(rows...)
		require.Equal(w, []string{"y0", "y1", "x0"}, w.nextIDs(9))
		require.Equal(w, []string{"y0"}, w.nextIDs(1))
		list := requireList[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a"))
		require.Equal(w, []persistence.ExternalRow{rows[1], rows[2], rows[0]}, list)
		require.Empty(w, requireList[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "b")))
	}},
	{"that of jobs of scopes however deep is looked at, called off and ended", func(w *testEnv) {
		x, y := newExternal(deepID("x"), 0, 1), newExternal(deepID("y"), 0, 2)
		w.createTracked(x, y)
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{newNote(x, 7)}))
		x.NextAt, x.Polls = 7, 1
		require.Equal(w, []persistence.ExternalRow{y, x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Untrack: []persistence.ExternalID{y.Key()},
				Recall: []persistence.ExternalID{x.Key()}}
		}))
		x.NextAt, x.Recalled = 0, true
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a")))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{{ExternalID: x.Key(), Gone: true}}))
		require.Empty(w, w.nextIDs(9))
	}},
	{"a member sees that of its shards", func(w *testEnv) {
		w.createTracked(newExternal("x", 0, 1))
		shard := persistence.ShardOf("a")
		require.Len(w, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), persistence.ShardSet{shard}, 9)), 1)
		require.Empty(w, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(),
			persistence.ShardSet{(shard + 1) % persistence.Shards}, 9)))
		require.Empty(w, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), persistence.ShardSet{}, 9)))
	}},
	{"what looking at it came to is kept, and what is gone stays gone", func(w *testEnv) {
		x, y := newExternal("x", 0, 1), newExternal("y", 0, 2)
		x.Pending = true
		w.createTracked(x, y)
		require.Equal(w, []persistence.ExternalRow{x, y}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n := persistence.ExternalNote{ExternalID: x.Key(), NextAt: 8, Polls: 3, Failures: 2, FailingAt: 6, Memo: []byte(`{"m":1}`)}
		require.NoError(w, w.NoteExternals(w.ctx(), w.me,
			[]persistence.ExternalNote{n, {ExternalID: y.Key(), Gone: true},
				newNote(newExternal("z", 0, 1), 4)}))
		x.NextAt, x.Polls, x.Failures, x.FailingAt, x.Pending, x.Memo = 8, 3, 2, 6, false, json.RawMessage(`{"m":1}`)
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n.Pending, x.Pending = true, true
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{n}))
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, nil))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{newNote(y, 1)}))
		require.Equal(w, []string{"x0"}, w.nextIDs(9))
	}},
	{"what has ended is not looked at any more, and what nobody waits for comes first", func(w *testEnv) {
		rows := []persistence.ExternalRow{newExternal("x", 0, 1), newExternal("x", 1, 2), newExternal("x", 2, 3)}
		w.createTracked(rows...)
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Untrack: []persistence.ExternalID{rows[0].Key(),
				{Task: "a", Job: "unknown"}}, Recall: []persistence.ExternalID{rows[2].Key()}}
		}))
		require.Equal(w, []string{"x2", "x1"}, w.nextIDs(9))
		list := requireList[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a"))
		require.Equal(w, []bool{false, true}, []bool{list[0].Recalled, list[1].Recalled})
	}},
	{"what was seen before it was called off changes nothing about it", func(w *testEnv) {
		x := newExternal("x", 0, 1)
		w.createTracked(x)
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Recall: []persistence.ExternalID{x.Key()}}
		}))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{newNote(x, 99)}))
		row := requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9))[0]
		require.Equal(w, []any{int64(0), 0, true}, []any{row.NextAt, row.Polls, row.Recalled})
		later := newNote(row, 50)
		later.Recalled = true
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{later}))
		require.Equal(w, int64(50), requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9))[0].NextAt)
	}},
	{"who may not write any more does not say what is known of it", func(w *testEnv) {
		x := newExternal("x", 0, 1)
		w.createTracked(x)
		require.ErrorIs(w, w.NoteExternals(w.ctx(), "nobody",
			[]persistence.ExternalNote{{ExternalID: x.Key(), Gone: true}}), persistence.ErrFenced)
		require.ErrorIs(w, w.NoteExternals(w.ctx(), "nobody", []persistence.ExternalNote{newNote(x, 99)}), persistence.ErrFenced)
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
	}},
	{"what begins and is called off by one commit is called off, and what begins and ends is not there", func(w *testEnv) {
		x, y := newExternal("x", 0, 1), newExternal("y", 0, 1)
		w.mustCommit(createCommit("a"))
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{x, y},
				Recall: []persistence.ExternalID{x.Key()}, Untrack: []persistence.ExternalID{y.Key()}}
		}))
		x.Recalled, x.NextAt = true, 0
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
	}},
	{"it begins once, and goes with its task", func(w *testEnv) {
		x := newExternal("x", 0, 1)
		again := x
		again.NextAt = 9
		w.createTracked(x)
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{again}}
			c.Columns = &persistence.Columns{Status: "completed", EndedAt: 3}
		}))
		require.Equal(w, []persistence.ExternalRow{x}, requireList[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n, err := w.DeleteEnded(w.ctx(), 10, 9)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Empty(w, w.nextIDs(9))
	}},
	{"a stale commit tracks nothing", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		answers := w.commitBatch(changeCommit(appendCommit("a", 9), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{newExternal("x", 0, 1)}}
		}))
		require.ErrorIs(w, answers[0], persistence.ErrStale)
		require.Empty(w, w.nextIDs(9))
	}},
}
