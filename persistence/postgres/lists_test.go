package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// many are tasks of two flows: most have ended, one in ten rests, and one in a hundred is active.
// Two begin at the same time.
const many = `INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, ended_at, resting, settled_at, status, outcome, body_hash, shard)
	SELECT 't' || n, 'flow-' || n % 2, '', n / 2, n, CASE WHEN n % 10 > 1 THEN n ELSE 0 END, n % 10 = 1, CASE WHEN n % 100 > 0 THEN n END,
		CASE WHEN n % 1000 = 2 THEN 'failed' WHEN n % 10 > 1 THEN 'completed' ELSE 'running' END,
		CASE WHEN n % 1000 = 2 THEN 'failed' WHEN n % 10 > 1 THEN 'completed' ELSE '' END, '', n % 1024
	FROM generate_series(1, 20000) n`

func TestAPageOfManyTasksIsReadAlone(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, _ := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	for _, statement := range []string{many, "ANALYZE tasks", "SELECT pg_stat_reset()"} {
		_, err := admin.Exec(ctx, statement)
		require.NoError(t, err)
	}
	before := persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 5000, ID: "t10000"}, Limit: 50}
	for _, f := range []persistence.TaskFilter{{Limit: 50}, before,
		{FlowID: "flow-1", Before: persistence.Spot{CreatedAt: 5000, ID: "t10001"}, Limit: 50},
		{ByUpdate: true, Limit: 50}} {
		rows, err := s.ListTasks(ctx, f)
		require.NoError(t, err)
		require.Len(t, rows, 50)
	}
	for _, f := range []persistence.TaskFilter{
		{Statuses: []string{"failed"}, Limit: 10},
		{Statuses: []string{"failed"}, Before: persistence.Spot{CreatedAt: 9000, ID: "t18000"}, Limit: 10},
		{Statuses: []string{"running"}, Before: persistence.Spot{CreatedAt: 5000, ID: "t10000"}, Limit: 10},
		{Statuses: []string{"failed", "running", "canceled"}, Limit: 10},
	} {
		rows, err := s.ListTasks(ctx, f)
		require.NoError(t, err)
		require.Len(t, rows, 10)
		for _, row := range rows {
			require.Contains(t, f.Statuses, row.Status)
		}
	}
	for _, shards := range []persistence.ShardSet{nil, persistence.AllShards()[:512]} {
		unfinished, err := s.Unfinished(ctx, shards, "", 50)
		require.NoError(t, err)
		require.Len(t, unfinished, 50)
	}
	deleted, err := s.DeleteEnded(ctx, 100, 50)
	require.NoError(t, err)
	require.Equal(t, 50, deleted)
	require.NoError(t, s.Close()) // flushes the statistics of the connections
	require.Eventually(t, func() bool {
		var read int
		require.NoError(t, admin.QueryRow(ctx,
			"SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'tasks'").Scan(
			&read))
		require.Less(t, read, 2000)
		return read > 300
	}, time.Minute, 10*time.Millisecond)
}

func TestAllUnfinishedTasksTogetherAreReadOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, _ := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	for _, statement := range []string{`INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, status, body_hash, shard)
		SELECT 't' || n, '', '', n, n, 'running', '', n % 1024 FROM generate_series(1, 20480) n`, "ANALYZE tasks", "SELECT pg_stat_reset()"} {
		_, err := admin.Exec(ctx, statement)
		require.NoError(t, err)
	}
	found := 0
	for after := ""; ; {
		ids, err := s.Unfinished(ctx, persistence.AllShards()[:512], after, 500)
		require.NoError(t, err)
		if len(ids) == 0 {
			break
		}
		found, after = found+len(ids), ids[len(ids)-1]
	}
	require.GreaterOrEqual(t, found, 10_240, "of half of the shards")
	require.NoError(t, s.Close()) // flushes the statistics of the connections
	require.Eventually(t, func() bool {
		var read int
		require.NoError(t, admin.QueryRow(ctx,
			"SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'tasks'").Scan(
			&read))
		require.Less(t, read, 30_000)
		return read > 15_000
	}, time.Minute, 10*time.Millisecond)
}
