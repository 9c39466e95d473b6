//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// environment is the variable that holds the DSN of a server to use instead of a private one.
const environment = "TROUPE_TEST_POSTGRES"

// shared is the server of this process, started by the first DSN and stopped by Main.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error // error of a failed start, returned to all further tests

	spare []string // emptied databases of ended tests, under names that no test knows
}

// DSN returns the DSN of a new empty database with a unique name. The database is dropped when the
// test ends.
func DSN(t testing.TB) string {
	t.Helper()
	dsn, err := sharedDSN(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, err := freshDatabase(t.Context(), dsn)
	if err != nil {
		t.Fatalf("pgtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := recycleDatabase(dsn, name); err != nil {
			t.Errorf("pgtest: drop the test's database: %v", err)
		}
	})
	return withDatabase(dsn, name)
}

// Main runs the tests and then stops the server started by DSN. It returns the code for os.Exit.
func Main(m *testing.M) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func sharedDSN(ctx context.Context) (string, error) {
	if dsn := os.Getenv(environment); dsn != "" {
		return dsn, nil
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = StartServer(ctx, "")
	}
	if shared.err != nil {
		return "", shared.err
	}
	return shared.server.DSN("postgres"), nil
}

func execStatement(ctx context.Context, dsn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

// withDatabase replaces the database in either form of a DSN. In the keyword form the last value
// wins.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}
