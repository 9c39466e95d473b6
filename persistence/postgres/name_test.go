package postgres_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence/postgres"
)

func TestANameHoldsNoPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:secret@db/troupe":                                  "postgres://me@db:5432/troupe",
		"postgresql://me:secret@db:5433/troupe?sslmode=disable":           "postgres://me@db:5433/troupe",
		"postgres://me:p@secret@db/troupe":                                "postgres://…",
		"postgres://me:secret%40x@db/troupe":                              "postgres://me@db:5432/troupe",
		"postgres://me@db/troupe?password=secret":                         "postgres://me@db:5432/troupe",
		"postgres://me@db/troupe?sslpassword=secret":                      "postgres://me@db:5432/troupe",
		"postgres:///troupe?user=me&host=/run/postgresql&password=secret": "postgres://me@/troupe?host=%2Frun%2Fpostgresql",
		"host=db user=me password=secret dbname=troupe":                   "postgres://me@db:5432/troupe",
		"host=db user=me password='sec ret' dbname=troupe":                "postgres://me@db:5432/troupe",
		"postgres://me:secret/x@db/troupe":                                "postgres://…",
		"postgres://me:5?secret@db/troupe":                                "postgres://…",
		"postgres://me:5#secret@db/troupe":                                "postgres://…",
		"postgres://me:5/secret@db/troupe":                                "postgres://…",
		"postgres://me:secret%zz@db/troupe":                               "postgres://…",
	} {
		require.Equal(t, want, postgres.Name(dsn), dsn)
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://me:secret/x@db/troupe":                                 "cannot be read as postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		"postgres://me:5?secret@db/troupe":                                 "cannot be read as",
		"postgres://me:secret%zz@db/troupe":                                "cannot be read as",
		"postgres://me:secret@db/troupe?pool_max_conns=many":               "pool_max_conns",
		"postgres://me:secret@db:x/troupe":                                 "cannot be read as",
		"postgres://me:secret@db/troupe?sslmode=odd&password=secret":       "sslmode",
		"host=db user=me password=secret dbname=troupe port=odd":           "cannot be read as",
		"host=db user=me password='sec''ret secret":                        "cannot be read as",
		"postgres://me:secret@127.0.0.1:1/troupe?password=secret":          "failed to connect",
		"host=127.0.0.1 port=1 user=me password='my secret' dbname=troupe": "failed to connect",
	} {
		_, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		require.ErrorContains(t, err, want, dsn)
		require.NotContains(t, err.Error(), "secret", dsn)
	}
}
