package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

var holds = []storeBehavior{
	{"what a task holds is told until it is gone", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5,
			[]persistence.Object{{Owner: "a", Name: "y"}, {Owner: "a", Name: "x"},
				{Owner: "other", Name: "z"}}))
		require.NoError(w, w.Hold(w.ctx(), "c", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}))
		// repeated on purpose
		require.NoError(w, w.Hold(w.ctx(), "c", "a", 9, []persistence.Object{{Owner: "a", Name: "x"}}))
		require.Equal(w, []string{"x", "y"}, requireList[string](w)(w.Held(w.ctx(), "a")))
		w.mustCommit(createCommit("b"))
		require.Equal(w, []string{"a"}, requireList[string](w)(w.DropHolds(w.ctx(), 10, 10)))
		require.Equal(w, []string{"x", "y"}, requireList[string](w)(w.Held(w.ctx(), "a")))
		require.Equal(w, []string{"z"}, requireList[string](w)(w.Held(w.ctx(), "other")))
		require.Empty(w, requireList[string](w)(w.DropHolds(w.ctx(), 10, 10)))
	}},
	{"a hold of a task that has yet to begin stays for a while", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}))
		require.Empty(w, requireList[string](w)(w.DropHolds(w.ctx(), 5, 10)))
		require.Equal(w, []string{"x"}, requireList[string](w)(w.Held(w.ctx(), "a")))
	}},
	{"a hold that is noted again is as old as the last note of it", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		again := []persistence.Object{{Owner: "a", Name: "x"}, {Owner: "a", Name: "x"}}
		for _, at := range []int64{5, 20, 15} {
			require.NoError(w, w.Hold(w.ctx(), "b", "a", at, again))
		}
		require.Empty(w, requireList[string](w)(w.DropHolds(w.ctx(), 20, 10)))
		require.Equal(w, []string{"a"}, requireList[string](w)(w.DropHolds(w.ctx(), 21, 10)))
	}},
	{"nothing is held that somebody has from a task which is gone", func(w *testEnv) {
		require.ErrorIs(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}), persistence.ErrUnknown)
		require.Empty(w, requireList[string](w)(w.Held(w.ctx(), "a")))
	}},
	{"it is told which tasks are gone", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		require.ElementsMatch(w, []string{"b", "c"}, requireList[string](w)(w.Gone(w.ctx(), []string{"b", "a", "c"})))
		require.Empty(w, requireList[string](w)(w.Gone(w.ctx(), nil)))
	}},
	{"so many holds are dropped at once", func(w *testEnv) {
		w.mustCommit(createCommit("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5,
			[]persistence.Object{{Owner: "a", Name: "x"}, {Owner: "a", Name: "y"}, {Owner: "a", Name: "z"}}))
		require.Len(w, requireList[string](w)(w.DropHolds(w.ctx(), 9, 2)), 2)
		require.Len(w, requireList[string](w)(w.DropHolds(w.ctx(), 9, 2)), 1)
	}},
}
