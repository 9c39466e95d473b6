package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/schedulerdb"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// databaseOf returns a database that another program made.
func databaseOf(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err)
	}
	return db
}

func TestAFileOfAnotherProgramIsLeftAsItIs(t *testing.T) {
	for name, statements := range map[string][]string{
		"the original's": {"CREATE TABLE flows (id TEXT PRIMARY KEY, name TEXT)",
			"CREATE TABLE tasks (id TEXT)", "INSERT INTO flows VALUES ('f', 'old')"},
		"with other tables":    {"CREATE TABLE albums (title TEXT)"},
		"with a log beside it": {"PRAGMA journal_mode=WAL", "CREATE TABLE flows (id TEXT)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "scheduler.db")
			db := databaseOf(t, path, statements...)
			before := filesIn(t, dir) // the program still has it open
			_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "another program")
			require.ErrorContains(t, err, "name another file")
			require.Equal(t, before, filesIn(t, dir), "byte for byte")
			require.NoError(t, db.Close())
		})
	}
}

func TestASchedulersFileIsRefusedWithAHintToImportIt(t *testing.T) {
	d := schedulerdb.New(t)
	d.Flow("order", "{}")
	path := d.Close()
	before := filesIn(t, filepath.Dir(path))
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.ErrorContains(t, err, "it has the tables edges, flow_versions, flows, node_runs, nodes")
	require.ErrorContains(t, err, `"troupe import pocketflow `+path+`" takes its flows and tasks over`)
	require.Equal(t, before, filesIn(t, filepath.Dir(path)), "byte for byte")
}

func TestAFileThatIsNoDatabaseIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(path, []byte("dear diary"), 0o600))
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.ErrorContains(t, err, "no SQLite database")
	require.Equal(t, map[string]string{"notes.txt": "dear diary"}, filesIn(t, dir))
}

func TestAnEmptyFileBecomesAStore(t *testing.T) {
	dir := t.TempDir()
	nothing := filepath.Join(dir, "nothing.db")
	require.NoError(t, os.WriteFile(nothing, nil, 0o600))
	require.NoError(t, openAt(t, nothing).Close())

	empty := filepath.Join(dir, "empty.db")
	require.NoError(t, databaseOf(t, empty, "CREATE TABLE a (b TEXT)", "DROP TABLE a").Close())
	require.NoError(t, openAt(t, empty).Close())
}

// A copy of an open store looks like the store of a killed process: all its data may still be in
// the log.
func TestAStoreWhoseProcessWasKilledIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "troupe.db"))
	_, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Nanosecond})
	require.NoError(t, err)
	other := t.TempDir()
	for name, content := range filesIn(t, dir) {
		require.NoError(t, os.WriteFile(filepath.Join(other, name), []byte(content), 0o600))
	}
	require.NoError(t, s.Close())
	s = openAt(t, filepath.Join(other, "troupe.db"))
	require.NoError(t, s.Close())
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(b)
	}
	return files
}
