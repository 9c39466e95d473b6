package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// odd are values that a careless store changes.
var odd = map[string][]byte{
	"spaces, order and twice the same key": []byte(`{ "b" : 1,  "a":2, "b":3 }`),
	"a number of many digits":              []byte(`[123456789012345678901234567890.10e+5]`),
	"an escaped NUL":                       []byte(`["\u0000","\ud800","é","é"]`),
	"bytes that are no text":               {0, 1, 0xff, 0xfe, '\\', 'x', '"', '\''},
	"a mebibyte":                           bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
}

// rowsPart is a Part of the given number of rows, whatever their size.
func rowsPart(rows int) persistence.Part { return persistence.Part{Rows: rows, Bytes: 1 << 40} }

var journal = []storeBehavior{
	{"a created task comes back as it was given", func(w *testEnv) {
		w.mustCommit(persistence.Commit{
			Task: "a", Seq: 1, Events: []byte(`[{"k":"created"}]`), At: 7,
			Create: &persistence.Create{FlowID: "flow", VersionID: "version", Labels: map[string]string{"team": "blue"},
				Params: []byte(`{"p":1}`), BodyHash: "hash", CreatedAt: 5},
			Columns: &persistence.Columns{Status: "running", Cursor: "start", LastAction: "go",
				Error: "none", Paused: true, Steps: 3, Followed: 2, EndedAt: 0,
				Waits: flow.WaitApproval, Wait: firstWait},
		})
		require.Equal(w, &persistence.Record{
			TaskRow: persistence.TaskRow{ID: "a", FlowID: "flow", VersionID: "version", VersionNumber: 1,
				Columns: persistence.Columns{Status: "running", Cursor: "start", LastAction: "go",
					Error: "none", Paused: true, Steps: 3, Followed: 2, Waits: flow.WaitApproval,
					Wait: firstWait},
				Labels: map[string]string{"team": "blue"}, Params: []byte(`{"p":1}`),
				BodyHash: "hash", CreatedAt: 5, UpdatedAt: 7},
			Rows: []persistence.Row{{Seq: 1, At: 7, Events: []byte(`[{"k":"created"}]`)}},
		}, w.loadTask("a"))
	}},
	{"a created task is pending when nothing else is said", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		r := w.loadTask("a")
		require.Equal(w, persistence.Columns{Status: "pending"}, r.Columns)
		require.Nil(w, r.Labels)
		require.Nil(w, r.Params)
		require.False(w, r.Resting)
	}},
	{"a task may be created, rest and queue jobs at once", func(w *testEnv) {
		w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) {
			c.Columns = &persistence.Columns{Status: "running"}
			c.Snapshot = newSnapshot("{}")
			c.Rest = &persistence.Rest{Resting: true, Due: 9}
			c.Enqueue = []persistence.QueueRow{{JobID: "j", Task: "a", Service: "s", EnqueuedAt: 4}}
		}))
		r := w.loadTask("a")
		require.Equal(w, "running", r.Status)
		require.True(w, r.Resting)
		require.Equal(w, []byte("{}"), r.Snapshot)
		require.EqualValues(w, 1, r.SnapshotSeq)
		require.Empty(w, r.Rows)
		require.Equal(w, []persistence.Wake{{Task: "a", Due: 9}}, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 9, 9)))
		require.Len(w, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)), 1)
	}},
	{"a task exists once, and the first stays", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		for _, hash := range []string{"", "of a request with a key"} {
			second := changeCommit(createCommit("a"), func(c *persistence.Commit) {
				c.Create = &persistence.Create{FlowID: "other", VersionID: "version", BodyHash: hash}
				c.Columns = &persistence.Columns{Status: "failed"}
				c.Enqueue = []persistence.QueueRow{{JobID: "j", Task: "a"}}
			})
			answers := w.commitBatch(second, createCommit("b"+hash))
			require.ErrorIs(w, answers[0], persistence.ErrExists)
			require.NoError(w, answers[1])
		}
		require.Equal(w, "flow", w.loadTask("a").FlowID)
		require.Equal(w, "pending", w.loadTask("a").Status)
		require.Empty(w, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
		w.mustCommit(appendCommit("a", 2))
		require.ErrorIs(w, w.commitBatch(createCommit("a"))[0], persistence.ErrExists)
	}},
	{"a task of a version that is not there is refused alone", func(w *testEnv) {
		for _, hash := range []string{"", "of a request with a key"} {
			orphan := changeCommit(createCommit("a"), func(c *persistence.Commit) {
				c.Create = &persistence.Create{FlowID: "gone", VersionID: "gone", BodyHash: hash}
				c.Enqueue = []persistence.QueueRow{{JobID: "j", Task: "a"}}
				c.Rest = &persistence.Rest{Resting: true, Due: 9}
			})
			answers := w.commitBatch(createCommit("b"+hash), orphan, createCommit("c"+hash))
			require.NoError(w, answers[0])
			require.ErrorIs(w, answers[1], persistence.ErrNoVersion)
			require.NoError(w, answers[2])
			require.ErrorIs(w, w.commitBatch(orphan)[0], persistence.ErrNoVersion)
		}
		require.Nil(w, w.loadTask("a"))
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(9))))
		require.Empty(w, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
		require.Empty(w, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 9, 9)))
	}},
	{"a task begins with a row numbered 1", func(w *testEnv) {
		late := changeCommit(createCommit("a"), func(c *persistence.Commit) { c.Seq = 2 })
		empty := changeCommit(createCommit("b"), func(c *persistence.Commit) { c.Events = nil })
		answers := w.commitBatch(late, empty)
		require.ErrorIs(w, answers[0], persistence.ErrStale)
		require.ErrorIs(w, answers[1], persistence.ErrStale)
		require.Nil(w, w.loadTask("a"))
		require.Nil(w, w.loadTask("b"))
	}},
	{"rows extend a history in order", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(appendCommit("a", 2))
		w.mustCommit(appendCommit("a", 3))
		require.Equal(w, []int64{1, 2, 3}, seqsOf(w.loadTask("a").Rows))
	}},
	{"a stale row fails alone", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("c"))
		w.mustCommit(appendCommit("b", 2))
		answers := w.commitBatch(appendCommit("a", 2), appendCommit("b", 2), appendCommit("c", 2))
		require.NoError(w, answers[0])
		require.ErrorIs(w, answers[1], persistence.ErrStale)
		require.NoError(w, answers[2])
		require.Equal(w, []int64{1, 2}, seqsOf(w.loadTask("b").Rows))
		require.ErrorIs(w, w.commitBatch(appendCommit("a", 1))[0], persistence.ErrStale)
	}},
	{"a gap is refused, alone and among others", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		require.ErrorIs(w, w.commitBatch(appendCommit("a", 3))[0], persistence.ErrStale)
		answers := w.commitBatch(appendCommit("a", 3), appendCommit("b", 2))
		require.ErrorIs(w, answers[0], persistence.ErrStale)
		require.NoError(w, answers[1])
		for _, seq := range []int64{0, -1} {
			require.ErrorIs(w, w.commitBatch(appendCommit("a", seq))[0], persistence.ErrStale)
		}
		require.Equal(w, []int64{1}, seqsOf(w.loadTask("a").Rows))
	}},
	{"an unknown task fails alone", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		resting := persistence.Commit{Task: "x", Seq: 1, Rest: &persistence.Rest{Resting: true, Due: 3}}
		answers := w.commitBatch(appendCommit("x", 2), appendCommit("a", 2))
		require.ErrorIs(w, answers[0], persistence.ErrUnknown)
		require.NoError(w, answers[1])
		require.ErrorIs(w, w.commitBatch(appendCommit("x", 1))[0], persistence.ErrUnknown)
		require.ErrorIs(w, w.commitBatch(resting)[0], persistence.ErrUnknown)
		require.Nil(w, w.loadTask("x"))
		require.Empty(w, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 9, 9)))
	}},
	{"a refused commit leaves nothing behind", func(w *testEnv) {
		queued := []persistence.QueueRow{{JobID: "old", Task: "a", Service: "s", Turn: "t"}}
		w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) { c.Enqueue = queued }), createCommit("b"))
		before := w.loadTask("a")
		everything := func(c *persistence.Commit) {
			c.Columns = &persistence.Columns{Status: "failed"}
			c.Snapshot = newSnapshot("{}")
			c.Rest = &persistence.Rest{Resting: true, Due: 3}
			c.Enqueue = []persistence.QueueRow{{JobID: "new", Task: "a", Service: "s"}}
			c.Dequeue = []string{"old"}
		}
		for _, c := range []persistence.Commit{appendCommit("a", 1), appendCommit("a", 3), {Task: "a", Seq: 2}, {Task: "a", Seq: 0}} {
			require.ErrorIs(w, w.commitBatch(changeCommit(c, everything))[0], persistence.ErrStale)
			require.ErrorIs(w, w.commitBatch(changeCommit(c, everything), persistence.Commit{Task: "b", Seq: 1})[0], persistence.ErrStale)
		}
		require.Equal(w, before, w.loadTask("a"))
		require.Equal(w, queued, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 9)))
		require.Empty(w, requireList[persistence.Wake](w)(w.DueWakes(w.ctx(), nil, 9, 9)))
	}},
	{"every commit of a large and mixed batch has its own answer", func(w *testEnv) { checkMixedBatch(w) }},
	{"a commit without events changes what is beside the journal", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(appendCommit("a", 2))
		w.mustCommit(persistence.Commit{Task: "a", Seq: 2, At: 9,
			Columns: &persistence.Columns{Status: "running"}, Snapshot: newSnapshot("{2}")})
		r := w.loadTask("a")
		require.Equal(w, "running", r.Status)
		require.Equal(w, []byte("{2}"), r.Snapshot)
		require.EqualValues(w, 9, r.UpdatedAt)
		w.mustCommit(appendCommit("a", 3))
	}},
	{"what is not given stays", func(w *testEnv) {
		columns := persistence.Columns{Status: "running", Cursor: "n", LastAction: "a", Error: "e", Paused: true, Steps: 4, Followed: 1}
		w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) {
			c.Columns, c.Snapshot, c.Rest = &columns, newSnapshot("{1}"), &persistence.Rest{Resting: true, Due: 3}
		}))
		w.mustCommit(appendCommit("a", 2))
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) { c.Rest = &persistence.Rest{Resting: true, Due: 4} }))
		r := w.loadTask("a")
		require.Equal(w, columns, r.Columns)
		require.True(w, r.Resting)
		require.Equal(w, []byte("{1}"), r.Snapshot)
		require.EqualValues(w, 1, r.UpdatedAt)
		w.mustCommit(changeCommit(appendCommit("a", 4),
			func(c *persistence.Commit) {
				c.Columns = &persistence.Columns{Status: "completed",
					EndedAt: 8}
			}))
		r = w.loadTask("a")
		require.Equal(w, persistence.Columns{Status: "completed", EndedAt: 8}, r.Columns)
		require.True(w, r.Resting)
		require.EqualValues(w, 4, r.UpdatedAt)
	}},
	{"a snapshot stands for the rows before it and never goes back", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Snapshot = newSnapshot("{2}") }))
		w.mustCommit(appendCommit("a", 3))
		r := w.loadTask("a")
		require.EqualValues(w, 2, r.SnapshotSeq)
		require.Equal(w, []int64{3}, seqsOf(r.Rows))
		require.ErrorIs(w, w.commitBatch(persistence.Commit{Task: "a", Seq: 1, Snapshot: newSnapshot("{1}")})[0], persistence.ErrStale)
		require.Equal(w, []byte("{2}"), w.loadTask("a").Snapshot)
		w.mustCommit(persistence.Commit{Task: "a", Seq: 3, Snapshot: newSnapshot("{3}")})
		require.Equal(w, []byte("{3}"), w.loadTask("a").Snapshot)
		require.Empty(w, w.loadTask("a").Rows)
		require.Len(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(9))), 3)
	}},
	{"checkpoints stay when newer ones are written, and the newest counts as the snapshot", func(w *testEnv) {
		check := func(c *persistence.Commit) { c.Snapshot, c.Checkpoint = newSnapshot(fmt.Sprint(c.Seq)), true }
		w.mustCommit(changeCommit(createCommit("a"), check), changeCommit(createCommit("b"), check))
		require.Equal(w, []byte("1"), w.loadTask("a").Snapshot)
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Snapshot = newSnapshot("passing") }))
		require.Equal(w, []byte("passing"), w.loadTask("a").Snapshot)
		w.mustCommit(changeCommit(appendCommit("a", 3), check))
		w.mustCommit(changeCommit(appendCommit("a", 4),
			func(c *persistence.Commit) { c.Columns = &persistence.Columns{Status: "running"} }))
		r := w.loadTask("a")
		require.Equal(w, []byte("3"), r.Snapshot)
		require.EqualValues(w, 3, r.SnapshotSeq)
		require.Equal(w, []int64{4}, seqsOf(r.Rows))
		require.ErrorIs(w, w.commitBatch(changeCommit(appendCommit("a", 4), check))[0], persistence.ErrStale)
		w.mustCommit(changeCommit(appendCommit("a", 5), check))
		require.Equal(w, []int64{1, 3, 5}, requireList[int64](w)(w.Checkpoints(w.ctx(), "a")))
		require.Equal(w, []int64{1}, requireList[int64](w)(w.Checkpoints(w.ctx(), "b")))
		require.Empty(w, requireList[int64](w)(w.Checkpoints(w.ctx(), "x")))
		for _, seq := range []int64{1, 3, 5} {
			snapshot, err := w.Checkpoint(w.ctx(), "a", seq)
			require.NoError(w, err)
			require.Equal(w, fmt.Append(nil, seq), snapshot)
		}
		_, err := w.Checkpoint(w.ctx(), "a", 2)
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"a task is measured without reading it", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		before := requireList[int64](w)(w.Sizes(w.ctx(), []string{"b", "nobo\x00dy", "a", "b"}))
		require.Equal(w, before[0], before[3])
		require.Equal(w, before[0], before[2])
		require.Positive(w, before[0])
		require.Zero(w, before[1])
		large := bytes.Repeat([]byte("x"), 100_000)
		w.mustCommit(changeCommit(appendCommit("a", 2), func(c *persistence.Commit) { c.Events = large }))
		require.Equal(w, []int64{before[0] + 100_000}, requireList[int64](w)(w.Sizes(w.ctx(), []string{"a"})))
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) { c.Snapshot = newSnapshot("small") }))
		require.Equal(w, []int64{5}, requireList[int64](w)(w.Sizes(w.ctx(), []string{"a"})), "rows before a snapshot are not read")
		w.mustCommit(changeCommit(appendCommit("a", 4), func(c *persistence.Commit) {
			c.Snapshot,
				c.Checkpoint = flow.Snapshot{large}, true
		}))
		require.Equal(w, []int64{100_000}, requireList[int64](w)(w.Sizes(w.ctx(), []string{"a"})))
		require.Empty(w, requireList[int64](w)(w.Sizes(w.ctx(), nil)))
	}},
	{"a large checkpoint comes back byte for byte", func(w *testEnv) {
		w.mustCommit(createCommit("b"))
		seq := int64(1)
		w.mustCommit(createCommit("a"))
		for _, size := range []int{0, persistence.LargeSnapshot - 1, persistence.LargeSnapshot,
			persistence.LargeSnapshot + 1, 3*persistence.LargeSnapshot + 7} {
			seq++
			large := flow.Snapshot{bytes.Repeat([]byte("ab"), size/2), bytes.Repeat([]byte("c"), size%2)}
			check := func(c *persistence.Commit) { c.Snapshot, c.Checkpoint = large, true }
			answers := w.commitBatch(changeCommit(appendCommit("a", seq), check),
				changeCommit(appendCommit("b", 7), check), changeCommit(appendCommit("x", 2),
					check), changeCommit(createCommit("b"), check))
			require.NoError(w, answers[0])
			require.ErrorIs(w, answers[1], persistence.ErrStale)
			require.ErrorIs(w, answers[2], persistence.ErrUnknown)
			require.ErrorIs(w, answers[3], persistence.ErrExists)
			for range 2 {
				requireSameBytes(w, large.Bytes(), w.loadTask("a").Snapshot)
			}
			kept, err := w.Checkpoint(w.ctx(), "a", seq)
			require.NoError(w, err)
			requireSameBytes(w, large.Bytes(), kept)
			require.Equal(w, []int64{int64(size)}, requireList[int64](w)(w.Sizes(w.ctx(), []string{"a"})))
		}
		require.Equal(w, []int64{2, 3, 4, 5, 6}, requireList[int64](w)(w.Checkpoints(w.ctx(), "a")))
		require.Empty(w, requireList[int64](w)(w.Checkpoints(w.ctx(), "b")))
	}},
	{"checkpoints go with their task", func(w *testEnv) {
		for _, size := range []int{1, 2*persistence.LargeSnapshot + 1} {
			w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) {
				c.Snapshot, c.Checkpoint, c.Columns = flow.Snapshot{make([]byte, size)}, true,
					&persistence.Columns{Status: "completed", EndedAt: 5}
			}))
			n, err := w.DeleteEnded(w.ctx(), 9, 9)
			require.NoError(w, err)
			require.Equal(w, 1, n)
			require.Empty(w, requireList[int64](w)(w.Checkpoints(w.ctx(), "a")))
			_, err = w.Checkpoint(w.ctx(), "a", 1)
			require.ErrorIs(w, err, persistence.ErrNotFound)
		}
	}},
	{"values come back byte for byte", func(w *testEnv) {
		for name, value := range odd {
			w.mustCommit(changeCommit(createCommit(name), func(c *persistence.Commit) {
				c.Events, c.Create.Params, c.Snapshot = value, value, flow.Snapshot{value}
			}))
			w.mustCommit(changeCommit(appendCommit(name, 2), func(c *persistence.Commit) { c.Events = value }), createCommit(name+"!"))
			w.mustCommit(changeCommit(appendCommit(name, 3), func(c *persistence.Commit) { c.Events = value }))
			r := w.loadTask(name)
			require.Equal(w, value, r.Params, name)
			require.Equal(w, value, r.Snapshot, name)
			require.Equal(w, value, r.Rows[0].Events, name)
			require.Equal(w, value, r.Rows[1].Events, name)
		}
	}},
	{"a text for people is never the reason of a refusal", func(w *testEnv) {
		bad := "a\x00b\xffc"
		w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) {
			c.Columns = &persistence.Columns{Status: "failed", Cursor: bad, LastAction: bad, Error: bad}
		}))
		r := w.loadTask("a")
		require.Equal(w, []string{"a\uFFFDb\uFFFDc", "a\uFFFDb\uFFFDc", "a\uFFFDb\uFFFDc"}, []string{r.Cursor, r.LastAction, r.Error})
	}},
	{"an empty batch has no answers", func(w *testEnv) { w.mustCommit() }},
	{"a journal is read in pages", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		for seq := int64(2); seq <= 5; seq++ {
			w.mustCommit(appendCommit("a", seq))
		}
		require.Equal(w, []int64{1, 2}, seqsOf(requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, rowsPart(2)))))
		require.Equal(w, []int64{3, 4}, seqsOf(requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 2, rowsPart(2)))))
		require.Equal(w, []int64{5}, seqsOf(requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 4, rowsPart(2)))))
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 5, rowsPart(2))))
		require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), "x", 0, rowsPart(2))))
	}},
	{"a part of a journal is bounded in bytes, but never empty", func(w *testEnv) {
		for seq := int64(1); seq <= 5; seq++ {
			w.mustCommit(changeCommit(createCommit("a"), func(c *persistence.Commit) {
				if c.Seq = seq; seq > 1 {
					c.Create = nil
				}
				c.Events = bytes.Repeat([]byte("e"), 100)
			}))
		}
		for most, want := range map[int][]int64{1: {1}, 100: {1}, 101: {1, 2}, 200: {1, 2}, 450: {1, 2, 3, 4, 5}, 1000: {1, 2, 3, 4, 5}} {
			p := persistence.Part{Rows: 9, Bytes: most}
			rows := requireList[persistence.Row](w)(w.Rows(w.ctx(), "a", 0, p))
			require.Equal(w, want, seqsOf(rows), "%d bytes", most)
			require.Equal(w, most <= 500, p.Full(rows), "%d bytes", most)
		}
		require.Equal(w, []int64{4, 5}, seqsOf(requireList[persistence.Row](w)(w.Rows(w.ctx(), "a",
			3, persistence.Part{Rows: 9, Bytes: 150}))))
	}},
	{"records have the order of the ids, nil for an unknown one", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"), createCommit("c"))
		w.mustCommit(appendCommit("b", 2))
		records, err := w.Load(w.ctx(), []string{"c", "x", "b", "a"})
		require.NoError(w, err)
		require.Len(w, records, 4)
		require.Nil(w, records[1])
		require.Equal(w, []string{"c", "b", "a"}, []string{records[0].ID, records[2].ID, records[3].ID})
		require.Equal(w, []int64{1, 2}, seqsOf(records[2].Rows))
		records, err = w.Load(w.ctx(), nil)
		require.NoError(w, err)
		require.Empty(w, records)
	}},
}

