package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// belongings are an application's objects in its database, with names that Troupe uses, too.
const belongings = `CREATE TABLE public.tasks (title text); INSERT INTO public.tasks VALUES ('water the plants');
	CREATE TABLE public.flows (id int); CREATE TABLE public.workers (name text); CREATE TABLE public.troupe_version (version_id int);
	CREATE TABLE public.goose_db_version (version_id bigint); INSERT INTO public.goose_db_version VALUES (7);
	CREATE TABLE public.cluster (stars int); CREATE TABLE public.members (fee int); CREATE TABLE public.task_events (what text);
	CREATE TYPE public.batch_task AS (id int)`

// contents returns everything in a schema as text.
func contents(t *testing.T, conn *pgx.Conn, schema string) (text string) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(c.relkind::text || ' ' || c.relname || ' ' ||
			CASE c.relkind WHEN 'r' THEN (query_to_xml('SELECT * FROM ' || c.oid::regclass, true, true, ''))::text ELSE '' END, E'\n' ORDER BY c.relname), '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1`, schema).Scan(&text))
	return text
}

func TestADatabaseWithTablesOfItsOwnIsNoObstacle(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := connect(t, dsn)
	_, err := admin.Exec(t.Context(), belongings)
	require.NoError(t, err)
	before := contents(t, admin, "public")
	crowd(t, openAt(t, dsn))
	crowd(t, openAt(t, dsn)) // existing tables are used again
	require.Equal(t, before, contents(t, admin, "public"), "it is as it was, and nothing has come")
	var elsewhere []string
	require.NoError(t, admin.QueryRow(t.Context(),
		`SELECT coalesce(array_agg(nspname || '.' || relname), '{}') FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE nspname NOT IN ('troupe', 'public', 'pg_catalog', 'pg_toast', 'information_schema')`).Scan(&elsewhere))
	require.Empty(t, elsewhere)
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return pgx.Identifier{config.Database}.Sanitize()
}

func TestSchemasOfOneDatabaseAreStoresOfTheirOwn(t *testing.T) {
	dsn, ctx := pgtest.DSN(t), t.Context()
	open := func(schema string) (persistence.Store, string) {
		s, err := postgres.Open(ctx, dsn, postgres.Options{Schema: schema})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		me, err := s.Join(ctx, persistence.Joining{Name: schema, Cluster: schema, TTL: time.Minute})
		require.NoError(t, err, "the cluster of another schema has another name")
		require.NoError(t, s.CreateFlow(ctx, persistence.Flow{ID: "f", Slug: "f", Name: schema}))
		require.NoError(t, s.CreateVersion(ctx, persistence.Version{ID: "v", FlowID: "f", Definition: []byte("{}")}))
		answers, err := s.Commit(ctx, me, []persistence.Commit{{Task: "t",
			Create: &persistence.Create{FlowID: "f", VersionID: "v"}, Seq: 1, Events: []byte(schema)}})
		require.NoError(t, err)
		require.NoError(t, answers[0])
		return s, me
	}
	a, me := open("troupe")
	b, other := open("band")
	_, err := b.Commit(ctx, me, []persistence.Commit{{Task: "t", Seq: 2, Events: []byte("[]")}})
	require.ErrorIs(t, err, persistence.ErrFenced, "nobody writes there who has not joined there")
	for schema, s := range map[string]persistence.Store{"troupe": a, "band": b} {
		cluster, err := s.Cluster(ctx)
		require.NoError(t, err)
		require.Len(t, cluster.Members, 1)
		rows, err := s.Rows(ctx, "t", 0, persistence.Part{Rows: 9, Bytes: 1 << 20})
		require.NoError(t, err)
		require.Equal(t, schema, string(rows[0].Events))
	}
	x, err := a.Secret(ctx)
	require.NoError(t, err)
	y, err := b.Secret(ctx)
	require.NoError(t, err)
	require.NotEqual(t, x, y)
	_, err = a.DeleteFlow(ctx, "f", 100)
	require.NoError(t, err)
	answers, err := b.Commit(ctx, other, []persistence.Commit{{Task: "t", Seq: 2, Events: []byte("[]")}})
	require.NoError(t, err)
	require.NoError(t, answers[0])
}

