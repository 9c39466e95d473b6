package storetest

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// roomyStreams are limits that no test reaches.
var roomyStreams = persistence.StreamLimits{Streams: 100, Values: 1 << 20, Bytes: 1 << 30}

// newStreamWrite returns values of one source; number is the number of the last value.
func newStreamWrite(task, name string, number int64, values ...string) persistence.StreamWrite {
	w := persistence.StreamWrite{Task: task, Name: name, Source: "worker", Number: number, At: number,
		StreamWriter: persistence.StreamWriter{Job: "j", Step: "plan#2", Try: 3}}
	for _, v := range values {
		w.Values = append(w.Values, json.RawMessage(v))
	}
	return w
}

func (w *testEnv) appendStreams(writes ...persistence.StreamWrite) []error {
	w.Helper()
	errs, err := w.AppendStreams(w.ctx(), writes, roomyStreams)
	require.NoError(w, err)
	return errs
}

// streamTexts returns the values of a stream from a number on.
func (w *testEnv) streamTexts(task, name string, from int64) (texts []string) {
	w.Helper()
	rows, err := w.ReadStream(w.ctx(), persistence.StreamFilter{Task: task, Name: name, From: from, Limit: 1000})
	require.NoError(w, err)
	for i := range rows {
		values, err := rows[i].Values()
		require.NoError(w, err)
		for n, v := range values {
			if rows[i].First+int64(n) >= from {
				texts = append(texts, string(v))
			}
		}
	}
	return texts
}

