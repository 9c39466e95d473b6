package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// joined returns a store with a member and task "a".
func joined(t *testing.T, dsn string) (persistence.Store, string) {
	s := openAt(t, dsn)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	storetest.Publish(t, s, "flow", "version")
	answers, err := s.Commit(t.Context(), me,
		[]persistence.Commit{{Task: "a", Create: &persistence.Create{FlowID: "flow",
			VersionID: "version"}, Seq: 1, Events: []byte("[]")}})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	return s, me
}

func row(seq int64) persistence.Commit {
	return persistence.Commit{Task: "a", Seq: seq, Events: []byte("[]")}
}

// blocked waits until n connections wait for a lock.
func blocked(t *testing.T, admin *pgx.Conn, n int) {
	require.Eventually(t, func() bool {
		var waiting int
		require.NoError(t, admin.QueryRow(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+
				"wait_event_type = 'Lock'").Scan(&waiting))
		return waiting == n
	}, time.Minute, time.Millisecond)
}

// shapesOfBatches are batches of every shape; none of a fenced member's is written.
var shapesOfBatches = map[string][]persistence.Commit{
	"one row":    {row(2)},
	"many rows":  {row(2), {Task: "b", Seq: 2, Events: []byte("[]")}},
	"everything": {{Task: "a", Seq: 1, Columns: &persistence.Columns{Status: "running"}}},
}

func TestABatchWaitsForATakeoverAndSeesIt(t *testing.T) {
	for name, batch := range shapesOfBatches {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s, me := joined(t, dsn)
			admin, ctx := connect(t, dsn), t.Context()
			tx, err := admin.Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, "UPDATE members SET fenced_at = 1")
			require.NoError(t, err)
			var sender sync.WaitGroup
			sender.Go(func() {
				_, err := s.Commit(ctx, me, batch)
				require.ErrorIs(t, err, persistence.ErrFenced)
			})
			blocked(t, connect(t, dsn), 1)
			require.NoError(t, tx.Commit(ctx))
			sender.Wait()
			records, err := s.Load(ctx, []string{"a"})
			require.NoError(t, err)
			require.Len(t, records[0].Rows, 1)
			require.Equal(t, "pending", records[0].Status)
		})
	}
}

func TestATakeoverWaitsForABatch(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx := t.Context()
	// Another transaction holds the row that the batch wants to write, so the batch waits with its
	// lock on the member.
	other := connect(t, dsn)
	tx, err := other.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "INSERT INTO task_events (task, seq, at, events) VALUES (journal_key('a'), 2, 0, '')")
	require.NoError(t, err)
	var calls sync.WaitGroup
	calls.Go(func() {
		answers, err := s.Commit(ctx, me, []persistence.Commit{row(2)})
		require.NoError(t, err)
		require.NoError(t, answers[0])
	})
	admin := connect(t, dsn)
	blocked(t, admin, 1)
	_, err = s.Renew(ctx, me, 0)
	require.NoError(t, err, "a renewal does not wait for a batch")
	calls.Go(func() {
		fenced, err := s.Fence(ctx, me)
		require.NoError(t, err)
		require.True(t, fenced)
		records, err := s.Load(ctx, []string{"a"})
		require.NoError(t, err)
		require.Len(t, records[0].Rows, 2, "what the predecessor was writing is there")
	})
	blocked(t, admin, 2)
	require.NoError(t, tx.Rollback(ctx))
	calls.Wait()
}

