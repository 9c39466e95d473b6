package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestAFileHasOneStoreUnderAnyOfItsNames(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "troupe.db")
	link, far := filepath.Join(dir, "link.db"), filepath.Join(elsewhere, "far.db")
	folder := filepath.Join(elsewhere, "folder")
	require.NoError(t, os.Symlink("troupe.db", link))
	require.NoError(t, os.Symlink(link, far))
	require.NoError(t, os.Symlink(dir, folder))
	s := openAt(t, far) // the link exists before its file
	defer func() { require.NoError(t, s.Close()) }()
	require.FileExists(t, path)
	for _, name := range []string{path, link, far, filepath.Join(folder, "troupe.db"), filepath.Join(folder, "link.db")} {
		_, err := sqlite.Open(t.Context(), name, sqlite.Options{})
		require.ErrorIs(t, err, persistence.ErrTaken, name)
		require.ErrorContains(t, err, path, name)
	}
}

func TestAFileOfTwoNamesIsRefused(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "troupe.db"), filepath.Join(dir, "other.db")
	s := openAt(t, path)
	require.NoError(t, os.Link(path, other))
	_, err := sqlite.Open(t.Context(), other, sqlite.Options{})
	require.ErrorContains(t, err, "other.db has 2 names")
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(other))
	require.NoError(t, openAt(t, path).Close())
}

func TestLinksThatLeadNowhereAreRefused(t *testing.T) {
	link := filepath.Join(t.TempDir(), "round.db")
	require.NoError(t, os.Symlink(link, link))
	_, err := sqlite.Open(t.Context(), link, sqlite.Options{})
	require.ErrorContains(t, err, "round.db")
}
