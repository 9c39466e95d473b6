package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

// events is the journal entry of a step, about 400 bytes.
var events = []byte(`[{"kind":"completed","output":"` + string(bytes.Repeat([]byte("x"), 366)) + `"}]`)

func taskID(lane, i int) string { return fmt.Sprintf("task-01985000-0000-7%03d-8000-%012d", lane, i) }

func creation(id string) persistence.Commit {
	return persistence.Commit{Task: id, Seq: 1, Events: events, At: 1,
		Create:  &persistence.Create{FlowID: "flow", VersionID: "version", Params: events[:200], CreatedAt: 1},
		Columns: &persistence.Columns{Status: "running"}}
}

// The ways in which a step is written.
var ways = map[string]func(id string, seq int64) persistence.Commit{
	"plain": func(id string, seq int64) persistence.Commit {
		return persistence.Commit{Task: id, Seq: seq, Events: events, At: seq}
	},
	"columns": func(id string, seq int64) persistence.Commit {
		return persistence.Commit{Task: id, Seq: seq, Events: events, At: seq,
			Columns: &persistence.Columns{Status: "running", Steps: int(seq)}}
	},
	"queue": func(id string, seq int64) persistence.Commit {
		return persistence.Commit{Task: id, Seq: seq, Events: events, At: seq,
			Enqueue: []persistence.QueueRow{{JobID: fmt.Sprint(id, seq), Task: id, Service: "s", EnqueuedAt: seq}},
			Dequeue: []string{fmt.Sprint(id, seq-1)}}
	},
	// A new task every ten rows; in every batch some begin and some end.
	"life": func(id string, seq int64) persistence.Commit {
		at := seq - 2 + int64(id[len(id)-1]-'0')
		life, row := at/10, at%10+1
		if life == 0 {
			row = seq - 1
		}
		c := persistence.Commit{Task: fmt.Sprint(id, "-", life), Seq: row, Events: events, At: seq}
		if row == 1 {
			return creation(c.Task)
		}
		if at%10 == 9 {
			c.Columns = &persistence.Columns{Status: "completed", Steps: 10, EndedAt: 9}
		}
		return c
	},
}

// benchServer is separate from the server of the tests, so that its processor time can be measured.
// TestMain stops it.
var benchServer *pgtest.Server

type bench struct {
	*testing.B
	dsn   string
	store persistence.Store
	me    string
	admin *pgx.Conn
}

// newBench returns an empty database.
func newBench(b *testing.B) *bench {
	ctx := context.Background()
	if benchServer == nil {
		var err error
		benchServer, err = pgtest.StartServer(ctx, "")
		require.NoError(b, err)
	}
	_, err := connect(b, benchServer.DSN("postgres")).Exec(ctx, "DROP DATABASE IF EXISTS bench WITH (FORCE)")
	require.NoError(b, err)
	_, err = connect(b, benchServer.DSN("postgres")).Exec(ctx, "CREATE DATABASE bench")
	require.NoError(b, err)
	dsn := benchServer.DSN("bench")
	s := openAt(b, dsn)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	storetest.Publish(b, s, "flow", "version")
	me, err := s.Join(ctx, persistence.Joining{Name: "bench", TTL: time.Hour})
	require.NoError(b, err)
	return &bench{b, dsn, s, me, connect(b, dsn)}
}

func (b *bench) commit(batch []persistence.Commit) {
	answers, err := b.store.Commit(context.Background(), b.me, batch)
	require.NoError(b, err)
	for _, err := range answers {
		require.NoError(b, err)
	}
}

// create creates n tasks of a lane.
func (b *bench) create(lane, n int) []string {
	ids := make([]string, n)
	batch := make([]persistence.Commit, n)
	for i := range ids {
		ids[i] = taskID(lane, i)
		batch[i] = creation(ids[i])
	}
	b.commit(batch)
	return ids
}

func (b *bench) wal() (at int64) {
	require.NoError(b, b.admin.QueryRow(context.Background(), "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").Scan(&at))
	return at
}

// measure reports the cost of a commit: time, bytes of WAL, and microseconds of processor time,
// which are more reliable than the time on a busy machine. One benchmark operation is one commit of
// one task.
func (b *bench) measure(work func()) {
	_, err := b.admin.Exec(context.Background(), "CHECKPOINT")
	require.NoError(b, err)
	wal, server, client := b.wal(), b.serverTime(), clientTime(b)
	b.ResetTimer()
	work()
	b.StopTimer()
	n := float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64(b.wal()-wal)/n, "WAL-B")
	b.ReportMetric(float64((b.serverTime()-server).Microseconds())/n, "server-us")
	b.ReportMetric(float64((clientTime(b)-client).Microseconds())/n, "client-us")
	b.ReportMetric(0, "ns/op")
}

func (b *bench) serverTime() time.Duration {
	d, err := benchServer.StatProcesses()
	require.NoError(b, err)
	return d
}

func clientTime(b *bench) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCommit writes batches of a fixed size through two lanes.
func BenchmarkCommit(b *testing.B) {
	for _, way := range []string{"plain", "columns", "queue", "life"} {
		for _, size := range []int{1, 64, 200, 500} {
			b.Run(fmt.Sprintf("%s/%d", way, size), func(b *testing.B) { lanes(newBench(b), ways[way], size) })
		}
	}
}

func lanes(b *bench, way func(string, int64) persistence.Commit, size int) {
	ids := [2][]string{b.create(0, size), b.create(1, size)}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.measure(func() {
		var writers sync.WaitGroup
		for lane := range 2 {
			writers.Go(func() {
				batch := make([]persistence.Commit, size)
				for seq := int64(2); left.Add(-int64(size)) > -int64(size); seq++ {
					for i, id := range ids[lane] {
						batch[i] = way(id, seq)
					}
					b.commit(batch)
				}
			})
		}
		writers.Wait()
	})
}

// waiting is a caller whose commit is in progress.
type waiting struct {
	commit persistence.Commit
	done   chan struct{}
}

// BenchmarkWaiting has callers that wait for their own commit; a lane takes all commits that have
// arrived meanwhile.
func BenchmarkWaiting(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 500} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) { grouped(newBench(b), callers) })
	}
}

func grouped(b *bench, callers int) {
	ids := b.create(0, callers)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.measure(func() {
		var writers, askers sync.WaitGroup
		var queues [2]chan waiting
		for lane := range queues {
			queues[lane] = make(chan waiting, callers)
			writers.Go(func() { b.group(queues[lane]) })
		}
		for i, id := range ids {
			askers.Go(func() {
				w := waiting{done: make(chan struct{}, 1)}
				for seq := int64(2); left.Add(-1) >= 0; seq++ {
					w.commit = ways["plain"](id, seq)
					queues[i%2] <- w
					<-w.done
				}
			})
		}
		askers.Wait()
		for _, queue := range queues {
			close(queue)
		}
		writers.Wait()
	})
}

// group commits all waiting commits as one batch.
func (b *bench) group(queue chan waiting) {
	for w := range queue {
		batch, done := []persistence.Commit{w.commit}, []chan struct{}{w.done}
		for more := true; more && len(batch) < 500; {
			select {
			case w, more = <-queue:
				if more {
					batch, done = append(batch, w.commit), append(done, w.done)
				}
			default:
				more = false
			}
		}
		b.commit(batch)
		for _, d := range done {
			d <- struct{}{}
		}
	}
}