// A long operation in one schema does not block another schema.
func TestLocksOfOneSchemaAreNotThoseOfAnother(t *testing.T) {
	dsn, ctx := pgtest.DSN(t), t.Context()
	s, err := postgres.Open(ctx, dsn, postgres.Options{Schema: "band"})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	a := openAt(t, dsn)
	defer func() { require.NoError(t, a.Close()) }()
	require.NoError(t, s.CreateFlow(ctx, persistence.Flow{ID: "f"}))
	require.NoError(t, a.CreateFlow(ctx, persistence.Flow{ID: "f"}))
	let := held(t, dsn, "LOCK TABLE troupe.cluster, troupe.flow_versions")
	waiting := make(chan error)
	go func() { // it holds the lock for joining
		_, err := a.Join(ctx, persistence.Joining{Name: "me", TTL: time.Minute})
		waiting <- err
	}()
	go func() { waiting <- a.CreateVersion(ctx, persistence.Version{ID: "v", FlowID: "f"}) }()
	blocked(t, connect(t, dsn), 2)
	_, err = s.Join(ctx, persistence.Joining{Name: "me", TTL: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.CreateVersion(ctx, persistence.Version{ID: "v", FlowID: "f"}))
	let()
	require.NoError(t, <-waiting)
	require.NoError(t, <-waiting)
}

func TestASchemaOfAnotherProgramStaysAsItIs(t *testing.T) {
	for name, statements := range map[string]string{
		"tables": "CREATE TABLE troupe.albums (title text); INSERT INTO " +
			"troupe.albums VALUES ('one'); CREATE TABLE troupe.songs (n int)",
		"tables named like ours": "CREATE TABLE troupe.tasks (id int); CREATE TABLE " +
			"troupe.cluster (id int); CREATE TABLE troupe.albums (n int)",
		"a table of goose": "CREATE TABLE troupe.goose_db_version (version_id int); " +
			"CREATE TABLE troupe.albums (n int)",
		"a view":                   "CREATE VIEW troupe.albums AS SELECT 1 AS n",
		"a type that we have, too": "CREATE TYPE troupe.albums AS (id int)",
		"an enumeration":           "CREATE TYPE troupe.albums AS ENUM ('a')",
		"more than anybody wants to see": "CREATE TABLE troupe.albums (n int); CREATE TABLE " +
			"troupe.b (n int); CREATE TABLE troupe.c (n int); CREATE TABLE troupe.d (n int); " +
			"CREATE TABLE troupe.e (n int); CREATE TABLE troupe.f (n int)",
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			admin := connect(t, dsn)
			_, err := admin.Exec(t.Context(), "CREATE SCHEMA troupe; "+statements)
			require.NoError(t, err)
			before := contents(t, admin, "troupe")
			_, err = postgres.Open(t.Context(), dsn, postgres.Options{})
			require.ErrorContains(t, err, "the schema troupe of the database")
			require.ErrorContains(t, err, "is another program's (it has albums")
			require.ErrorContains(t, err, "stays as it is: give Troupe a schema of its own with --schema NAME")
			require.Equal(t, before, contents(t, admin, "troupe"), "row for row")
		})
	}
}

func TestASchemaThatHasNothingYetIsTaken(t *testing.T) {
	dsn := pgtest.DSN(t)
	_, err := connect(t, dsn).Exec(t.Context(), "CREATE SCHEMA troupe; CREATE FUNCTION troupe.one() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	require.NoError(t, err)
	crowd(t, openAt(t, dsn))
}

// Views that were added to look at tasks are no reason to refuse a store.
func TestAStoreWithMoreInItIsOpenedAgain(t *testing.T) {
	dsn := pgtest.DSN(t)
	require.NoError(t, openAt(t, dsn).Close())
	_, err := connect(t, dsn).Exec(t.Context(),
		"CREATE VIEW troupe.failures AS SELECT id FROM troupe.tasks WHERE outcome = 'failed'; "+
			"CREATE TABLE troupe.notes (n int)")
	require.NoError(t, err)
	crowd(t, openAt(t, dsn))
}

func TestANameThatIsNoSchemasIsRefused(t *testing.T) {
	dsn := pgtest.DSN(t)
	for name, want := range map[string]string{
		`a"; DROP TABLE x; --`:  "the letters a to z",
		"Troupe":                "the letters a to z",
		"a-b":                   "the letters a to z",
		"1st":                   "the letters a to z",
		strings.Repeat("x", 64): "63 of them at most",
		"pg_troupe":             "PostgreSQL's own",
		"information_schema":    "PostgreSQL's own",
		"user":                  "a word of SQL",
	} {
		_, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: name})
		require.ErrorContains(t, err, want, name)
	}
}

// The error contains the statement that the owner has to run; after that it works.
func TestMissingPrivilegesAreNamedInTheError(t *testing.T) {
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	run := func(statement string) {
		t.Helper()
		_, err := connect(t, server.DSN("postgres")).Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	run("CREATE ROLE guest LOGIN")
	guest := strings.Replace(server.DSN("postgres"), "postgres@", "guest@", 1)
	refused := func(schema, problem, statement string) {
		t.Helper()
		_, err := postgres.Open(t.Context(), guest, postgres.Options{Schema: schema})
		require.ErrorContains(t, err, problem)
		require.ErrorContains(t, err, "run: "+statement+";")
		run(statement)
	}
	opened := func(schema string) {
		t.Helper()
		s, err := postgres.Open(t.Context(), guest, postgres.Options{Schema: schema})
		require.NoError(t, err)
		crowd(t, s)
	}
	refused("",
		"the schema troupe is not there, and guest may not create one in the database postgres",
		`CREATE SCHEMA troupe AUTHORIZATION guest`)
	opened("")

	run("CREATE SCHEMA band")
	refused("band", "guest may not use the schema band of the database postgres", `GRANT USAGE, CREATE ON SCHEMA band TO guest`)
	opened("band")

	s, err := postgres.Open(t.Context(), server.DSN("postgres"), postgres.Options{Schema: "choir"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	refused("choir", "guest may not use the schema choir", `GRANT USAGE, CREATE ON SCHEMA choir TO guest`)
	refused("choir", "guest may not write to tables in the schema choir (cluster", `GRANT ALL ON ALL TABLES IN SCHEMA choir TO guest`)
	opened("choir")

	run(fmt.Sprintf("GRANT CREATE ON DATABASE %s TO guest", "postgres"))
	opened("fourth")
}

// Several members that are started at once create one schema.
func TestMembersThatStartAtOnceMakeOneSchema(t *testing.T) {
	dsn := pgtest.DSN(t)
	opened := make(chan error)
	for range 4 {
		go func() {
			s, err := postgres.Open(context.Background(), dsn, postgres.Options{Connections: 2})
			if err == nil {
				err = s.Close()
			}
			opened <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-opened)
	}
}
