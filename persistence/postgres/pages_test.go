package postgres_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/stats"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// throng inserts 20,000 rows of everything that is read page by page.
var throng = []string{
	`INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, status, body_hash, shard)
		SELECT 't' || n, 'f', '', n, n, 'running', '', n % 1024 FROM generate_series(1, 20000) n`,
	`INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, ended_at, settled_at, status, outcome, body_hash, shard)
		SELECT 'e' || n, 'f', '', n, n, n, n, 'completed', 'completed', '', n % 1024 FROM generate_series(1, 20000) n`,
	"INSERT INTO wakes (task, due, shard) SELECT 't' || n, n, n % 1024 FROM generate_series(1, 20000) n",
	"INSERT INTO task_queue (task, job_id, service, enqueued_at) SELECT 't' || n, n, 's', n FROM generate_series(1, 20000) n",
	`INSERT INTO externals (task, job, n, shard, service, id, started_at, next_at)
		SELECT 't' || n, n, 0, n % 1024, 's', n, n, n FROM generate_series(1, 20000) n`,
	"INSERT INTO task_events (task, seq, at, events) SELECT journal_key('t1'), n, n, '[]' FROM generate_series(1, 20000) n",
	`INSERT INTO task_logs (task, n, job, source, number, chars_before, lines_before, chars, lines, content)
		SELECT 't1', n, 'j', 's', n, n, n, n, n, '' FROM generate_series(1, 20000) n`,
	`INSERT INTO stream_values (task, name, last, first, job, step, try, source, number, at, content)
		SELECT 't1', 's', n, n, 'j', '', 0, 'w', n, n, '[1]' FROM generate_series(1, 20000) n`,
	`INSERT INTO task_streams (task, name, length, bytes, ended) SELECT 't' || n, 's', 30000, 3, false FROM generate_series(1, 20000) n`,
	`INSERT INTO approvals (task, id, scope, node, visit, flow_id, state, since, due, key, title, ended_at, answered_by, comment, action)
		SELECT 't' || n, 't' || n, '', '', 1, 'f', 'open', n, 0, '', '', 0, '', '', '' FROM generate_series(1, 20000) n`,
	`INSERT INTO stats (flow, of_nodes, width, bucket, scope, node, version, counts)
		SELECT 'f' || n / 50, true, 60000, 0, '', 'n' || n, '', '\x` + hex.EncodeToString(new(stats.Counts).Append(nil)) + `' FROM generate_series(0, 19999) n`,
}

// crowded are the tables of these rows.
var crowded = []string{"tasks", "wakes", "task_queue", "externals", "task_events", "task_logs", "stream_values", "task_streams",
	"approvals", "stats"}

// countsOf returns counts of nodes of the flow f8.
func countsOf(nodes int) []persistence.StatsRow {
	rows := make([]persistence.StatsRow, nodes)
	for i := range rows {
		rows[i].Key = stats.Key{Flow: "f8", Node: fmt.Sprint("n", 8*50+i)}
		rows[i].Width = 60_000
	}
	return rows
}