// checkMixedBatch commits 500 tasks at once, each in one of five ways.
func checkMixedBatch(w *testEnv) {
	var first, second []persistence.Commit
	var want []error
	for i := range 500 {
		id := fmt.Sprintf("task-%03d", i)
		switch i % 5 {
		case 0:
			second, want = append(second, changeCommit(createCommit(id),
				func(c *persistence.Commit) { c.Snapshot = newSnapshot(id) })), append(want, nil)
			continue
		case 1:
			second, want = append(second, appendCommit(id, 2)), append(want, persistence.ErrUnknown)
			continue
		case 2:
			second, want = append(second, appendCommit(id, 1)), append(want, persistence.ErrStale)
		case 3:
			second, want = append(second, createCommit(id)), append(want, persistence.ErrExists)
		case 4:
			second, want = append(second, changeCommit(appendCommit(id, 2), func(c *persistence.Commit) {
				c.Columns = &persistence.Columns{Status: "running", Error: strings.Repeat("x", i)}
				c.Enqueue = []persistence.QueueRow{{JobID: id, Task: id, Service: "s", EnqueuedAt: int64(i)}}
			})), append(want, nil)
		}
		first = append(first, createCommit(id))
	}
	w.mustCommit(first...)
	for i, err := range w.commitBatch(second...) {
		require.ErrorIs(w, err, want[i], second[i].Task)
	}
	require.Len(w, w.loadTask("task-499").Error, 499)
	require.Equal(w, []byte("task-495"), w.loadTask("task-495").Snapshot)
	require.Len(w, requireList[persistence.QueueRow](w)(w.QueueRows(w.ctx(), nil, 0, "", 500)), 100)
}

func seqsOf(rows []persistence.Row) []int64 {
	list := []int64{}
	for _, r := range rows {
		list = append(list, r.Seq)
	}
	return list
}

// requireSameBytes compares values that are too long to print.
func requireSameBytes(w *testEnv, want, have []byte) {
	w.Helper()
	require.True(w, bytes.Equal(want, have), "%d bytes instead of %d, or others", len(have), len(want))
}
