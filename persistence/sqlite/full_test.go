package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAStoreWithoutRoomIsNotAvailable(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	room := func(pages string) {
		require.NoError(t, opened.(*store).write(t.Context(), "room", func(t tx) error {
			_, err := t.lane.conn.ExecContext(t.ctx, "PRAGMA max_page_count = "+pages)
			return err
		}))
	}
	room("1") // no more than there is
	large := persistence.Flow{ID: "f", Description: strings.Repeat("x", 1<<20)}
	require.ErrorIs(t, opened.CreateFlow(t.Context(), large), persistence.ErrUnavailable)
	room("10000")
	require.NoError(t, opened.CreateFlow(t.Context(), large))
}

func TestAFileThatCannotBeOpenedIsNotAvailable(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	readers := &opened.(*store).readers
	require.NoError(t, readers.db.Close())
	readers.db, err = connect(filepath.Join(t.TempDir(), "nowhere", "troupe.db"), 1)
	require.NoError(t, err)
	for what, read := range map[string]func() error{
		"one row": func() error { _, err := opened.Task(t.Context(), "a"); return err },
		"tasks":   func() error { _, err := opened.Load(t.Context(), []string{"a"}); return err },
		"a list":  func() error { _, err := opened.ListTasks(t.Context(), persistence.TaskFilter{Limit: 1}); return err },
		"a ping":  func() error { return opened.Ping(t.Context()) },
	} {
		require.ErrorIs(t, read(), persistence.ErrUnavailable, what)
	}
}
