package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// Connections keep the plans that they made while few rows existed.
func TestARulingReadsFewRowsEvenWithAnOldPlan(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	do := func(statement string, args ...any) {
		_, err := admin.Exec(ctx, statement, args...)
		require.NoError(t, err)
	}
	s, err := postgres.Open(ctx, dsn, postgres.Options{Connections: 1})
	require.NoError(t, err)
	defer s.Close()
	const ask = `INSERT INTO permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn)
		SELECT 'a', i::text, 'busy', 0, 1000, 0, '', 0, '', i, '' FROM generate_series($1::int, $2::int) AS i`
	rule := func(given int) {
		r, err := s.Rule(ctx, me, persistence.PermitQuestion{Key: "busy", Anew: true})
		require.NoError(t, err)
		require.Len(t, r.Given, given)
	}
	do("ALTER TABLE permits SET (autovacuum_enabled = off)")
	do(ask, 1, 8)
	for range 8 { // the first ones are planned for their values
		rule(8)
	}
	do("UPDATE permits SET state = 2")
	do(ask, 10, 2000)
	do("SELECT pg_stat_reset()")
	rule(min(1000-8, persistence.PermitsAtOnce))
	require.NoError(t, s.Close()) // flushes the statistics of the connection
	require.Less(t, rowsRead(t, admin, persistence.PermitsAtOnce, "permits"), 10*persistence.PermitsAtOnce)
}
