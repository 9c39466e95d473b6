//go:build unix

package pgtest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
)

// Making and dropping a database takes up to a quarter of a second of processor time, most of it
// for the 300 files of its catalogs. So those of a private server are used again: emptied, and by
// another name, which nobody has been told.

// emptied drops all that a test may have made in a database, and ends the connections that it
// forgot.
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

// freshDatabase makes a database, or takes one that is spare.
func freshDatabase(ctx context.Context, dsn string) (name string, err error) {
	if name := claimSpare(); name != "" {
		return name, nil
	}
	name = newName()
	return name, execStatement(ctx, dsn, "CREATE DATABASE "+name)
}

func newName() string { return "troupe_" + strings.ToLower(rand.Text()) }

// recycleDatabase has the database of a test that has ended be gone. By then the test's context has
// ended, too.
func recycleDatabase(dsn, name string) error {
	if isGiven() || execStatement(context.Background(), withDatabase(dsn, name), emptied) != nil {
		return dropDatabase(dsn, name)
	}
	spare := newName()
	if execStatement(context.Background(), dsn, "ALTER DATABASE "+name+" RENAME TO "+spare) != nil { // somebody came back to it
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

// isGiven reports whether the server is one that others may use, too.
func isGiven() bool { return os.Getenv(environment) != "" }

// dropDatabase drops a database. Connections that a test forgot do not keep it.
func dropDatabase(dsn, name string) error {
	return execStatement(context.Background(), dsn, "DROP DATABASE "+name+" WITH (FORCE)")
}