func TestNoPlanReadsAWholeTable(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	commit := func(batch ...persistence.Commit) {
		_, err := s.Commit(ctx, me, batch)
		require.NoError(t, err)
	}
	// Plans are made while the tables are empty.
	for range 10 {
		for _, batch := range shapesOfBatches {
			commit(batch...)
		}
	}
	_, err := admin.Exec(ctx, `INSERT INTO task_events SELECT journal_key('t' || n), 1, 0, '' FROM generate_series(1, 20000) n;
		INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, body_hash, shard) SELECT 't' || n, '', '', 0, 0, '', 0 FROM generate_series(1, 20000) n;
		INSERT INTO task_queue SELECT 't' || n, 'j', '', 0 FROM generate_series(1, 20000) n;
		INSERT INTO wakes SELECT 't' || n, 5, 0 FROM generate_series(1, 20000) n`)
	require.NoError(t, err)
	large := make([]persistence.Commit, 500)
	for i := range large {
		large[i] = persistence.Commit{Task: fmt.Sprint("t", i+1), Seq: 2, Events: []byte("[]"),
			Columns: &persistence.Columns{Status: "running"}, Rest: &persistence.Rest{Resting: i%2 == 0},
			Enqueue: []persistence.QueueRow{{JobID: "k"}}, Dequeue: []string{"j"}}
	}
	commit(large...)
	require.NoError(t, s.Close()) // flushes the statistics of the connections
	require.Eventually(t, func() bool {
		var updated int
		require.NoError(t, admin.QueryRow(ctx, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'tasks'").Scan(&updated))
		return updated >= len(large)
	}, time.Minute, 10*time.Millisecond)
	rows, err := admin.Query(ctx, "SELECT relname || ' ' || seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 1000")
	require.NoError(t, err)
	whole, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, whole)
}

func TestAnUpdateOfATaskStaysInItsPage(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx := t.Context()
	for seq := int64(2); seq <= 100; seq++ {
		c := row(seq)
		c.Columns = &persistence.Columns{Status: "running", Steps: int(seq)}
		_, err := s.Commit(ctx, me, []persistence.Commit{c})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close()) // flushes the statistics of the connections
	admin := connect(t, dsn)
	require.Eventually(t, func() bool {
		var all, hot int
		require.NoError(t, admin.QueryRow(ctx,
			"SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'tasks'").Scan(
			&all, &hot))
		return all == 99 && hot == 98 // the first one changes the state, which is in an index
	}, time.Minute, 10*time.Millisecond)
}

// Rows of a step with many units have hundreds of kilobytes. Compressing them with the server's
// default method takes longer than everything else.
func TestLargeValuesUseTheFastCompression(t *testing.T) {
	dsn := pgtest.DSN(t)
	require.NoError(t, openAt(t, dsn).Close())
	admin := connect(t, dsn)
	if _, err := admin.Exec(t.Context(), "SET default_toast_compression = 'lz4'"); err != nil {
		t.Log("the server has no lz4: opening the store without it is all there is to see")
		return
	}
	var others []string
	require.NoError(t, admin.QueryRow(t.Context(), `SELECT coalesce(array_agg(attrelid::regclass || '.' || attname), '{}') FROM pg_attribute
		JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'troupe'::regnamespace AND relkind = 'r'
		AND atttypid = 'bytea'::regtype AND attnum > 0 AND NOT attisdropped AND attcompression <> 'l'`).Scan(&others))
	require.Empty(t, others)
}

func TestANewerSchemaIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	require.NoError(t, openAt(t, dsn).Close())
	_, err := connect(t, dsn).Exec(t.Context(), "INSERT INTO troupe_version (version_id, is_applied) VALUES (999, true)")
	require.NoError(t, err)
	_, err = postgres.Open(t.Context(), dsn, postgres.Options{})
	require.ErrorContains(t, err, "use a newer program")
}

func TestAStoreOfAnotherBuildIsRefused(t *testing.T) {
	for what, change := range map[string]string{"another text": "UPDATE migrations SET hash = 'other'", "none at all": "DROP TABLE migrations"} {
		t.Run(what, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			require.NoError(t, openAt(t, dsn).Close())
			require.NoError(t, openAt(t, dsn).Close(), "the same build opens it again")
			_, err := connect(t, dsn).Exec(t.Context(), change)
			require.NoError(t, err)
			_, err = postgres.Open(t.Context(), dsn, postgres.Options{})
			require.ErrorContains(t, err, "the store was made by another build of Troupe")
			require.ErrorContains(t, err, "use the build that made it, or give this one a new store")
		})
	}
}

func TestManyProgramsStartOnAnEmptyDatabase(t *testing.T) {
	dsn := pgtest.DSN(t)
	var programs sync.WaitGroup
	for range 3 {
		programs.Go(func() { require.NoError(t, openAt(t, dsn).Close()) })
	}
	programs.Wait()
}

