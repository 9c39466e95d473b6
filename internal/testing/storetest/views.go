package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

var views = []storeBehavior{
	{"views are kept in order of name, and the last of a name counts", func(w *testEnv) {
		list, err := w.ListViews(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
		late := persistence.SavedView{Name: "late", Query: "state=failed&since=24h", UpdatedAt: 5, UpdatedBy: "ada"}
		mine := persistence.SavedView{Name: "Mine", Query: "label=team%3Ablue", UpdatedAt: 6}
		require.NoError(w, w.SetView(w.ctx(), late))
		require.NoError(w, w.SetView(w.ctx(), mine))
		late.Query, late.UpdatedAt, late.UpdatedBy = "state=failed", 7, "bo"
		require.NoError(w, w.SetView(w.ctx(), late))
		list, err = w.ListViews(w.ctx())
		require.NoError(w, err)
		require.Equal(w, []persistence.SavedView{mine, late}, list)
	}},
	{"a deleted view is not there", func(w *testEnv) {
		require.ErrorIs(w, w.DeleteView(w.ctx(), "late"), persistence.ErrNotFound)
		require.NoError(w, w.SetView(w.ctx(), persistence.SavedView{Name: "late", Query: "q=x"}))
		require.NoError(w, w.DeleteView(w.ctx(), "late"))
		list, err := w.ListViews(w.ctx())
		require.NoError(w, err)
		require.Empty(w, list)
	}},
}
