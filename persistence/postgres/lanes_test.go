package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

// The operating system stops a member in the middle of a batch that was split, while it holds its
// lock.
func TestAMemberThatIsFrozenWithinABatchCanBeFenced(t *testing.T) {
	ctx := t.Context()
	opened, err := Open(ctx, pgtest.DSN(t), Options{})
	require.NoError(t, err)
	s := opened.(*store)
	defer func() { require.NoError(t, s.Close()) }()
	me, err := s.Join(ctx, persistence.Joining{Name: "me"})
	require.NoError(t, err)
	require.NoError(t, s.lanes.withConn(ctx, func(lane *pgxpool.Conn) error {
		tx, err := lane.Begin(ctx)
		require.NoError(t, err)
		_, err = tx.Exec(ctx, lockMember+"SHARE", me)
		require.NoError(t, err)
		_, err = s.Fence(ctx, me)
		require.ErrorContains(t, err, "lock timeout", "it does not wait at a stretch")
		begun, fenced := time.Now(), false
		for ; err != nil; fenced, err = s.Fence(ctx, me) {
			require.Less(t, time.Since(begun), patience["lock_timeout"]/2)
		}
		require.True(t, fenced)
		require.Error(t, tx.Commit(ctx))
		require.Error(t, pgx.BeginFunc(ctx, lane, func(pgx.Tx) error { return nil }), "the connection was closed")
		return nil
	}))
}

// The operating system stops a member during a decision about a key.
func TestAMemberFrozenDuringADecisionDoesNotBlockOthers(t *testing.T) {
	ctx := t.Context()
	opened, err := Open(ctx, pgtest.DSN(t), Options{})
	require.NoError(t, err)
	s := opened.(*store)
	defer func() { require.NoError(t, s.Close()) }()
	me, err := s.Join(ctx, persistence.Joining{Name: "me"})
	require.NoError(t, err)
	other, err := s.Join(ctx, persistence.Joining{Name: "other"})
	require.NoError(t, err)
	require.NoError(t, s.pool.withConn(ctx, func(conn *pgxpool.Conn) error {
		tx, err := conn.Begin(ctx)
		require.NoError(t, err)
		book, err := s.permitBook(ctx, tx, "k")
		require.NoError(t, err)
		fenced, err := s.Fence(ctx, me)
		require.NoError(t, err, "it is fenced at once")
		require.True(t, fenced)
		begun := time.Now()
		_, err = s.Rule(ctx, other, persistence.PermitQuestion{Key: "k"})
		require.NoError(t, err, "the next one decides")
		require.Less(t, time.Since(begun), patience["lock_timeout"]/2)
		verdict := book.Decide()
		_, err = s.writeRuling(ctx, tx, me, persistence.PermitQuestion{Key: "k"}, book.Now, &verdict)
		require.Error(t, err, "the connection was closed")
		return nil
	}))
	_, err = s.Rule(ctx, me, persistence.PermitQuestion{Key: "k"})
	require.ErrorIs(t, err, persistence.ErrFenced)
}
