package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

// beside joins another member, with a store of its own on the same database.
func beside(t *testing.T, dsn string) (persistence.Store, string) {
	s := openAt(t, dsn)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	incarnation, err := s.Join(t.Context(), persistence.Joining{Name: "other", TTL: time.Hour})
	require.NoError(t, err)
	return s, incarnation
}

func begin(task string) persistence.Commit {
	return persistence.Commit{Task: task, Create: &persistence.Create{FlowID: "flow", VersionID: "version"}, Seq: 1, Events: []byte("[]")}
}

func TestTasksDeletedByAnotherMemberAreCheckedAgain(t *testing.T) {
	for name, batch := range map[string][]persistence.Commit{
		"a row":              {row(2)},
		"a row among others": {row(2), begin("b")},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s, me := joined(t, dsn)
			other, _ := beside(t, dsn)
			n, err := other.DeleteFlow(t.Context(), "flow", 9)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			answers, err := s.Commit(t.Context(), me, batch)
			require.NoError(t, err)
			require.ErrorIs(t, answers[0], persistence.ErrUnknown)
			if len(batch) > 1 {
				require.ErrorIs(t, answers[1], persistence.ErrNoVersion)
			}
			rows, err := s.Rows(t.Context(), "a", 0, persistence.Part{Rows: 9, Bytes: 1 << 20})
			require.NoError(t, err)
			require.Empty(t, rows)
			storetest.Publish(t, other, "flow", "version")
			answers, err = s.Commit(t.Context(), me, []persistence.Commit{begin("b")})
			require.NoError(t, err)
			require.NoError(t, answers[0])
			answers, err = s.Commit(t.Context(), me, []persistence.Commit{{Task: "b", Seq: 2, Events: []byte("[]")}})
			require.NoError(t, err)
			require.NoError(t, answers[0])
		})
	}
}

func TestDeletingAFlowLeavesNothingOfABusyTask(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	other, _ := beside(t, dsn)
	for round := range 20 {
		storetest.Publish(t, other, "flow", fmt.Sprint("version", round))
		id := fmt.Sprint("task", round)
		c := begin(id)
		c.Create.VersionID = fmt.Sprint("version", round)
		answers, err := s.Commit(t.Context(), me, []persistence.Commit{c})
		require.NoError(t, err)
		require.NoError(t, answers[0])
		var owner sync.WaitGroup
		begun := make(chan struct{})
		owner.Go(func() {
			var answer error
			for seq := int64(2); answer == nil; seq++ {
				answers, err := s.Commit(t.Context(), me, []persistence.Commit{{Task: id, Seq: seq, Events: []byte("[]")}})
				require.NoError(t, err)
				if answer = answers[0]; seq == 5 {
					close(begun)
				}
			}
			require.ErrorIs(t, answer, persistence.ErrUnknown)
		})
		<-begun
		_, err = other.DeleteFlow(t.Context(), "flow", 9)
		require.NoError(t, err)
		owner.Wait()
		rows, err := s.Rows(t.Context(), id, 0, persistence.Part{Rows: 9, Bytes: 1 << 20})
		require.NoError(t, err)
		require.Empty(t, rows)
	}
}

func TestNoVersionIsPublishedIntoAFlowThatIsBeingDeleted(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, _ := joined(t, dsn)
	other, _ := beside(t, dsn)
	for round := range 20 {
		flow := fmt.Sprint("flow", round)
		storetest.Publish(t, s, flow, flow)
		var both sync.WaitGroup
		both.Go(func() { _, _ = other.DeleteFlow(t.Context(), flow, 9) })
		both.Go(func() { _ = s.CreateVersion(t.Context(), persistence.Version{ID: "late" + flow, FlowID: flow}) })
		both.Wait()
		versions, err := s.ListVersions(t.Context(), flow)
		require.NoError(t, err)
		require.Empty(t, versions)
	}
}

func TestALeaseIsRenewedWhileAFlowIsDeleted(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	other, _ := beside(t, dsn)
	ctx, holder, admin := t.Context(), connect(t, dsn), connect(t, dsn)
	tx, err := holder.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "SELECT FROM tasks FOR UPDATE")
	require.NoError(t, err)
	var calls sync.WaitGroup
	calls.Go(func() {
		n, err := other.DeleteFlow(ctx, "flow", 9)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	})
	blocked(t, admin, 1)
	calls.Go(func() {
		answers, err := s.Commit(ctx, me, []persistence.Commit{row(2)})
		require.NoError(t, err)
		require.ErrorIs(t, answers[0], persistence.ErrUnknown, "a batch waits, and looks again")
	})
	blocked(t, admin, 2)
	_, err = s.Renew(ctx, me, time.Hour)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(ctx))
	calls.Wait()
}

// A task of a released shard belongs to another member, which may end it, and then it may be
// deleted.
func TestTasksOfAReleasedShardAreCheckedAgain(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	other, they := beside(t, dsn)
	ctx := t.Context()
	require.NoError(t, s.Release(ctx, me, []persistence.Transfer{{Shard: persistence.ShardOf("a")}}))
	answers, err := other.Commit(ctx, they,
		[]persistence.Commit{{Task: "a", Seq: 1, Columns: &persistence.Columns{Status: "completed",
			EndedAt: 1}}})
	require.NoError(t, err)
	require.NoError(t, answers[0])
	n, err := other.DeleteEnded(ctx, 9, 9)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	answers, err = s.Commit(ctx, me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.ErrorIs(t, answers[0], persistence.ErrUnknown)
}