// Statistics may be from a time when tables were empty, or from before a burst. Then the planner
// may prefer to sort all rows for each page.
func TestAPageIsReadAloneWithAnyStatistics(t *testing.T) {
	pages := map[string]func(ctx context.Context, s persistence.Store) (int, error){
		"unfinished": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.Unfinished(ctx, persistence.AllShards(), "", 50)
			return len(list), err
		},
		"due": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.DueWakes(ctx, persistence.AllShards(), 1<<60, 50)
			return len(list), err
		},
		"ended": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.EndedBetween(ctx, 0, 1<<60, 50)
			return len(list), err
		},
		"to be deleted": func(ctx context.Context, s persistence.Store) (int, error) { return s.DeleteEnded(ctx, 1<<60, 50) },
		"queue": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.QueueRows(ctx, []string{"s"}, 0, "", 50)
			return len(list), err
		},
		"queue for some": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.QueueFor(ctx, persistence.QueueFilter{Service: "s"}, 0, "", 50)
			return len(list), err
		},
		"tasks": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Limit: 50})
			return len(list), err
		},
		"tasks of a flow": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: "f", Limit: 50})
			return len(list), err
		},
		"tasks that run": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{"running"}, Limit: 50})
			return len(list), err
		},
		"tasks that run, of no label and of no flow": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{"running"},
				Labels: map[string]string{}, FlowIDs: []string{}, Limit: 50})
			return len(list), err
		},
		"tasks that run and are not paused": func(ctx context.Context, s persistence.Store) (int, error) {
			paused := false
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{"running"}, Paused: &paused, Limit: 50})
			return len(list), err
		},
		"tasks of two states": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Statuses: []string{"completed", "failed"}, Limit: 50})
			return len(list), err
		},
		"older tasks": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListTasks(ctx, persistence.TaskFilter{Before: persistence.Spot{CreatedAt: 15000, ID: "t1"}, Limit: 50})
			return len(list), err
		},
		"journal": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.Rows(ctx, "t1", 10, persistence.Part{Rows: 50, Bytes: 1 << 20})
			return len(list), err
		},
		"log of a task": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ReadLog(ctx, persistence.LogFilter{Task: "t1", After: 10, Limit: 50})
			return len(list), err
		},
		"log of a job": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ReadLog(ctx, persistence.LogFilter{Job: "j", After: 10, Limit: 50})
			return len(list), err
		},
		"stream": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ReadStream(ctx, persistence.StreamFilter{Task: "t1", Name: "s", From: 10, Limit: 50})
			return len(list), err
		},
		"streams that are written to": func(ctx context.Context, s persistence.Store) (int, error) {
			writes := make([]persistence.StreamWrite, 50)
			for i := range writes {
				writes[i] = persistence.StreamWrite{Task: fmt.Sprint("t", i+1), Name: "s", Source: "w", Number: 30_000,
					Values: []json.RawMessage{json.RawMessage("1")}}
			}
			errs, err := s.AppendStreams(ctx, writes, persistence.StreamLimits{Streams: 9, Values: 1 << 20, Bytes: 1 << 30})
			return len(errs), err
		},
		"approvals": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ListApprovals(ctx, persistence.ApprovalFilter{State: "open", Limit: 50})
			return len(list), err
		},
		"newest of a flow": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.NewestOf(ctx, []string{"f"}, 50)
			return len(list), err
		},
		"statistics of a flow": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.ReadStats(ctx, persistence.StatsFilter{Flows: []string{"f7"}, Nodes: true, Width: 60_000, To: 60_000})
			return len(list), err
		},
		"statistics that are added to": func(ctx context.Context, s persistence.Store) (int, error) {
			return 50, s.AddStats(ctx, countsOf(50))
		},
		"flow": func(ctx context.Context, s persistence.Store) (int, error) { return s.DeleteFlow(ctx, "f", 50) },
		"outside": func(ctx context.Context, s persistence.Store) (int, error) {
			list, err := s.NextExternals(ctx, persistence.AllShards(), 50)
			return len(list), err
		},
	}
	for known, analyze := range map[string][]string{"none": nil, "of nothing": {"ANALYZE " + strings.Join(crowded, ", ")}} {
		dsn := pgtest.DSN(t)
		joined(t, dsn)
		ctx, admin := t.Context(), connect(t, dsn)
		do := func(statements ...string) {
			for _, statement := range statements {
				_, err := admin.Exec(ctx, statement)
				require.NoError(t, err)
			}
		}
		for _, table := range crowded {
			do("ALTER TABLE " + table + " SET (autovacuum_enabled = off)")
		}
		do(slices.Concat(analyze, throng)...)
		for what, page := range pages {
			t.Run(known+"/"+what, func(t *testing.T) {
				do("SELECT pg_stat_reset()")
				s := openAt(t, dsn)
				n, err := page(ctx, s)
				require.NoError(t, err)
				require.Equal(t, 50, n)
				require.NoError(t, s.Close()) // flushes the statistics of the connections
				require.Less(t, rowsRead(t, admin, 50, crowded...), 1000)
			})
		}
	}
}

// rowsRead returns the number of rows read from tables, once at least least are known: connections
// report them on closing.
func rowsRead(t *testing.T, admin *pgx.Conn, least int, tables ...string) (read int) {
	t.Helper()
	require.Eventually(t, func() bool {
		row := admin.QueryRow(t.Context(), "SELECT sum(seq_tup_read + idx_tup_fetch) FROM "+
			"pg_stat_user_tables WHERE relname = ANY($1)", tables)
		require.NoError(t, row.Scan(&read))
		return read >= least
	}, time.Minute, 10*time.Millisecond)
	return read
}
