package sqlite

import (
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// file is a store that publishes flows for a test.
type file struct {
	*store
	t    *testing.T
	path string
}

func openFor(t *testing.T, path string) file {
	opened, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	return file{opened.(*store), t, path}
}

func (f file) publish(id string) error {
	return f.CreateFlow(f.t.Context(), persistence.Flow{ID: id})
}

func (f file) has(id string) {
	_, err := f.Flow(f.t.Context(), id)
	require.NoError(f.t, err)
}

// moveLog moves the whole log into the database.
func (f file) moveLog() {
	require.NoError(f.t, f.inTransaction(f.t.Context(), "nothing", func(writeTx) error { return nil }))
	var busy, frames, moved int
	require.NoError(f.t, f.conn.QueryRowContext(f.t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved))
	require.Zero(f.t, busy)
}

// asAfterAKill copies the files with these endings as a killed member leaves them.
func (f file) asAfterAKill(endings ...string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.t.TempDir(), "troupe.db")
	for _, ending := range endings {
		from, err := os.Open(f.path + ending)
		require.NoError(f.t, err)
		to, err := os.Create(path + ending)
		require.NoError(f.t, err)
		_, err = io.Copy(to, from)
		require.NoError(f.t, err)
		require.NoError(f.t, from.Close())
		require.NoError(f.t, to.Close())
	}
	return path
}

func refused(t *testing.T, path, text string) {
	t.Helper()
	_, err := Open(t.Context(), path, Options{})
	require.ErrorContains(t, err, text)
}

func TestReadersMakeNoFileInPlaceOfOneThatWasMoved(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "troupe.db")
	f := openFor(t, path)
	require.NoError(t, f.publish("f"))
	f.readers.db.SetMaxIdleConns(0) // so each read opens a new connection
	move := func(from, to string) {
		for _, name := range []string{"troupe.db", "troupe.db-wal"} {
			require.NoError(t, os.Rename(filepath.Join(from, name), filepath.Join(to, name)))
		}
	}
	move(dir, away)
	for range 20 {
		_, err := f.Flow(t.Context(), "f")
		require.ErrorIs(t, err, persistence.ErrUnavailable)
		require.NoFileExists(t, path)
		require.NoFileExists(t, path+"-wal")
	}
	move(away, dir)
	f.has("f")
	require.NoError(t, f.publish("g"))
	after := openFor(t, f.asAfterAKill("", "-wal", ".lock"))
	after.has("f")
	after.has("g")
}

func TestNothingIsWrittenWhileAFileIsGone(t *testing.T) {
	for _, ending := range []string{"", "-wal", ".lock"} {
		t.Run("troupe.db"+ending, func(t *testing.T) {
			f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
			one := f.path + ending
			require.NoError(t, os.Rename(one, one+".away"))
			require.ErrorIs(t, f.publish("f"), persistence.ErrUnavailable)
			err := f.Ping(t.Context())
			require.ErrorContains(t, err, one+" was removed")
			require.Equal(t, "its file was removed while it was in use", persistence.ReasonOf(err))
			require.NoError(t, os.WriteFile(one, nil, 0o600))
			require.ErrorIs(t, f.publish("f"), persistence.ErrUnavailable)
			require.ErrorContains(t, f.Ping(t.Context()), one+" was replaced")
			require.NoError(t, os.Rename(one+".away", one))
			require.NoError(t, f.Ping(t.Context()))
			require.NoError(t, f.publish("f"))
		})
	}
}

func TestNothingIsWrittenToAFileThatWasOverwritten(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"empty":         func(path string) error { return os.Truncate(path, 0) },
		"cut short":     func(path string) error { return os.Truncate(path, 4096) },
		"other content": func(path string) error { return os.WriteFile(path, make([]byte, 1<<20), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
			require.NoError(t, err)
			f := file{opened.(*store), t, opened.(*store).files.path}
			f.moveLog()
			require.NoError(t, spoil(f.path))
			require.ErrorContains(t, f.publish("f"), "end the member and restore a backup")
			_ = f.Close() // SQLite may report its own error for such a file
		})
	}
}

