package storetest

import (
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// keepAll is more than any log has.
const keepAll = 1 << 30

// said are lines of a job, by its only source; number is that of the last one.
func said(task, job string, number int64, texts ...string) persistence.LogChunk {
	c := persistence.LogChunk{Task: task, Job: job, Source: "worker", Number: number}
	for _, text := range texts {
		c.Lines = append(c.Lines, persistence.LogLine{At: number, Stream: "stdout", Text: text})
	}
	return c
}

func (w *world) say(chunks ...persistence.LogChunk) {
	w.Helper()
	require.NoError(w, w.AppendLog(w.ctx(), chunks, keepAll))
}

// parts are chunks of a task's logs, of one job or of all.
func (w *world) parts(task, job string, after int64, limit int) []persistence.LogPart {
	w.Helper()
	return got[persistence.LogPart](w)(w.ReadLog(w.ctx(), persistence.LogFilter{Task: task, Job: job, After: after, Limit: limit}))
}

// log is all that is kept of a job's.
func (w *world) log(task, job string) (texts []string) {
	w.Helper()
	for _, p := range w.parts(task, job, 0, 1000) {
		for _, l := range p.Lines {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

var logs = []behavior{
	{"those of jobs of scopes however deep are kept", func(w *world) {
		x, y := deepID("x"), deepID("y")
		w.must(created("a"))
		w.say(said("a", x, 1, "one\n"), said("a", y, 1, "other\n"))
		w.say(said("a", x, 1, "one\n"), said("a", x, 2, "two\n"))
		require.Equal(w, []string{"one\n", "two\n"}, w.log("a", x))
		require.NoError(w, w.AppendLog(w.ctx(), []persistence.LogChunk{said("a", x, 3, "three\n")}, 7))
		require.Equal(w, []string{"three\n"}, w.log("a", x))
		require.Equal(w, y, w.parts("a", y, 0, 1)[0].Job)
	}},
	{"chunks are read as they were added, of one attempt or of all of a task", func(w *world) {
		w.must(created("a"), created("b"))
		lines := []persistence.LogLine{{At: 7, Stream: "stderr", Text: "no é\n"}, {At: 5, Stream: "log", Text: "\x00 half"}, {At: 1 << 50, Stream: "stdout"}}
		w.say(said("a", "j", 1, "one\n"), persistence.LogChunk{Task: "a", Job: "k", Source: "s", Number: 3, Lines: lines}, said("b", "l", 1, "other\n"))
		w.say(said("a", "j", 3, "two\n", "three\n"))
		all := w.parts("a", "", 0, 9)
		require.Equal(w, []persistence.LogPart{
			{Number: 1, Job: "j", Oldest: true, Lines: said("a", "j", 1, "one\n").Lines},
			{Number: 2, Job: "k", Oldest: true, Lines: lines},
			{Number: 3, Job: "j", Before: persistence.LogSize{Chars: 4, Lines: 1}, Lines: said("a", "j", 3, "two\n", "three\n").Lines},
		}, all)
		require.Equal(w, all[:1], w.parts("a", "", 0, 1))
		require.Equal(w, all[1:], w.parts("a", "", 1, 9))
		require.Equal(w, []persistence.LogPart{all[0], all[2]}, w.parts("a", "j", 0, 9))
		require.Equal(w, all[2:], w.parts("a", "j", 1, 9))
		require.Empty(w, w.parts("a", "", 3, 9))
		require.Empty(w, w.parts("a", "x", 0, 9))
		require.Empty(w, w.parts("no\x00text", "", 0, 9))
	}},
	{"a line that its source has numbered before is left out", func(w *world) {
		w.must(created("a"))
		w.say(said("a", "j", 2, "1\n", "2\n"))
		w.say(said("a", "j", 2, "1\n", "2\n"), said("a", "j", 1, "1\n"))
		w.say(said("a", "j", 4, "2\n", "3\n", "4\n"), said("a", "j", 4, "4\n"))
		w.say(said("a", "j", 9, "9\n")) // those between are lost
		require.Equal(w, []string{"1\n", "2\n", "3\n", "4\n", "9\n"}, w.log("a", "j"))
		other := said("a", "j", 1, "again\n")
		other.Source = "another worker"
		w.say(other, other)
		w.say(said("a", "j", 9, "9\n"))
		require.Equal(w, []string{"1\n", "2\n", "3\n", "4\n", "9\n", "again\n"}, w.log("a", "j"))
	}},
	{"nothing is kept of a task that there is not", func(w *world) {
		w.must(created("a"))
		w.say(said("x", "j", 1, "nobody's\n"), said("a", "k", 1, "somebody's\n"), said("no\x00text", "j", 1, "?"))
		require.Empty(w, w.parts("x", "", 0, 9))
		require.Equal(w, []string{"somebody's\n"}, w.log("a", "k"))
		w.say()
	}},
	{"of each attempt the newest chunks stay that fit, and the last one", func(w *world) {
		w.must(created("a"))
		keep := func(keep int, chunks ...persistence.LogChunk) { require.NoError(w, w.AppendLog(w.ctx(), chunks, keep)) }
		for i := range int64(5) {
			keep(30, said("a", "j", i+1, strings.Repeat("é", 9)+"\n"), said("a", "k", i+1, "short\n"))
		}
		first := w.parts("a", "j", 0, 9)
		require.Len(w, first, 3)
		require.Equal(w, []any{true, persistence.LogSize{Chars: 20, Lines: 2}}, []any{first[0].Oldest, first[0].Before})
		require.False(w, first[1].Oldest)
		require.Len(w, w.log("a", "k"), 5)
		keep(30, said("a", "j", 6, strings.Repeat("x", 40)))
		require.Equal(w, []string{strings.Repeat("x", 40)}, w.log("a", "j"))
		require.Equal(w, persistence.LogSize{Chars: 50, Lines: 5}, w.parts("a", "j", 0, 1)[0].Before)
		keep(30, said("a", "j", 6, "again"))
		keep(30, said("a", "j", 7, "\n"))
		require.Equal(w, []string{"\n"}, w.log("a", "j"))
	}},
	{"whoever appends at once leaves no gap that is filled later", func(w *world) {
		w.must(created("a"))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range int64(10) {
					c := said("a", string(rune('j'+i)), n+1, "x\n")
					if err := w.AppendLog(w.ctx(), []persistence.LogChunk{c}, keepAll); err != nil {
						w.Error(err)
					}
				}
			})
		}
		all.Wait()
		for i, p := range w.parts("a", "", 0, 100) {
			require.EqualValues(w, i+1, p.Number)
		}
		require.Len(w, w.parts("a", "", 0, 100), 40)
	}},
}
