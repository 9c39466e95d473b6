package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

var holds = []behavior{
	{"what a task holds is told until it is gone", func(w *world) {
		w.must(created("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "y"}, {Owner: "a", Name: "x"}, {Owner: "other", Name: "z"}}))
		require.NoError(w, w.Hold(w.ctx(), "c", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}))
		require.NoError(w, w.Hold(w.ctx(), "c", "a", 9, []persistence.Object{{Owner: "a", Name: "x"}})) // again
		require.Equal(w, []string{"x", "y"}, got[string](w)(w.Held(w.ctx(), "a")))
		w.must(created("b"))
		require.Equal(w, []string{"a"}, got[string](w)(w.DropHolds(w.ctx(), 10, 10)))
		require.Equal(w, []string{"x", "y"}, got[string](w)(w.Held(w.ctx(), "a")))
		require.Equal(w, []string{"z"}, got[string](w)(w.Held(w.ctx(), "other")))
		require.Empty(w, got[string](w)(w.DropHolds(w.ctx(), 10, 10)))
	}},
	{"a hold of a task that has yet to begin stays for a while", func(w *world) {
		w.must(created("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}))
		require.Empty(w, got[string](w)(w.DropHolds(w.ctx(), 5, 10)))
		require.Equal(w, []string{"x"}, got[string](w)(w.Held(w.ctx(), "a")))
	}},
	{"a hold that is noted again is as old as the last note of it", func(w *world) {
		w.must(created("a"))
		again := []persistence.Object{{Owner: "a", Name: "x"}, {Owner: "a", Name: "x"}}
		for _, at := range []int64{5, 20, 15} {
			require.NoError(w, w.Hold(w.ctx(), "b", "a", at, again))
		}
		require.Empty(w, got[string](w)(w.DropHolds(w.ctx(), 20, 10)))
		require.Equal(w, []string{"a"}, got[string](w)(w.DropHolds(w.ctx(), 21, 10)))
	}},
	{"nothing is held that somebody has from a task which is gone", func(w *world) {
		require.ErrorIs(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}}), persistence.ErrUnknown)
		require.Empty(w, got[string](w)(w.Held(w.ctx(), "a")))
	}},
	{"it is told which tasks are gone", func(w *world) {
		w.must(created("a"))
		require.ElementsMatch(w, []string{"b", "c"}, got[string](w)(w.Gone(w.ctx(), []string{"b", "a", "c"})))
		require.Empty(w, got[string](w)(w.Gone(w.ctx(), nil)))
	}},
	{"so many holds are dropped at once", func(w *world) {
		w.must(created("a"))
		require.NoError(w, w.Hold(w.ctx(), "b", "a", 5, []persistence.Object{{Owner: "a", Name: "x"}, {Owner: "a", Name: "y"}, {Owner: "a", Name: "z"}}))
		require.Len(w, got[string](w)(w.DropHolds(w.ctx(), 9, 2)), 2)
		require.Len(w, got[string](w)(w.DropHolds(w.ctx(), 9, 2)), 1)
	}},
}
