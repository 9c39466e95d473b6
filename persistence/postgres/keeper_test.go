package postgres_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// held makes another transaction hold the locks of a statement until let is called.
func held(t *testing.T, dsn, statement string) (let func()) {
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), statement)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(t.Context())) }
}

func TestShardOwnershipDoesNotWaitForListings(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	let := held(t, dsn, "LOCK TABLE flows")
	var listings sync.WaitGroup
	var listed atomic.Int64
	for range 20 {
		listings.Go(func() {
			_, _, err := s.ListFlows(t.Context(), 0, 9)
			require.NoError(t, err)
			listed.Add(1)
		})
	}
	blocked(t, connect(t, dsn), 7)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // listings wait longer
	defer cancel()
	other, err := s.Join(ctx, persistence.Joining{Name: "other"})
	require.NoError(t, err)
	_, err = s.Cluster(ctx)
	require.NoError(t, err)
	_, err = s.Claim(ctx, me, []int{1, 2})
	require.NoError(t, err)
	require.NoError(t, s.Release(ctx, me, []persistence.Transfer{{Shard: 2}}))
	fenced, err := s.Fence(ctx, other)
	require.NoError(t, err)
	require.True(t, fenced)
	require.NoError(t, s.Drain(ctx, me, true))
	require.NoError(t, s.Leave(ctx, me))
	require.Zero(t, listed.Load())
	let()
	listings.Wait()
}

func TestARenewalDoesNotWaitForShards(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	let := held(t, dsn, "SELECT FROM cluster FOR UPDATE")
	var claims sync.WaitGroup
	for range 3 {
		claims.Go(func() {
			_, err := s.Claim(t.Context(), me, []int{1})
			require.NoError(t, err)
		})
	}
	blocked(t, connect(t, dsn), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // claims wait longer
	defer cancel()
	_, err := s.Renew(ctx, me, time.Hour)
	require.NoError(t, err)
	let()
	claims.Wait()
}

func TestAMemberStaysWithinItsConnectionLimits(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	admin := connect(t, dsn)
	let := held(t, dsn, "LOCK TABLE flows, task_events")
	letCluster := held(t, dsn, "SELECT FROM cluster FOR UPDATE")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { _, _, _ = s.ListFlows(t.Context(), 0, 9) })
		all.Go(func() { _, _ = s.Commit(t.Context(), me, []persistence.Commit{row(2)}) })
		all.Go(func() { _, _ = s.Claim(t.Context(), me, []int{1}) })
	}
	blocked(t, admin, 2+7+1)
	_, err := s.Renew(t.Context(), me, time.Hour)
	require.NoError(t, err)
	var connections int
	require.NoError(t, admin.QueryRow(t.Context(),
		"SELECT count(*) - 3 FROM pg_stat_activity WHERE datname = current_database()").Scan(&connections))
	require.Equal(t, 11, connections)
	let()
	letCluster()
	all.Wait()
}

// relay forwards data between a client and its server until the client sends the given text. From
// then on the client receives nothing, until its connections are cut.
func relay(t *testing.T, dsn, until string) (through string, cut func()) {
	to, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	network, address := pgconn.NetworkAddress(to.Host, to.Port)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	cut = func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	}
	t.Cleanup(func() {
		cut()
		work.Wait()
	})
	work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := to.DialFunc(t.Context(), network, address)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			var frozen atomic.Bool
			work.Go(func() {
				pass(server, client, func(said string) { frozen.Store(frozen.Load() || strings.Contains(said, until)) })
				_ = server.Close()
			})
			work.Go(func() { pass(unless{client, &frozen}, server, func(string) {}) })
		}
	})
	return "postgres://postgres@" + l.Addr().String() + "/" + to.Database + "?sslmode=disable&default_query_exec_mode=exec", cut
}

// unless forwards nothing to a frozen client.
type unless struct {
	io.Writer
	frozen *atomic.Bool
}

func (u unless) Write(b []byte) (int, error) {
	if u.frozen.Load() {
		return len(b), nil
	}
	return u.Writer.Write(b)
}

// pass reports data before it forwards it.
func pass(to io.Writer, from io.Reader, tell func(string)) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			tell(string(b[:n]))
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// The member receives nothing after it has changed the row that all members lock, as if its host
// were frozen.
func TestAMemberFrozenWhileJoiningDoesNotBlockOthers(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	through, cut := relay(t, dsn, "UPDATE troupe.cluster")
	frozen := openAt(t, through)
	var joining sync.WaitGroup
	joining.Go(func() {
		_, err := frozen.Join(t.Context(), persistence.Joining{Name: "frozen", TTL: time.Hour})
		require.Error(t, err)
		require.NoError(t, frozen.Close())
	})
	require.Eventually(t, func() bool {
		c, err := s.Cluster(t.Context())
		require.NoError(t, err)
		// it has joined without knowing it, and leaves nothing that others could wait for
		return len(c.Members) == 2
	}, 30*time.Second, time.Millisecond)
	owned, err := s.Claim(t.Context(), me, []int{1})
	require.NoError(t, err)
	require.Equal(t, []int{1}, owned)
	cut()
	joining.Wait()
}

func TestALeaseOfBeforeTheClockWasPutBackIsFenced(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	other, err := s.Join(t.Context(), persistence.Joining{Name: "other", TTL: time.Minute})
	require.NoError(t, err)
	put := func(by time.Duration) {
		_, err := connect(t, dsn).Exec(t.Context(), "UPDATE leases SET until = until + $1", by.Milliseconds())
		require.NoError(t, err)
	}
	put(50 * time.Second)
	for _, member := range []string{me, other} {
		fenced, err := s.Fence(t.Context(), member)
		require.NoError(t, err)
		require.False(t, fenced, "it may not have had the time to renew its lease")
	}
	put(time.Minute)
	c, err := s.Cluster(t.Context())
	require.NoError(t, err)
	require.False(t, c.Members[0].Over(c.Now))
	require.True(t, c.Members[1].Over(c.Now))
	fenced, err := s.Fence(t.Context(), other)
	require.NoError(t, err)
	require.True(t, fenced)
	fenced, err = s.Fence(t.Context(), me)
	require.NoError(t, err)
	require.False(t, fenced)
}

// The member has lost its connection and the result, but the server is still working. If a rest
// were written after the next owner has loaded the task, it would hide the task from the list of
// unfinished ones.
func TestShardsAreReleasedAfterBatchesInProgress(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	shard := persistence.ShardOf("a")
	_, err := s.Claim(t.Context(), me, []int{shard})
	require.NoError(t, err)
	let := held(t, dsn, "SELECT FROM tasks WHERE id = 'a' FOR UPDATE")
	var calls sync.WaitGroup
	calls.Go(func() {
		_, err := s.Commit(t.Context(), me, []persistence.Commit{{Task: "a", Seq: 1, Rest: &persistence.Rest{Resting: true}}})
		require.NoError(t, err)
	})
	admin := connect(t, dsn)
	blocked(t, admin, 1)
	calls.Go(func() { require.NoError(t, s.Release(t.Context(), me, []persistence.Transfer{{Shard: shard}})) })
	blocked(t, admin, 2)
	let()
	calls.Wait()
	unfinished, err := s.Unfinished(t.Context(), persistence.ShardSet{shard}, "", 9)
	require.NoError(t, err)
	require.Empty(t, unfinished, "the next owner sees what was written last")
}
