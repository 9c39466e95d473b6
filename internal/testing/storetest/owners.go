package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

var owners = []storeBehavior{
	{"two owners never both extend a history", func(w *testEnv) {
		w.mustCommit(createCommit("a"), createCommit("b"))
		var written atomic.Int64
		var writers sync.WaitGroup
		for owner := range 4 {
			writers.Go(func() {
				for seq := int64(2); seq <= 50; seq++ {
					written.Add(contendForRow(w, owner, seq))
				}
			})
		}
		writers.Wait()
		require.EqualValues(w, 2*49, written.Load())
		for _, id := range []string{"a", "b"} {
			require.Len(w, w.loadTask(id).Rows, 50)
		}
	}},
	{"of many that create a task one succeeds", func(w *testEnv) {
		for round := range 20 {
			var written atomic.Int64
			var writers sync.WaitGroup
			for owner := range 4 {
				writers.Go(func() {
					c := changeCommit(createCommit(fmt.Sprint("task", round)),
						func(c *persistence.Commit) { c.Create.BodyHash = fmt.Sprint(owner) })
					answers, err := w.Commit(w.ctx(), w.me, []persistence.Commit{c})
					require.NoError(w, err)
					if answers[0] == nil {
						written.Add(1)
					} else {
						require.ErrorIs(w, answers[0], persistence.ErrExists)
					}
				})
			}
			writers.Wait()
			require.EqualValues(w, 1, written.Load())
		}
	}},
	{"nothing is left of a busy task whose flow is deleted", func(w *testEnv) {
		for round := range 20 {
			id := fmt.Sprint("task", round)
			if round > 0 {
				Publish(w.T, w, "flow", "version")
			}
			w.mustCommit(createCommit(id))
			var owner sync.WaitGroup
			begun := make(chan struct{})
			owner.Go(func() {
				var answer error
				for seq := int64(2); answer == nil; seq++ {
					answer = w.commitBatch(appendCommit(id, seq))[0]
					if seq == 5 {
						close(begun)
					}
				}
				require.ErrorIs(w, answer, persistence.ErrUnknown)
			})
			<-begun
			n, err := w.DeleteFlow(w.ctx(), "flow", 9)
			require.NoError(w, err)
			require.Equal(w, 1, n)
			owner.Wait()
			require.Empty(w, requireList[persistence.Row](w)(w.Rows(w.ctx(), id, 0, rowsPart(9))))
		}
	}},
}

// contendForRow tries to write the next row of two tasks in one batch until an owner has written
// it. It returns how many of the rows were written by this owner.
func contendForRow(w *testEnv, owner int, seq int64) int64 {
	row := func(id string) persistence.Commit {
		return changeCommit(appendCommit(id, seq), func(c *persistence.Commit) { c.Events = fmt.Append(nil, owner) })
	}
	for {
		answers, err := w.Commit(w.ctx(), w.me, []persistence.Commit{row("a"), row("b")})
		require.NoError(w, err)
		ours := int64(0)
		for _, err := range answers {
			require.True(w, err == nil || errors.Is(err, persistence.ErrStale), "%v", err)
			if err == nil {
				ours++
			}
		}
		// A stale result may also mean that the previous row is still in progress.
		if ours == 2 || len(w.loadTask("a").Rows) >= int(seq) && len(w.loadTask("b").Rows) >= int(seq) {
			return ours
		}
	}
}