func TestNothingIsWrittenAfterAnOlderFileReplacedTheStore(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	f := file{opened.(*store), t, opened.(*store).files.path}
	require.NoError(t, f.publish("f"))
	f.moveLog()
	older, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.NoError(t, f.publish("g"))
	f.moveLog()
	require.NoError(t, f.publish("h"))
	require.NoError(t, os.WriteFile(f.path, older, 0o600)) // as cp does
	err = f.publish("i")
	require.Equal(t, "its file was overwritten by an older one while it was in use", persistence.ReasonOf(err))
	require.ErrorContains(t, f.publish("j"), "end the member and restore a backup")
	_ = f.Close() // SQLite may report its own error for such a file
}

func TestNothingIsWrittenAfterTheLogWasCutShort(t *testing.T) {
	for name, bytes := range map[string]int64{"empty": 0, "its end is gone": 4096} {
		t.Run(name, func(t *testing.T) {
			opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
			require.NoError(t, err)
			f := file{opened.(*store), t, opened.(*store).files.path}
			f.moveLog()
			require.NoError(t, f.publish("f"))
			require.NoError(t, os.Truncate(f.path+"-wal", bytes))
			err = f.publish("g")
			require.Equal(t, "its log was cut short while it was in use", persistence.ReasonOf(err))
			require.ErrorContains(t, f.publish("h"), f.path+"-wal is no longer what its member wrote")
			_ = f.Close()
		})
	}
}

func TestAnotherProgramMayMoveTheLogWhileTheStoreIsInUse(t *testing.T) {
	f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
	for i := range 3 {
		require.NoError(t, f.publish(strconv.Itoa(i)))
		db, err := sql.Open("sqlite", f.path)
		require.NoError(t, err)
		var busy, frames, moved int
		require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved))
		require.Zero(t, busy)
		require.NoError(t, db.Close())
	}
	require.NoError(t, f.publish("last"))
	f.has("0")
}

func TestAStoreIsRefusedWithoutItsLog(t *testing.T) {
	f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
	for round := range 3 { // moving the log into the database meanwhile makes no difference
		require.NoError(t, f.publish(strconv.Itoa(round)))
		refused(t, f.asAfterAKill("", ".lock"), "the log")
		openFor(t, f.asAfterAKill("", "-wal", ".lock")).has(strconv.Itoa(round))
		f.moveLog()
	}
	openFor(t, f.asAfterAKill("", ".lock")).has("2") // the log was empty
}

func TestAStoreIsRefusedWithoutItsDatabase(t *testing.T) {
	f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
	require.NoError(t, f.publish("f"))
	refused(t, f.asAfterAKill(".lock"), "is missing or empty")
	refused(t, f.asAfterAKill("-wal"), "is missing or empty")
	refused(t, f.asAfterAKill("-wal", ".lock"), "is missing or empty")
}

func TestARestoredFileNeedsNoLog(t *testing.T) {
	f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
	require.NoError(t, f.publish("f"))
	copied := filepath.Join(t.TempDir(), "copy.db")
	db, err := sql.Open("sqlite", f.path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "VACUUM INTO ?", copied)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	openFor(t, copied).has("f")

	closed := filepath.Join(t.TempDir(), "troupe.db")
	opened, err := Open(t.Context(), closed, Options{})
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	require.NoFileExists(t, closed+"-wal")
	// a closed store may be removed: the next one starts empty
	require.NoError(t, os.Remove(closed))
	openFor(t, closed)
}

func TestAnotherProgramMayMoveTheLogAfterAKill(t *testing.T) {
	f := openFor(t, filepath.Join(t.TempDir(), "troupe.db"))
	require.NoError(t, f.publish("f"))
	path := f.asAfterAKill("", "-wal", ".lock")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	var flows int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM flows").Scan(&flows))
	require.Equal(t, 1, flows)
	require.NoError(t, db.Close())
	require.NoFileExists(t, path+"-wal", "SQLite has moved all of it")
	openFor(t, path).has("f")
}
