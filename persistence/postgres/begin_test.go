package postgres_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

func begun(task string) *persistence.Commit {
	c := begin(task)
	c.At, c.Columns, c.Rest = 7, &persistence.Columns{Status: "pending", Cursor: "n"}, &persistence.Rest{Resting: true, Due: 7}
	return &c
}

func TestATaskThatBeginsInAnotherTransactionIsAtRestAndDue(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	c := begun("b")
	c.Create.Params, c.Create.Labels, c.Create.BodyHash, c.Create.CreatedAt = []byte(`{"n":1}`), map[string]string{"a": "b"}, "hash", 7
	c.Permits = &persistence.PermitChanges{Ask: []persistence.PermitRow{{Holder: "h", Key: "k",
		Limit: 2, Priority: 3, AskedAt: 7, Turn: "t", Full: "queue"}}}
	there, err := postgres.Begin(t.Context(), s, tx, c)
	require.NoError(t, err)
	require.Nil(t, there)
	there, err = postgres.Begin(t.Context(), s, tx, c)
	require.NoError(t, err)
	require.Equal(t, &persistence.TaskRow{ID: "b", FlowID: "flow", VersionID: "version", BodyHash: "hash"}, there)
	require.NoError(t, tx.Commit(t.Context()))

	wakes, err := s.DueWakes(t.Context(), persistence.ShardSet{persistence.ShardOf("b")}, 7, 9)
	require.NoError(t, err)
	require.Equal(t, []persistence.Wake{{Task: "b", Due: 7}}, wakes)
	records, err := s.Load(t.Context(), []string{"b"})
	require.NoError(t, err)
	require.True(t, records[0].Resting)
	require.Equal(t, []persistence.Row{{Seq: 1, At: 7, Events: []byte("[]")}}, records[0].Rows)
	require.Equal(t, []any{"pending", "n", map[string]string{"a": "b"}, `{"n":1}`, int64(7)},
		[]any{records[0].Status, records[0].Cursor, records[0].Labels, string(records[0].Params), records[0].CreatedAt})
	asks, err := s.PermitsOf(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, []any{"h", "k", 2, 3}, []any{asks[0].Holder, asks[0].Key, asks[0].Limit, asks[0].Priority})

	answers, err := s.Commit(t.Context(), me,
		[]persistence.Commit{{Task: "b", Seq: 2, At: 8, Events: []byte("[]"), Rest: &persistence.Rest{}}})
	require.NoError(t, err)
	require.NoError(t, answers[0], "it goes on like any other")
	wakes, err = s.DueWakes(t.Context(), nil, 7, 9)
	require.NoError(t, err)
	require.Empty(t, wakes)
}

func TestAFlowThatAnOpenTransactionHoldsIsNotDeleted(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, _ = joined(t, dsn)
	s := openAt(t, dsn+"&lock_timeout=50")
	defer func() { require.NoError(t, s.Close()) }()
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = postgres.Begin(t.Context(), s, tx, begun("b"))
	require.NoError(t, err)
	_, err = s.DeleteFlow(t.Context(), "flow", 9)
	require.ErrorIs(t, err, persistence.ErrHeld)
	_, err = s.Flow(t.Context(), "flow")
	require.NoError(t, err, "it stays")
	require.NoError(t, tx.Rollback(t.Context()))
	n, err := s.DeleteFlow(t.Context(), "flow", 9)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestAFlowIsDeletedWithWhatBeginsInOtherTransactions(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = postgres.Begin(t.Context(), s, tx, begun("b"))
	require.NoError(t, err)
	var deletion sync.WaitGroup
	deletion.Go(func() {
		n, err := s.DeleteFlow(t.Context(), "flow", 9)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
	blocked(t, connect(t, dsn), 1)
	answers, err := s.Commit(t.Context(), me, []persistence.Commit{row(2)})
	require.NoError(t, err)
	require.NoError(t, answers[0], "nobody else has to wait")
	storetest.Publish(t, s, "another", "other version")
	require.NoError(t, tx.Commit(t.Context()))
	deletion.Wait()
	records, err := s.Load(t.Context(), []string{"b"})
	require.NoError(t, err)
	require.Nil(t, records[0])
	tx, err = connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = postgres.Begin(t.Context(), s, tx, begun("c"))
	require.ErrorIs(t, err, persistence.ErrNoVersion)
	require.NoError(t, tx.Rollback(t.Context()))
}
