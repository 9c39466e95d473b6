package postgres_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

func TestALargeSnapshotIsSentOnceAndReadAsItIs(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	admin, ctx := connect(t, dsn), t.Context()
	commit := func(c persistence.Commit) {
		answers, err := s.Commit(ctx, me, []persistence.Commit{c})
		require.NoError(t, err)
		require.NoError(t, answers[0])
	}
	snapshot := func() []byte {
		records, err := s.Load(ctx, []string{"a"})
		require.NoError(t, err)
		return records[0].Snapshot
	}
	large := func(b byte) []byte { return bytes.Repeat([]byte{b}, 200<<10) }

	commit(persistence.Commit{Task: "a", Seq: 1, Snapshot: flow.Snapshot{large('1')}, Rest: &persistence.Rest{Resting: true}})
	require.Equal(t, large('1'), snapshot())
	// the change is not noticed, because the snapshot is not sent
	_, err := admin.Exec(ctx, "UPDATE tasks SET snapshot = 'changed'")
	require.NoError(t, err)
	require.Equal(t, large('1'), snapshot())
	commit(row(2))
	require.Equal(t, large('1'), snapshot(), "a row behind it changes no snapshot")

	commit(persistence.Commit{Task: "a", Seq: 2, Snapshot: flow.Snapshot{large('2')}, Rest: &persistence.Rest{Resting: true}})
	require.Equal(t, large('2'), snapshot())
	c := row(3)
	c.Snapshot, c.Checkpoint = flow.Snapshot{large('3')}, true
	commit(c)
	require.Equal(t, large('3'), snapshot())

	c = row(4)
	c.Columns = &persistence.Columns{Status: "completed", EndedAt: 1}
	commit(c)
	require.Equal(t, large('3'), snapshot())
	n, err := s.DeleteEnded(ctx, 2, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	again := row(1)
	again.Create = &persistence.Create{FlowID: "flow", VersionID: "version", CreatedAt: 7}
	commit(again)
	for seq := range int64(2) {
		commit(row(seq + 2))
	}
	commit(persistence.Commit{Task: "a", Seq: 3, Snapshot: flow.Snapshot{large('4')}, Rest: &persistence.Rest{Resting: true}})
	require.Equal(t, large('4'), snapshot(), "another task with the id of one that was deleted")
}
