package sqlite

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAStoreWithoutRoomIsNotAvailable(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	room := roomFor(t, opened.(*store))
	room("1") // no more than in use
	large := persistence.Flow{ID: "f", Description: strings.Repeat("x", 1<<20)}
	require.ErrorIs(t, opened.CreateFlow(t.Context(), large), persistence.ErrUnavailable)
	room("10000")
	require.NoError(t, opened.CreateFlow(t.Context(), large))
}

// roomFor returns a function that limits the number of pages of a store.
func roomFor(t *testing.T, s *store) func(pages string) {
	return func(pages string) {
		require.NoError(t, s.inTransaction(t.Context(), "room", func(t writeTx) error {
			_, err := t.lane.conn.ExecContext(t.ctx, "PRAGMA max_page_count = "+pages)
			return err
		}))
	}
}

func TestAFileThatCannotBeOpenedIsNotAvailable(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	readers := &opened.(*store).readers
	require.NoError(t, readers.db.Close())
	readers.db, err = openPool(filepath.Join(t.TempDir(), "nowhere", "troupe.db"), 1, func() error { return nil })
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

func TestRolledBackRowsAreNotRemembered(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, opened.Close()) }()
	me, err := opened.Join(t.Context(), persistence.Joining{Name: "a", TTL: time.Hour})
	require.NoError(t, err)
	require.NoError(t, opened.CreateFlow(t.Context(), persistence.Flow{ID: "flow"}))
	require.NoError(t, opened.CreateVersion(t.Context(), persistence.Version{ID: "version", FlowID: "flow", Number: 1}))
	commit := func(batch ...persistence.Commit) error {
		answers, err := opened.Commit(t.Context(), me, batch)
		return errors.Join(append(answers, err)...)
	}
	begin := persistence.Commit{Task: "a", Create: &persistence.Create{FlowID: "flow", VersionID: "version"}, Seq: 1, Events: []byte("[]")}
	next := persistence.Commit{Task: "a", Seq: 2, Events: []byte("[]")}
	tooMuch := persistence.Commit{Task: "a", Seq: 3, Events: bytes.Repeat([]byte("x"), 1<<20)}
	require.NoError(t, commit(begin))
	room := roomFor(t, opened.(*store))
	room("1")
	require.ErrorIs(t, commit(next, tooMuch), persistence.ErrUnavailable)
	room("10000")
	require.NoError(t, commit(next, tooMuch))
}