var streams = []storeBehavior{
	{"values are read in the order in which they were added, from any one on", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		require.Equal(w, []error{nil, nil, nil}, w.appendStreams(newStreamWrite("a", "answer", 2, `"é"`, `{"x":[1]}`),
			newStreamWrite("b", "answer", 1, `"other"`), newStreamWrite("a", "rows", 1, `1`)))
		w.appendStreams(newStreamWrite("a", "answer", 3, `null`))
		require.Equal(w, []string{`"é"`, `{"x":[1]}`, `null`}, w.streamTexts("a", "answer", 0))
		require.Equal(w, []string{`{"x":[1]}`, `null`}, w.streamTexts("a", "answer", 1))
		require.Empty(w, w.streamTexts("a", "answer", 3))
		require.Empty(w, w.streamTexts("a", "unknown", 0))
		rows, err := w.ReadStream(w.ctx(), persistence.StreamFilter{Task: "a", Name: "answer", Limit: 1})
		require.NoError(w, err)
		require.Equal(w, []persistence.StreamRow{{Task: "a", Name: "answer", First: 0, Last: 1, Source: "worker", Number: 2, At: 2,
			StreamWriter: persistence.StreamWriter{Job: "j", Step: "plan#2", Try: 3}, Content: []byte(`["é",{"x":[1]}]`)}}, rows)
		require.Empty(w, w.streamTexts("no\x00text", "answer", 0))
	}},
	{"a task lists its streams with their lengths, and whether they have ended", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		end := newStreamWrite("a", "rows", 1, `1`)
		end.Ends = true
		empty := newStreamWrite("a", "none", 0)
		empty.Ends = true
		w.appendStreams(newStreamWrite("a", "z", 2, `1`, `2`), end, empty)
		sizes, err := w.StreamSizes(w.ctx(), "a")
		require.NoError(w, err)
		require.Equal(w, []persistence.StreamSize{{Name: "none", Ended: true}, {Name: "rows", Length: 1, Bytes: 3, Ended: true},
			{Name: "z", Length: 2, Bytes: 5}}, sizes)
		w.appendStreams(newStreamWrite("a", "rows", 2, `2`))
		sizes, err = w.StreamSizes(w.ctx(), "a")
		require.NoError(w, err)
		require.False(w, sizes[1].Ended, "a later value opens the stream again")
	}},
	{"a value that its source has numbered before is left out", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.appendStreams(newStreamWrite("a", "s", 2, `1`, `2`))
		w.appendStreams(newStreamWrite("a", "s", 2, `1`, `2`), newStreamWrite("a", "s", 1, `1`))
		w.appendStreams(newStreamWrite("a", "s", 4, `2`, `3`, `4`), newStreamWrite("a", "s", 4, `4`), newStreamWrite("a", "t", 1, `1`))
		require.Equal(w, []string{`1`, `2`, `3`, `4`}, w.streamTexts("a", "s", 0))
		require.Equal(w, []string{`1`}, w.streamTexts("a", "t", 0))
		other := newStreamWrite("a", "s", 1, `5`)
		other.Source = "another worker"
		w.appendStreams(other, other)
		require.Equal(w, []string{`1`, `2`, `3`, `4`, `5`}, w.streamTexts("a", "s", 0))
	}},
	{"a write that exceeds a limit stores nothing, and others of the batch do", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		most := persistence.StreamLimits{Streams: 2, Values: 3, Bytes: 20}
		try := func(writes ...persistence.StreamWrite) (kinds []flow.ErrorKind) {
			errs, err := w.AppendStreams(w.ctx(), writes, most)
			require.NoError(w, err)
			for _, err := range errs {
				kinds = append(kinds, flow.ErrorKindOf(err))
			}
			return kinds
		}
		require.Equal(w, []flow.ErrorKind{"", "", flow.Limit}, try(newStreamWrite("a", "x", 1, `1`),
			newStreamWrite("a", "y", 1, `1`), newStreamWrite("a", "z", 1, `1`)))
		require.Equal(w, []flow.ErrorKind{flow.Limit, ""}, try(newStreamWrite("a", "x", 3, `2`, `3`), newStreamWrite("b", "x", 1, `1`)))
		require.Equal(w, []flow.ErrorKind{flow.Limit}, try(newStreamWrite("a", "x", 2, `"long enough for it"`)))
		require.Equal(w, []flow.ErrorKind{""}, try(newStreamWrite("a", "x", 2, `2`)))
		require.Equal(w, []string{`1`, `2`}, w.streamTexts("a", "x", 0))
		require.Equal(w, []string{`1`}, w.streamTexts("b", "x", 0))
	}},
	{"nothing is kept of a task that there is not, and of one that is deleted", func(w *testEnv) {
		errs := w.appendStreams(newStreamWrite("a", "s", 1, `1`), newStreamWrite("no\x00text", "s", 1, `1`))
		require.ErrorIs(w, errs[0], persistence.ErrNotFound)
		require.ErrorIs(w, errs[1], persistence.ErrNotFound)
		require.Empty(w, w.streamTexts("a", "s", 0))
		w.appendStreams()
		w.mustCommit(createCommit("a"))
		w.appendStreams(newStreamWrite("a", "s", 1, `1`))
		_, err := w.DeleteFlow(w.ctx(), "flow", 10)
		require.NoError(w, err)
		require.Empty(w, w.streamTexts("a", "s", 0))
		sizes, err := w.StreamSizes(w.ctx(), "a")
		require.NoError(w, err)
		require.Empty(w, sizes)
	}},
	{"concurrent writers leave no gap that is filled later", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range int64(10) {
					write := newStreamWrite("a", "s", n+1, strconv.FormatInt(n, 10))
					write.Source = strconv.Itoa(i)
					if _, err := w.AppendStreams(w.ctx(), []persistence.StreamWrite{write}, roomyStreams); err != nil {
						w.Error(err)
					}
				}
			})
		}
		all.Wait()
		rows, err := w.ReadStream(w.ctx(), persistence.StreamFilter{Task: "a", Name: "s", Limit: 100})
		require.NoError(w, err)
		require.Len(w, rows, 40)
		for i, r := range rows {
			require.EqualValues(w, i, r.First)
		}
	}},
}
