package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// readEnv makes this program read a database and exit, like another program beside a member.
const readEnv = "TROUPE_SQLITE_READ"

func TestMain(m *testing.M) {
	if path := os.Getenv(readEnv); path != "" {
		if err := readFlows(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func readFlows(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	var flows int
	return errors.Join(db.QueryRow("SELECT count(*) FROM flows").Scan(&flows), db.Close())
}

func TestAnotherProgramThatReadsTheFileLeavesTheLogOfItsStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.db")
	s := openAt(t, path)
	for i := range 3 {
		require.NoError(t, s.CreateFlow(t.Context(), persistence.Flow{ID: fmt.Sprint(i)}))
		other := exec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), readEnv+"="+path)
		said, err := other.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.FileExists(t, path+"-wal", "SQLite would remove it if nobody else had the file open")
	}
	require.NoError(t, s.Close())
}

func openAt(t testing.TB, path string) persistence.Store {
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) persistence.Store { return openAt(t, filepath.Join(t.TempDir(), "troupe.db")) })
}

func TestHistories(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "troupe.db"))
	defer func() { require.NoError(t, s.Close()) }()
	storetest.Histories(t, s)
}

func TestAFileHasOneStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.db")
	s := openAt(t, path)
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	require.ErrorIs(t, err, persistence.ErrTaken)
	require.ErrorContains(t, err, path)
	require.NoError(t, s.Close())
	require.NoError(t, openAt(t, path).Close())
}

func TestAcknowledgedRowsExistAfterwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd name?#%20.db")
	s := openAt(t, path)
	old, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	storetest.Publish(t, s, "flow", "version")
	first := persistence.Commit{Task: "a", Create: &persistence.Create{FlowID: "flow", VersionID: "version"}, Seq: 1, Events: []byte("[]")}
	answers, err := s.Commit(t.Context(), old, []persistence.Commit{first})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	require.NoError(t, s.Close())

	s = openAt(t, path)
	defer func() { require.NoError(t, s.Close()) }()
	records, err := s.Load(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Len(t, records[0].Rows, 1)
	_, err = s.Commit(t.Context(), old, []persistence.Commit{{Task: "a", Seq: 2, Events: []byte("[]")}})
	require.ErrorIs(t, err, persistence.ErrFenced, "who lived before is dead, its lease or not")
	_, err = s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
}

func TestABatchAfterARestartAnswersEachCommitByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.db")
	s := openAt(t, path)
	commit := func(batch ...persistence.Commit) []error {
		me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
		require.NoError(t, err)
		answers, err := s.Commit(t.Context(), me, batch)
		require.NoError(t, err)
		return answers
	}
	row := func(task string, seq int64) persistence.Commit {
		c := persistence.Commit{Task: task, Seq: seq, Events: []byte("[]")}
		if seq == 1 {
			c.Create = &persistence.Create{FlowID: "flow", VersionID: "version", Labels: map[string]string{"of": task}}
		}
		return c
	}
	storetest.Publish(t, s, "flow", "version")
	require.Equal(t, []error{nil, nil, nil}, commit(row("a", 1), row("b", 1), row("c", 1)))
	require.NoError(t, s.Close())

	s = openAt(t, path)
	defer func() { require.NoError(t, s.Close()) }()
	last := row("b", 2)
	last.Columns = &persistence.Columns{Status: "completed", EndedAt: 2}
	answers := commit(row("a", 2), row("nobody's", 2), last, row("c", 3), row("d", 1), row("a", 3))
	require.Equal(t, []error{nil, persistence.ErrUnknown, nil, persistence.ErrStale, nil, nil}, answers)
	found, err := s.ListTasks(t.Context(), persistence.TaskFilter{Labels: map[string]string{"of": "b"}, Statuses: []string{"completed"}})
	require.NoError(t, err)
	require.Len(t, found, 1, "that it has labels is known")
}

func TestANewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.db")
	require.NoError(t, openAt(t, path).Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = sqlite.Open(t.Context(), path, sqlite.Options{})
	require.ErrorContains(t, err, "use a newer program")
	require.ErrorContains(t, err, path)
}

func TestAStoreOfAnotherBuildIsRefused(t *testing.T) {
	for what, change := range map[string]string{"another text": "UPDATE migrations SET hash = 'other'", "none at all": "DROP TABLE migrations"} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "troupe.db")
			require.NoError(t, openAt(t, path).Close())
			require.NoError(t, openAt(t, path).Close(), "the same build opens it again")
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			_, err = db.Exec(change)
			require.NoError(t, err)
			require.NoError(t, db.Close())
			_, err = sqlite.Open(t.Context(), path, sqlite.Options{})
			require.ErrorContains(t, err, path+": the store was made by another build of Troupe")
			require.ErrorContains(t, err, "use the build that made it, or give this one a new store")
		})
	}
}

func TestManyReadersShareAConnection(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{Readers: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			_, err := s.Load(t.Context(), []string{"a", "b"})
			require.NoError(t, err)
			_, err = s.Unfinished(t.Context(), nil, "", 1)
			require.NoError(t, err)
		})
	}
	readers.Wait()
}

func TestAClosedStoreReturnsAClearError(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "troupe.db"))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Commit(t.Context(), "me", nil)
	require.ErrorContains(t, err, "closed")
}
