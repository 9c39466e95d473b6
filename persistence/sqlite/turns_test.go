package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWritersGetATurnWhileManyTasksAreDeleted: a writer in between sees some of them deleted.
func TestWritersGetATurnWhileManyTasksAreDeleted(t *testing.T) {
	const many = 20 * turnTasks
	for name, del := range map[string]func(s *store) (int, error){
		"ended":     func(s *store) (int, error) { return s.DeleteEnded(t.Context(), 1<<60, many) },
		"of a flow": func(s *store) (int, error) { return s.DeleteFlow(t.Context(), "f", many+1) },
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
			require.NoError(t, err)
			defer opened.Close()
			s := opened.(*store)
			plant(t, s,
				`INSERT INTO tasks (id, flow_id, version_id, status, cursor, last_action, error, paused, steps, followed, created_at, updated_at, ended_at, resting, body_hash, snapshot_seq)
				SELECT 't' || i, 'f', 'v', 'completed', '', '', '', false, 0, 0, i, i, i, false, '', 0 FROM n`, many)
			left := func() (n int) {
				require.NoError(t, s.inTransaction(t.Context(), "look",
					func(tx writeTx) error { return tx.queryOne("SELECT count(*) FROM tasks", nil, &n) }))
				return n
			}
			require.Equal(t, many, left())
			done := make(chan struct{})
			go func() {
				defer close(done)
				deleted, err := del(s)
				require.NoError(t, err)
				require.Equal(t, many, deleted)
			}()
			between := 0
			for n := many; n > 0; n = left() {
				if n < many {
					between++
				}
			}
			<-done
			require.Positive(t, between)
		})
	}
}

// plant inserts many rows with a statement that selects from n, which has a column i from 1 up.
func plant(t *testing.T, s *store, statement string, many int) {
	t.Helper()
	require.NoError(t, s.inTransaction(t.Context(), "plant", func(tx writeTx) error {
		_, err := tx.execCount("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "+statement, many)
		return err
	}))
}
