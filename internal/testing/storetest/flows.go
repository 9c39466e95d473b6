package storetest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func (w *testEnv) createVersion(id, flow string, number int, status string) {
	w.Helper()
	require.NoError(w, w.CreateVersion(w.ctx(), persistence.Version{ID: id, FlowID: flow, Number: number, Status: status}))
}

func (w *testEnv) createFlows(ids ...string) {
	w.Helper()
	for _, id := range ids {
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: id}))
	}
}

func (w *testEnv) listVersions(flow string) []string {
	w.Helper()
	list := []string{}
	for _, v := range requireList[persistence.Version](w)(w.ListVersions(w.ctx(), flow)) {
		require.Nil(w, v.Definition, "it is read with its version alone")
		list = append(list, v.ID)
	}
	return list
}

var flows = []storeBehavior{
	{"a flow is found by id and by slug", func(w *testEnv) {
		f := persistence.Flow{ID: "f", Slug: "slug", Name: "Name", Description: "Text", CreatedAt: 3}
		require.NoError(w, w.CreateFlow(w.ctx(), f))
		found, err := w.Flow(w.ctx(), "f")
		require.NoError(w, err)
		require.Equal(w, &f, found)
		found, err = w.FlowBySlug(w.ctx(), "slug")
		require.NoError(w, err)
		require.Equal(w, &f, found)
		_, err = w.Flow(w.ctx(), "x")
		require.ErrorIs(w, err, persistence.ErrNotFound)
		_, err = w.FlowBySlug(w.ctx(), "x")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"what is no text is found nowhere", func(w *testEnv) {
		for _, key := range []string{"a\x00b", "\xff"} {
			for what, find := range map[string]func() error{
				"a flow":               func() error { _, err := w.Flow(w.ctx(), key); return err },
				"a flow by its slug":   func() error { _, err := w.FlowBySlug(w.ctx(), key); return err },
				"a version":            func() error { _, err := w.Version(w.ctx(), key); return err },
				"the newest of a flow": func() error { _, err := w.FindVersion(w.ctx(), key, 0); return err },
				"a version of a flow":  func() error { _, err := w.FindVersion(w.ctx(), key, 1); return err },
				"a task":               func() error { _, err := w.Task(w.ctx(), key); return err },
			} {
				require.ErrorIs(w, find(), persistence.ErrNotFound, what)
			}
		}
	}},
	{"ids and slugs are unique, names and empty slugs are not", func(w *testEnv) {
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "a", Slug: "s", Name: "n"}))
		require.ErrorIs(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "b", Slug: "s"}), persistence.ErrDuplicate)
		require.ErrorIs(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "a", Slug: "t"}), persistence.ErrDuplicate)
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "c", Name: "n"}))
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "d", Name: "n"}))
		_, err := w.FlowBySlug(w.ctx(), "")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"a version of any number can be looked for", func(w *testEnv) {
		require.NoError(w, w.CreateFlow(w.ctx(), persistence.Flow{ID: "f"}))
		require.NoError(w, w.CreateVersion(w.ctx(), persistence.Version{ID: "v", FlowID: "f", Number: persistence.MaxVersion}))
		v, err := w.FindVersion(w.ctx(), "f", persistence.MaxVersion)
		require.NoError(w, err)
		require.Equal(w, "v", v.ID)
		for _, number := range []int{-1, persistence.MaxVersion + 1, math.MaxInt} {
			_, err := w.FindVersion(w.ctx(), "f", number)
			require.ErrorIs(w, err, persistence.ErrNotFound, number)
		}
	}},
	{"flows are listed newest first, in pages", func(w *testEnv) {
		for _, f := range []persistence.Flow{{ID: "a", CreatedAt: 1}, {ID: "c", CreatedAt: 2}, {ID: "b", CreatedAt: 2}} {
			require.NoError(w, w.CreateFlow(w.ctx(), f))
		}
		for _, tt := range []struct {
			offset, limit int
			want          string
		}{{0, 0, "bca"}, {0, 2, "bc"}, {2, 2, "a"}, {1, 0, "ca"}, {9, 2, ""}} {
			list, total, err := w.ListFlows(w.ctx(), tt.offset, tt.limit)
			require.NoError(w, err)
			require.Equal(w, 3, total)
			ids := ""
			for _, f := range list {
				ids += f.ID
			}
			require.Equal(w, tt.want, ids)
			require.NotNil(w, list)
		}
	}},
	{"a flow that is only tried is in no list, but found", func(w *testEnv) {
		for _, f := range []persistence.Flow{{ID: "a", CreatedAt: 1},
			{ID: "late", CreatedAt: 9, Tried: true}, {ID: "c", CreatedAt: 3, Tried: true},
			{ID: "b", CreatedAt: 2, Tried: true}} {
			require.NoError(w, w.CreateFlow(w.ctx(), f))
			found, err := w.Flow(w.ctx(), f.ID)
			require.NoError(w, err)
			require.Equal(w, &f, found)
		}
		list, total, err := w.ListFlows(w.ctx(), 0, 0)
		require.NoError(w, err)
		require.Equal(w, []any{1, []persistence.Flow{{ID: "a", CreatedAt: 1}}}, []any{total, list})
		tried := func(before int64, limit int) string {
			ids := ""
			for _, f := range requireList[persistence.Flow](w)(w.ListTried(w.ctx(), before, limit)) {
				ids += f.ID + " "
			}
			return ids
		}
		require.Equal(w, []string{"b c ", "b ", "", "b c late "}, []string{tried(9, 5), tried(9, 1), tried(2, 5), tried(10, 5)})
	}},
	{"a version comes back as it was given", func(w *testEnv) {
		w.createFlows("f")
		for name, definition := range odd {
			v := persistence.Version{ID: name, FlowID: "f", Number: 7, Definition: definition, Status: "draft", Hash: "h", CreatedAt: 5}
			require.NoError(w, w.CreateVersion(w.ctx(), v))
			found, err := w.Version(w.ctx(), name)
			require.NoError(w, err)
			require.Equal(w, &v, found)
		}
		_, err := w.Version(w.ctx(), "x")
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"a version without a number gets the next one", func(w *testEnv) {
		w.createFlows("f", "g")
		w.createVersion("a", "f", 0, "")
		w.createVersion("b", "f", 5, "")
		w.createVersion("c", "f", 0, "")
		w.createVersion("d", "g", 0, "")
		for id, number := range map[string]int{"a": 1, "b": 5, "c": 6, "d": 1} {
			v, err := w.Version(w.ctx(), id)
			require.NoError(w, err)
			require.Equal(w, number, v.Number, id)
		}
	}},
	{"the highest published version is found, or one by its number", func(w *testEnv) {
		w.createFlows("f")
		w.createVersion("v1", "f", 1, "published")
		w.createVersion("v3", "f", 3, "published")
		w.createVersion("v3again", "f", 3, "published")
		w.createVersion("v4", "f", 4, "draft")
		for number, want := range map[int]string{0: "v3", 1: "v1", 3: "v3", 4: "v4"} {
			v, err := w.FindVersion(w.ctx(), "f", number)
			require.NoError(w, err)
			require.Equal(w, want, v.ID)
		}
		_, err := w.FindVersion(w.ctx(), "f", 2)
		require.ErrorIs(w, err, persistence.ErrNotFound)
		_, err = w.FindVersion(w.ctx(), "x", 0)
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
	{"a version is of a flow that is there", func(w *testEnv) {
		require.ErrorIs(w, w.CreateVersion(w.ctx(), persistence.Version{ID: "v", FlowID: "gone"}), persistence.ErrNotFound)
		require.Empty(w, w.listVersions("gone"))
	}},
	{"versions are listed highest first, equal ones as they came", func(w *testEnv) {
		w.createFlows("f")
		w.createVersion("a", "f", 2, "")
		w.createVersion("c", "f", 3, "")
		w.createVersion("b", "f", 3, "")
		require.Equal(w, []string{"c", "b", "a"}, w.listVersions("f"))
		require.Empty(w, w.listVersions("x"))
		require.ErrorIs(w, w.CreateVersion(w.ctx(), persistence.Version{ID: "a", FlowID: "f", Number: 9}), persistence.ErrDuplicate)
	}},
}
