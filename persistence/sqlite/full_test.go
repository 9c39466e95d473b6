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
