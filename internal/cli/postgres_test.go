package cli

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

func TestAMemberOfAnotherClusterIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--log-level", "error")
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--cluster", "other")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "the store belongs to another cluster")
}

func TestAMemberUsesTheConfiguredSchema(t *testing.T) {
	dsn := pgtest.DSN(t)
	line, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--schema", "band", "--log-level", "error")
	got := call(t, "flow", "apply", write(t, "approve.yaml", approve), "--server", urlIn(t, line))
	require.Equal(t, 0, got.code, got.stderr)
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var flows, elsewhere int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM band.flows),
		(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname IN ('public', 'troupe'))`).Scan(&flows, &elsewhere))
	require.Equal(t, 1, flows)
	require.Zero(t, elsewhere)
}

func TestASchemaIsRefusedOnSQLite(t *testing.T) {
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+t.TempDir()+"/troupe.db", "--schema", "band")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "--schema band: a store of SQLite has no schemas: leave it out")
}

func TestSettingsOfAClusterAreRefusedOnSQLite(t *testing.T) {
	got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", "sqlite:"+t.TempDir()+"/troupe.db", "--join", "127.0.0.1:8071")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "--join: a store of SQLite is one member's alone")
}
