package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAServerThatDoesNotWriteIsNotAvailable(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, me := joined(t, dsn)
	ctx, admin := t.Context(), connect(t, dsn)
	change := func(setting string) { // applies to new connections
		_, err := admin.Exec(ctx, "ALTER DATABASE "+databaseOf(t, dsn)+" "+setting+`;
			SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		require.NoError(t, err)
	}
	change("SET default_transaction_read_only = on")
	for what, write := range map[string]func() error{
		"a batch": func() error { _, err := s.Commit(ctx, me, []persistence.Commit{row(2)}); return err },
		"a flow":  func() error { return s.CreateFlow(ctx, persistence.Flow{ID: "other"}) },
		"a lease": func() error { _, err := s.Renew(ctx, me, time.Hour); return err },
	} {
		for said := false; !said; { // the first ones may use connections that were open before
			err := write()
			require.ErrorIs(t, err, persistence.ErrUnavailable, what)
			said = strings.Contains(err.Error(), "read-only")
		}
	}
	change("RESET default_transaction_read_only")
	require.Eventually(t, func() bool { return s.CreateFlow(ctx, persistence.Flow{ID: "other"}) == nil }, time.Minute, time.Millisecond)
}

func TestAServerThatHasUsWaitForTooLongIsNotAvailable(t *testing.T) {
	dsn := pgtest.DSN(t)
	joined(t, dsn)
	for patience, says := range map[string]string{"lock_timeout": "lock timeout", "statement_timeout": "statement timeout"} {
		t.Run(patience, func(t *testing.T) {
			ctx, admin := t.Context(), connect(t, dsn)
			s := openAt(t, dsn+"&"+patience+"=50")
			defer func() { require.NoError(t, s.Close()) }()
			tx, err := admin.Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, "LOCK TABLE flows")
			require.NoError(t, err)
			_, err = s.Flow(ctx, "f")
			require.ErrorContains(t, err, says)
			require.ErrorIs(t, err, persistence.ErrUnavailable)
			require.NoError(t, tx.Rollback(ctx))
		})
	}
}

func TestASchemaIsCreatedDespiteShortDatabaseTimeouts(t *testing.T) {
	dsn := pgtest.DSN(t)
	for _, setting := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		_, err := connect(t, dsn).Exec(t.Context(), "ALTER DATABASE "+databaseOf(t, dsn)+" SET "+setting+" = '1ms'")
		require.NoError(t, err)
	}
	joined(t, dsn)
}
