package storetest

import (
	"encoding/json"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// outside is work outside of task a, to be looked at at a time.
func outside(job string, index int, next int64) persistence.ExternalRow {
	return persistence.ExternalRow{NextAt: next, External: flow.External{Task: "a", Job: job, Index: index, Service: "s", ID: job + strconv.Itoa(index),
		Data: json.RawMessage(` {"x": [1]}`), StartedAt: 5}}
}

// tracked makes task a with work outside.
func (w *world) tracked(rows ...persistence.ExternalRow) {
	w.Helper()
	w.must(created("a"))
	w.must(with(appended("a", 2), func(c *persistence.Commit) { c.Externals = &persistence.ExternalChanges{Track: rows} }))
}

// nexts are the ids of what is to be looked at.
func (w *world) nexts(limit int) []string {
	w.Helper()
	ids := []string{}
	for _, r := range got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, limit)) {
		ids = append(ids, r.ID)
	}
	return ids
}

// noted is what looking at a row came to.
func noted(r persistence.ExternalRow, next int64) persistence.ExternalNote {
	return persistence.ExternalNote{ExternalID: r.Key(), NextAt: next, Polls: r.Polls + 1}
}

var externals = []behavior{
	{"work outside is looked at in order of time, and comes back as it was given", func(w *world) {
		rows := []persistence.ExternalRow{outside("y", 1, 7), outside("x", 0, 9), outside("y", 0, 7)}
		w.tracked(rows...)
		require.Equal(w, []string{"y0", "y1", "x0"}, w.nexts(9))
		require.Equal(w, []string{"y0"}, w.nexts(1))
		list := got[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a"))
		require.Equal(w, []persistence.ExternalRow{rows[1], rows[2], rows[0]}, list)
		require.Empty(w, got[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "b")))
	}},
	{"that of jobs of scopes however deep is looked at, called off and ended", func(w *world) {
		x, y := outside(deepID("x"), 0, 1), outside(deepID("y"), 0, 2)
		w.tracked(x, y)
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{noted(x, 7)}))
		x.NextAt, x.Polls = 7, 1
		require.Equal(w, []persistence.ExternalRow{y, x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		w.must(with(appended("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Untrack: []persistence.ExternalID{y.Key()}, Recall: []persistence.ExternalID{x.Key()}}
		}))
		x.NextAt, x.Recalled = 0, true
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a")))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{{ExternalID: x.Key(), Gone: true}}))
		require.Empty(w, w.nexts(9))
	}},
	{"a member sees that of its shards", func(w *world) {
		w.tracked(outside("x", 0, 1))
		shard := persistence.ShardOf("a")
		require.Len(w, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), persistence.ShardSet{shard}, 9)), 1)
		require.Empty(w, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), persistence.ShardSet{(shard + 1) % persistence.Shards}, 9)))
		require.Empty(w, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), persistence.ShardSet{}, 9)))
	}},
	{"what looking at it came to is kept, and what is gone stays gone", func(w *world) {
		x, y := outside("x", 0, 1), outside("y", 0, 2)
		x.Pending = true
		w.tracked(x, y)
		require.Equal(w, []persistence.ExternalRow{x, y}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n := persistence.ExternalNote{ExternalID: x.Key(), NextAt: 8, Polls: 3, Failures: 2, FailingAt: 6, Memo: []byte(`{"m":1}`)}
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{n, {ExternalID: y.Key(), Gone: true}, noted(outside("z", 0, 1), 4)}))
		x.NextAt, x.Polls, x.Failures, x.FailingAt, x.Pending, x.Memo = 8, 3, 2, 6, false, json.RawMessage(`{"m":1}`)
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n.Pending, x.Pending = true, true
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{n}))
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, nil))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{noted(y, 1)}))
		require.Equal(w, []string{"x0"}, w.nexts(9))
	}},
	{"what has ended is not looked at any more, and what nobody waits for comes first", func(w *world) {
		rows := []persistence.ExternalRow{outside("x", 0, 1), outside("x", 1, 2), outside("x", 2, 3)}
		w.tracked(rows...)
		w.must(with(appended("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Untrack: []persistence.ExternalID{rows[0].Key(), {Task: "a", Job: "unknown"}}, Recall: []persistence.ExternalID{rows[2].Key()}}
		}))
		require.Equal(w, []string{"x2", "x1"}, w.nexts(9))
		list := got[persistence.ExternalRow](w)(w.ExternalsOf(w.ctx(), "a"))
		require.Equal(w, []bool{false, true}, []bool{list[0].Recalled, list[1].Recalled})
	}},
	{"what was seen before it was called off changes nothing about it", func(w *world) {
		x := outside("x", 0, 1)
		w.tracked(x)
		w.must(with(appended("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Recall: []persistence.ExternalID{x.Key()}}
		}))
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{noted(x, 99)}))
		row := got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9))[0]
		require.Equal(w, []any{int64(0), 0, true}, []any{row.NextAt, row.Polls, row.Recalled})
		later := noted(row, 50)
		later.Recalled = true
		require.NoError(w, w.NoteExternals(w.ctx(), w.me, []persistence.ExternalNote{later}))
		require.Equal(w, int64(50), got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9))[0].NextAt)
	}},
	{"who may not write any more does not say what is known of it", func(w *world) {
		x := outside("x", 0, 1)
		w.tracked(x)
		require.ErrorIs(w, w.NoteExternals(w.ctx(), "nobody", []persistence.ExternalNote{{ExternalID: x.Key(), Gone: true}}), persistence.ErrFenced)
		require.ErrorIs(w, w.NoteExternals(w.ctx(), "nobody", []persistence.ExternalNote{noted(x, 99)}), persistence.ErrFenced)
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
	}},
	{"what begins and is called off by one commit is called off, and what begins and ends is not there", func(w *world) {
		x, y := outside("x", 0, 1), outside("y", 0, 1)
		w.must(created("a"))
		w.must(with(appended("a", 2), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{x, y}, Recall: []persistence.ExternalID{x.Key()}, Untrack: []persistence.ExternalID{y.Key()}}
		}))
		x.Recalled, x.NextAt = true, 0
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
	}},
	{"it begins once, and goes with its task", func(w *world) {
		x := outside("x", 0, 1)
		again := x
		again.NextAt = 9
		w.tracked(x)
		w.must(with(appended("a", 3), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{again}}
			c.Columns = &persistence.Columns{Status: "completed", EndedAt: 3}
		}))
		require.Equal(w, []persistence.ExternalRow{x}, got[persistence.ExternalRow](w)(w.NextExternals(w.ctx(), nil, 9)))
		n, err := w.DeleteEnded(w.ctx(), 10, 9)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Empty(w, w.nexts(9))
	}},
	{"a stale commit tracks nothing", func(w *world) {
		w.must(created("a"))
		answers := w.commit(with(appended("a", 9), func(c *persistence.Commit) {
			c.Externals = &persistence.ExternalChanges{Track: []persistence.ExternalRow{outside("x", 0, 1)}}
		}))
		require.ErrorIs(w, answers[0], persistence.ErrStale)
		require.Empty(w, w.nexts(9))
	}},
}
