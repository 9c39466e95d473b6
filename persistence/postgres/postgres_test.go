package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if benchServer != nil {
		if err := benchServer.Stop(); code == 0 && err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func openAt(t testing.TB, dsn string) persistence.Store {
	s, err := postgres.Open(context.Background(), dsn, postgres.Options{})
	require.NoError(t, err)
	return s
}

// TestStore empties one database repeatedly, which is faster than creating new ones. The store uses
// another schema than all other tests, and the search path leads to tables of the same names.
func TestStore(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, err := connect(t, dsn).Exec(t.Context(),
		belongings+"; CREATE SCHEMA troupe; CREATE TABLE troupe.tasks (id int); ALTER DATABASE "+
			databaseOf(t, dsn)+" SET search_path = troupe, public")
	require.NoError(t, err)
	before := contents(t, connect(t, dsn), "troupe") + contents(t, connect(t, dsn), "public")
	storetest.Run(t, func(t *testing.T) persistence.Store {
		s, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: "play_2"})
		require.NoError(t, err)
		emptySchema(t, dsn, "play_2")
		return s
	})
	require.Equal(t, before, contents(t, connect(t, dsn), "troupe")+contents(t, connect(t, dsn), "public"))
}

func TestHistories(t *testing.T) {
	s := openAt(t, pgtest.DSN(t))
	defer func() { require.NoError(t, s.Close()) }()
	storetest.Histories(t, s)
}

func TestOwnership(t *testing.T) {
	s := openAt(t, pgtest.DSN(t))
	defer func() { require.NoError(t, s.Close()) }()
	storetest.Ownership(t, s)
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	// for queries of tests without a schema
	config.RuntimeParams["search_path"] = postgres.DefaultSchema
	conn, err := pgx.ConnectConfig(context.Background(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func emptySchema(t testing.TB, dsn, schema string) {
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), "SET search_path = "+schema)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename NOT IN ('troupe_version', 'migrations', 'cluster', 'shards')
		LOOP EXECUTE 'DELETE FROM ' || quote_ident(name); END LOOP; END $$;
		UPDATE cluster SET name = NULL, format = 0, values_at = ''; UPDATE shards SET owner = '', had = '' WHERE owner <> '' OR had <> ''`)
	require.NoError(t, err)
}
