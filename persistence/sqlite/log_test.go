package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheLogStaysShortWhileReadersOverlap: each reader starts before the previous one ends.
func TestTheLogStaysShortWhileReadersOverlap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "troupe.db")
	opened, err := Open(t.Context(), path, Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	const most = 1 << 20
	s.log = newLog(path, most)
	begin := func() *sql.Tx {
		tx, err := s.readers.db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
		require.NoError(t, err)
		var n int
		require.NoError(t, tx.QueryRow("SELECT count(*) FROM views").Scan(&n))
		return tx
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for reader := begin(); ; {
			next := begin()
			require.NoError(t, reader.Rollback())
			reader = next
			select {
			case <-stop:
				require.NoError(t, reader.Rollback())
				return
			default:
			}
		}
	}()
	longest := int64(0)
	for range 100 { // of more than 100 KB each
		require.NoError(t, s.inTransaction(t.Context(), "write", func(tx writeTx) error {
			_, err := tx.execCount("INSERT INTO views (name, query, updated_at, updated_by) " +
				"VALUES ('v', hex(randomblob(50000)), 0, '') ON CONFLICT (name) DO UPDATE SET " +
				"query = excluded.query")
			return err
		}))
		longest = max(longest, s.log.fileSize())
	}
	close(stop)
	<-stopped
	require.Less(t, longest, int64(5*most))
}
