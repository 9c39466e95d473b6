package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/troupe-engine/troupe/internal/pgtest"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/storetest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
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

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) persistence.Store { return openAt(t, pgtest.DSN(t)) })
}
