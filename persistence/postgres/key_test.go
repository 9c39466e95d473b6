package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestAJournalIsFoundByTheSameKeyEverywhere(t *testing.T) {
	opened, err := Open(t.Context(), pgtest.DSN(t), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	const id = "01985000-aaaa-7000-8000-000000000001"
	keys := map[[16]byte]string{}
	for _, task := range []string{"task-" + id, "task-01985000-AAAA-7000-8000-000000000001", id,
		"task-", "task-" + id + " ", "task-" + id + "\n", "a", ""} {
		var key [16]byte
		require.NoError(t, opened.(*store).pool.conns.QueryRow(t.Context(), "SELECT troupe.journal_key($1)", task).Scan(&key))
		require.Equal(t, journalKey(task), key, "%q", task)
		require.Empty(t, keys[key], "%q has the key of another one", task)
		keys[key] = "that of " + task
	}
}
