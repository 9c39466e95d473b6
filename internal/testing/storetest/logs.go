package storetest

import (
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// keepAll is more characters than any log has.
const keepAll = 1 << 30

// newLogChunk returns lines of a job with one source; number is the number of the last line.
func newLogChunk(task, job string, number int64, texts ...string) persistence.LogChunk {
	c := persistence.LogChunk{Task: task, Job: job, Source: "worker", Number: number}
	for _, text := range texts {
		c.Lines = append(c.Lines, persistence.LogLine{At: number, Stream: "stdout", Text: text})
	}
	return c
}

func (w *testEnv) appendLog(chunks ...persistence.LogChunk) {
	w.Helper()
	require.NoError(w, w.AppendLog(w.ctx(), chunks, keepAll))
}

// readParts returns chunks of a task's logs, of a single job or of all jobs.
func (w *testEnv) readParts(task, job string, after int64, limit int) []persistence.LogPart {
	w.Helper()
	return requireList[persistence.LogPart](w)(w.ReadLog(w.ctx(), persistence.LogFilter{Task: task, Job: job, After: after, Limit: limit}))
}

// readTexts returns all stored lines of a job.
func (w *testEnv) readTexts(task, job string) (texts []string) {
	w.Helper()
	for _, p := range w.readParts(task, job, 0, 1000) {
		for _, l := range p.Lines {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

var logs = []storeBehavior{
	{"those of jobs of scopes however deep are kept", func(w *testEnv) {
		x, y := deepID("x"), deepID("y")
		w.mustCommit(createCommit("a"))
		w.appendLog(newLogChunk("a", x, 1, "one\n"), newLogChunk("a", y, 1, "other\n"))
		w.appendLog(newLogChunk("a", x, 1, "one\n"), newLogChunk("a", x, 2, "two\n"))
		require.Equal(w, []string{"one\n", "two\n"}, w.readTexts("a", x))
		require.NoError(w, w.AppendLog(w.ctx(), []persistence.LogChunk{newLogChunk("a", x, 3, "three\n")}, 7))
		require.Equal(w, []string{"three\n"}, w.readTexts("a", x))
		require.Equal(w, y, w.readParts("a", y, 0, 1)[0].Job)
	}},
	{"chunks are read as they were added, of one attempt or of all of a task", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		lines := []persistence.LogLine{{At: 7, Stream: "stderr", Text: "no é\n"},
			{At: 5, Stream: "log", Text: "\x00 half"}, {At: 1 << 50, Stream: "stdout"}}
		w.appendLog(newLogChunk("a", "j", 1, "one\n"), persistence.LogChunk{Task: "a", Job: "k",
			Source: "s", Number: 3, Lines: lines}, newLogChunk("b", "l", 1, "other\n"))
		w.appendLog(newLogChunk("a", "j", 3, "two\n", "three\n"))
		all := w.readParts("a", "", 0, 9)
		require.Equal(w, []persistence.LogPart{
			{Number: 1, Job: "j", Oldest: true, Lines: newLogChunk("a", "j", 1, "one\n").Lines},
			{Number: 2, Job: "k", Oldest: true, Lines: lines},
			{Number: 3, Job: "j", Before: persistence.LogSize{Chars: 4, Lines: 1},
				Lines: newLogChunk("a", "j", 3, "two\n", "three\n").Lines},
		}, all)
		require.Equal(w, all[:1], w.readParts("a", "", 0, 1))
		require.Equal(w, all[1:], w.readParts("a", "", 1, 9))
		require.Equal(w, []persistence.LogPart{all[0], all[2]}, w.readParts("a", "j", 0, 9))
		require.Equal(w, all[2:], w.readParts("a", "j", 1, 9))
		require.Empty(w, w.readParts("a", "", 3, 9))
		require.Empty(w, w.readParts("a", "x", 0, 9))
		require.Empty(w, w.readParts("no\x00text", "", 0, 9))
	}},
	{"a line that its source has numbered before is left out", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.appendLog(newLogChunk("a", "j", 2, "1\n", "2\n"))
		w.appendLog(newLogChunk("a", "j", 2, "1\n", "2\n"), newLogChunk("a", "j", 1, "1\n"))
		w.appendLog(newLogChunk("a", "j", 4, "2\n", "3\n", "4\n"), newLogChunk("a", "j", 4, "4\n"))
		w.appendLog(newLogChunk("a", "j", 9, "9\n")) // the lines in between are lost
		require.Equal(w, []string{"1\n", "2\n", "3\n", "4\n", "9\n"}, w.readTexts("a", "j"))
		other := newLogChunk("a", "j", 1, "again\n")
		other.Source = "another worker"
		w.appendLog(other, other)
		w.appendLog(newLogChunk("a", "j", 9, "9\n"))
		require.Equal(w, []string{"1\n", "2\n", "3\n", "4\n", "9\n", "again\n"}, w.readTexts("a", "j"))
	}},
	{"nothing is kept of a task that there is not", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		w.appendLog(newLogChunk("x", "j", 1, "nobody's\n"),
			newLogChunk("a", "k", 1, "somebody's\n"), newLogChunk("no\x00text", "j", 1, "?"))
		require.Empty(w, w.readParts("x", "", 0, 9))
		require.Equal(w, []string{"somebody's\n"}, w.readTexts("a", "k"))
		w.appendLog()
	}},
	{"of each attempt the newest chunks stay that fit, and the last one", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		keep := func(keep int, chunks ...persistence.LogChunk) { require.NoError(w, w.AppendLog(w.ctx(), chunks, keep)) }
		for i := range int64(5) {
			keep(30, newLogChunk("a", "j", i+1, strings.Repeat("é", 9)+"\n"), newLogChunk("a", "k", i+1, "short\n"))
		}
		first := w.readParts("a", "j", 0, 9)
		require.Len(w, first, 3)
		require.Equal(w, []any{true, persistence.LogSize{Chars: 20, Lines: 2}}, []any{first[0].Oldest, first[0].Before})
		require.False(w, first[1].Oldest)
		require.Len(w, w.readTexts("a", "k"), 5)
		keep(30, newLogChunk("a", "j", 6, strings.Repeat("x", 40)))
		require.Equal(w, []string{strings.Repeat("x", 40)}, w.readTexts("a", "j"))
		require.Equal(w, persistence.LogSize{Chars: 50, Lines: 5}, w.readParts("a", "j", 0, 1)[0].Before)
		keep(30, newLogChunk("a", "j", 6, "again"))
		keep(30, newLogChunk("a", "j", 7, "\n"))
		require.Equal(w, []string{"\n"}, w.readTexts("a", "j"))
	}},
	{"whoever appends at once leaves no gap that is filled later", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range int64(10) {
					c := newLogChunk("a", string(rune('j'+i)), n+1, "x\n")
					if err := w.AppendLog(w.ctx(), []persistence.LogChunk{c}, keepAll); err != nil {
						w.Error(err)
					}
				}
			})
		}
		all.Wait()
		for i, p := range w.readParts("a", "", 0, 100) {
			require.EqualValues(w, i+1, p.Number)
		}
		require.Len(w, w.readParts("a", "", 0, 100), 40)
	}},
}
