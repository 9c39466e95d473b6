package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// The server knows that an empty table, vacuumed since, is cheapest to read as a whole.
func TestABatchReadsFewRowsOfATableThatHasGrown(t *testing.T) {
	ctx, dsn := t.Context(), pgtest.DSN(t)
	opened, err := Open(ctx, dsn, Options{Lanes: 1})
	require.NoError(t, err)
	s := opened.(*store)
	me, err := s.Join(ctx, persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	storetest.Publish(t, s, "flow", "version")
	commit := func(c persistence.Commit) {
		answers, err := s.Commit(ctx, me, []persistence.Commit{c})
		require.NoError(t, err)
		require.NoError(t, answers[0])
	}
	do := func(statements ...string) {
		for _, statement := range statements {
			_, err := s.execCount(ctx, "plant", statement)
			require.NoError(t, err)
		}
	}
	seq := int64(0)
	next := func(c persistence.Commit) persistence.Commit {
		seq++
		c.Task, c.Seq, c.Events = "a", seq, []byte("[]")
		return c
	}
	first := next(persistence.Commit{})
	first.Create = &persistence.Create{FlowID: "flow", VersionID: "version"}
	commit(first)
	do("ALTER TABLE troupe.task_queue SET (autovacuum_enabled = off)", "VACUUM ANALYZE troupe.task_queue")
	for n := range 8 {
		commit(next(persistence.Commit{Dequeue: []string{fmt.Sprint("none", n)}}))
	}
	do(`INSERT INTO troupe.task_queue (task, job_id, service, enqueued_at) SELECT 't' || n, n, 's', n FROM generate_series(1, 20000) n`)
	for _, p := range []*connPool{s.lanes, s.pool} {
		p.planAge = 0
	}
	do("SELECT pg_stat_reset()")
	commit(next(persistence.Commit{Dequeue: []string{"none"}}))
	require.NoError(t, s.Close()) // flushes the statistics of the connections
	admin, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer admin.Close(ctx)
	var read, commits int
	require.Eventually(t, func() bool {
		require.NoError(t, admin.QueryRow(ctx,
			`SELECT (SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'task_queue'),
			(SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'task_events')`).Scan(&read, &commits))
		return commits > 0
	}, time.Minute, 10*time.Millisecond)
	require.Less(t, read, 100)
}

// Metrics run this query every few seconds, on a table with all tasks of a month.
func TestTasksAreCountedByStateInIndexesAlone(t *testing.T) {
	ctx := t.Context()
	opened, err := Open(ctx, pgtest.DSN(t), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	for _, statement := range []string{
		`INSERT INTO troupe.tasks (id, flow_id, version_id, created_at, updated_at, ended_at, settled_at, status, outcome, body_hash, shard, params)
			SELECT 'e' || n, 'f', '', n, n, n, n, o, o, '', 0, '{}' FROM generate_series(1, 20000) n, LATERAL (SELECT (ARRAY['completed', 'failed', 'canceled'])[1 + n % 3]) x (o)`,
		`INSERT INTO troupe.tasks (id, flow_id, version_id, created_at, updated_at, status, body_hash, shard, params)
			SELECT 't' || n, 'f', '', n, n, 'running', '', 0, '{}' FROM generate_series(1, 1000) n`,
		"VACUUM ANALYZE troupe.tasks",
	} {
		_, err := s.execCount(ctx, "plant", statement)
		require.NoError(t, err)
	}
	q := listing.CountBy(dialect, persistence.TaskFilter{}, persistence.By{})
	plan, err := readRows(ctx, s.database, "plan", listing.ScanValue[string], "EXPLAIN "+q.String(), q.Args...)
	require.NoError(t, err)
	require.NotContains(t, strings.Join(plan, "\n"), "Seq Scan")
	counts, err := s.CountTasksBy(ctx, persistence.TaskFilter{}, persistence.By{})
	require.NoError(t, err)
	require.Equal(t, map[string]persistence.Group{"running": {Count: 1000},
		"completed": {Count: 6666}, "failed": {Count: 6667}, "canceled": {Count: 6667}}, counts)
}