func TestConnectionsHaveTimeouts(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, _ = joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	tx, err := admin.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE flows")
	require.NoError(t, err)
	s := openAt(t, dsn+"&lock_timeout=50")
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Flow(ctx, "f")
	require.ErrorContains(t, err, "lock timeout", "what a DSN says about patience counts")
	require.NoError(t, tx.Rollback(ctx))
}

func TestAServerThatLostRowsIsNotTrusted(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	answers, err := s.Commit(ctx, me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	// A replica without the row is promoted.
	_, err = admin.Exec(ctx, `DELETE FROM task_events WHERE seq = 2;
		SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
	fencedBy(t, func() error {
		_, err := s.Commit(ctx, me, []persistence.Commit{row(3)})
		return err
	})
	var next string
	require.Eventually(t, func() bool { // earlier connections may still be in use
		next, err = s.Join(ctx, persistence.Joining{Name: "me", TTL: time.Hour})
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	answers, err = s.Commit(ctx, next, []persistence.Commit{row(3)})
	require.NoError(t, err)
	require.ErrorIs(t, answers[0], persistence.ErrStale)
}

func TestAnOutageIsSurvived(t *testing.T) {
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	s, me := joined(t, server.DSN("postgres"))
	ctx := t.Context()
	require.NoError(t, server.Kill())
	_, err = s.Commit(ctx, me, []persistence.Commit{row(2)})
	require.ErrorIs(t, err, persistence.ErrUnavailable)
	for range 3 { // the first call may use a connection that was open before
		_, err = s.Task(ctx, "a")
		require.ErrorIs(t, err, persistence.ErrUnavailable)
	}
	require.ErrorIs(t, s.Ping(ctx), persistence.ErrUnavailable)
	require.NoError(t, server.Restart(ctx))
	require.Eventually(t, func() bool {
		answers, err := s.Commit(context.Background(), me, []persistence.Commit{row(2)})
		return err == nil && answers[0] == nil
	}, time.Minute, 10*time.Millisecond)
}

// Another member may run retention. A row written to a task that it deletes would be acknowledged
// and lost.
func TestATaskThatIsBeingDeletedDoesNotGoOn(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	ended, goesOn := row(2), row(3)
	ended.Columns, goesOn.Columns = &persistence.Columns{Status: "failed", EndedAt: 5}, &persistence.Columns{Status: "running"}
	answers, err := s.Commit(ctx, me, []persistence.Commit{ended})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	let := held(t, dsn, "SELECT FROM task_events WHERE task = journal_key('a') FOR UPDATE")
	var calls sync.WaitGroup
	calls.Go(func() {
		n, err := s.DeleteEnded(ctx, 10, 10)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
	blocked(t, admin, 1)
	calls.Go(func() {
		answers, err := s.Commit(ctx, me, []persistence.Commit{goesOn})
		require.NoError(t, err)
		require.ErrorIs(t, answers[0], persistence.ErrUnknown)
	})
	blocked(t, admin, 2)
	let()
	calls.Wait()
	var left int
	require.NoError(t, admin.QueryRow(ctx, "SELECT count(*) FROM task_events").Scan(&left))
	require.Zero(t, left)
}

func TestATaskThatGoesOnIsNotDeleted(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	ended, goesOn := row(2), row(3)
	ended.Columns, goesOn.Columns = &persistence.Columns{Status: "failed", EndedAt: 5}, &persistence.Columns{Status: "running"}
	answers, err := s.Commit(ctx, me, []persistence.Commit{ended})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	let := held(t, dsn, "INSERT INTO task_events (task, seq, at, events) VALUES (journal_key('a'), 3, 0, '')")
	var calls sync.WaitGroup
	calls.Go(func() {
		answers, err := s.Commit(ctx, me, []persistence.Commit{goesOn})
		require.NoError(t, err)
		require.NoError(t, answers[0])
	})
	blocked(t, admin, 1)
	n, err := s.DeleteEnded(ctx, 10, 10)
	require.NoError(t, err)
	require.Zero(t, n)
	let()
	calls.Wait()
	row, err := s.Task(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "running", row.Status)
}
