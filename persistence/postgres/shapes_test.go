package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A statement that appends, composed of the parts that each promise of the store needs. $1 to $4
// are columns of task_events, $5 is the incarnation.
const (
	from   = ` FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::%s[]) AS d (task, seq, at, events)`
	into   = `INSERT INTO task_events (task, seq, at, events) SELECT d.*` + from
	fenced = `WITH fence AS MATERIALIZED (SELECT FROM members WHERE incarnation = $5 AND ` +
		`fenced_at = 0 AND era = 0 FOR SHARE) ` + into + `, fence`
	follows  = ` WHERE (SELECT true FROM task_events p WHERE p.task = d.task AND p.seq = d.seq - 1)`
	exists   = ` WHERE EXISTS (SELECT FROM task_events p WHERE p.task = d.task AND p.seq = d.seq - 1)`
	skipping = ` ON CONFLICT DO NOTHING`
	telling  = ` RETURNING task`
)

var shapes = []struct{ name, column, statement string }{
	{"raw", "bytea", into},
	{"raw+conflict", "bytea", into + skipping},
	{"raw+conflict+returning", "bytea", into + skipping + telling},
	{"fence", "bytea", fenced},
	{"fence+conflict+returning", "bytea", fenced + skipping + telling},
	{"fence+follows", "bytea", fenced + follows},
	{"all", "bytea", fenced + follows + skipping + telling},
	{"all-by-exists", "bytea", fenced + exists + skipping + telling},
	{"all-text", "text", fenced + follows + skipping + telling},
	{"all-json", "json", fenced + follows + skipping + telling},
}

// BenchmarkShapes measures the cost of each promise, and of the type of the events.
func BenchmarkShapes(b *testing.B) {
	for _, shape := range shapes {
		for _, size := range []int{1, 200} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				x := newBench(b)
				_, err := x.admin.Exec(context.Background(),
					fmt.Sprintf("ALTER TABLE task_events ALTER events TYPE %s USING NULL", shape.column))
				require.NoError(b, err)
				x.shape(fmt.Sprintf(shape.statement, shape.column), size)
			})
		}
	}
}

func (b *bench) shape(statement string, size int) {
	conns := [2]*pgx.Conn{b.lane(), b.lane()}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.measure(func() {
		var writers sync.WaitGroup
		for lane, conn := range conns {
			writers.Go(func() { b.append(conn, statement, lane, size, &left) })
		}
		writers.Wait()
	})
}

// lane returns a connection with the settings of the store's lanes.
func (b *bench) lane() *pgx.Conn {
	conn := connect(b, b.dsn)
	_, err := conn.Exec(context.Background(), `SET plan_cache_mode = force_generic_plan; SET jit = off;
		SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off`)
	require.NoError(b, err)
	return conn
}

func (b *bench) append(conn *pgx.Conn, statement string, lane, size int, left *atomic.Int64) {
	ctx := context.Background()
	ids, seqs, values, texts := make([]string, size), make([]int64, size), make([][]byte, size), make([]string, size)
	for i := range ids {
		ids[i], values[i], texts[i] = strings.TrimPrefix(taskID(lane, i), "task-"), events, string(events)
	}
	_, err := conn.Exec(ctx, "INSERT INTO task_events SELECT id, 0, 0, '[]' FROM unnest($1::uuid[]) AS id", ids)
	require.NoError(b, err)
	for left.Add(-int64(size)) > -int64(size) {
		for i := range seqs {
			seqs[i]++
		}
		args := []any{ids, seqs, seqs, values, b.me}
		if !strings.Contains(statement, "bytea") {
			args[3] = texts
		}
		if statement[:4] != "WITH" {
			args = args[:4]
		}
		rows, err := conn.Query(ctx, statement, args...)
		require.NoError(b, err)
		_, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(b, err)
		require.EqualValues(b, size, rows.CommandTag().RowsAffected())
	}
}
