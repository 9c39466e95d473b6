//go:build unix

package pgtest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
)

// Creating and dropping a database takes up to a quarter of a second of CPU time, mostly for the
// 300 files of its catalogs. So the databases of a private server are reused: emptied and renamed
// to a name that no test knows.

// emptied drops everything that a test may have created in a database, and closes its leftover
// connections.
const emptied = `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
DO $$
DECLARE
	made text;
BEGIN
	FOR made IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', made);
	END LOOP;
	CREATE SCHEMA public AUTHORIZATION pg_database_owner;
	GRANT USAGE ON SCHEMA public TO PUBLIC;
	EXECUTE format('ALTER DATABASE %I RESET ALL', current_database());
END $$`

// freshDatabase returns a reused or new database.
func freshDatabase(ctx context.Context, dsn string) (name string, err error) {
	if name := claimSpare(); name != "" {
		return name, nil
	}
	name = newName()
	return name, execStatement(ctx, dsn, "CREATE DATABASE "+name)
}

func newName() string { return "troupe_" + strings.ToLower(rand.Text()) }

// recycleDatabase empties the database of an ended test for reuse, or drops it. The test's context
// has already ended.
func recycleDatabase(dsn, name string) error {
	if isGiven() || execStatement(context.Background(), withDatabase(dsn, name), emptied) != nil {
		return dropDatabase(dsn, name)
	}
	spare := newName()
	// a test has connected to it again
	if execStatement(context.Background(), dsn, "ALTER DATABASE "+name+" RENAME TO "+spare) != nil {
		return dropDatabase(dsn, name)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.spare = append(shared.spare, spare)
	return nil
}

func claimSpare() string {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	last := len(shared.spare) - 1
	if last < 0 || isGiven() {
		return ""
	}
	spare := shared.spare[last]
	shared.spare = shared.spare[:last]
	return spare
}

// isGiven reports whether TROUPE_TEST_POSTGRES is set. Others may use that server too.
func isGiven() bool { return os.Getenv(environment) != "" }

// dropDatabase drops a database, even if a test left connections open.
func dropDatabase(dsn, name string) error {
	return execStatement(context.Background(), dsn, "DROP DATABASE "+name+" WITH (FORCE)")
}
