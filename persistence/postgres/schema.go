package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DefaultSchema is the schema used unless Options names another.
const DefaultSchema = "troupe"

// schemaName is the schema of all tables, types and indexes. Every statement names it, because the
// search path may belong to a pooler or to another program. The source text of statements has the
// name of the default schema.
type schemaName string

// qualify returns the statement with the name of this schema.
func (s schemaName) qualify(statement string) string {
	if s == DefaultSchema {
		return statement
	}
	return strings.ReplaceAll(statement, DefaultSchema+".", string(s)+".")
}

// qualifyBatch replaces the schema in the statements of a batch.
func (s schemaName) qualifyBatch(batch *pgx.Batch) *pgx.Batch {
	for _, q := range batch.QueuedQueries {
		q.SQL = s.qualify(q.SQL)
	}
	return batch
}

// lockID returns the id of an advisory lock of this schema. These ids are shared by the whole
// database.
func (s schemaName) lockID(what string) int64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, "troupe ", s, " ", what) // writing to a hash never fails
	return int64(sum.Sum64())
}

// plainName matches names that need no quotes in a statement, apart from SQL keywords.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func newSchema(name string) (schemaName, error) {
	switch {
	case name == "":
		return DefaultSchema, nil
	case !plainName.MatchString(name):
		return "", fmt.Errorf("the schema %q cannot be used: its name is to be of the letters a "+
			"to z, digits and _, begin with no digit, and have 63 of them at most", name)
	case strings.HasPrefix(name, "pg_") || name == "information_schema":
		return "", fmt.Errorf("the schema %s is PostgreSQL's own: choose another name", name)
	}
	return schemaName(name), nil
}

// schemaFacts is the state of a schema before any change, as the database reports it.
type schemaFacts struct {
	user, database string
	plain          bool // the name is no SQL keyword
	there          bool
	usable         bool // the user may use objects in the schema
	extensible     bool // the user may create objects in the schema, or create the schema
	names          []string
	locked         []string // tables that the user may not write
}

const schemaQuery = `SELECT current_user, current_database(), quote_ident($1) = $1, n.oid IS NOT NULL,
		coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
		CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE') ELSE has_schema_privilege(n.oid, 'CREATE') END,
		ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c') AND NOT ` + extends + `
			UNION SELECT t.typname::text FROM pg_type t WHERE t.typnamespace = n.oid AND t.typtype IN ('e', 'd', 'r') ORDER BY 1),
		ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind = 'r' AND c.relname = ANY($2)
			AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')) ORDER BY 1)
	FROM (SELECT) one LEFT JOIN pg_namespace n ON n.nspname = $1`

// extends is the condition that an object belongs to an extension. Such objects are ignored.
const extends = `EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

// versionTable is goose's table of applied migrations. No other program uses this name.
const versionTable = "troupe_version"

// landmarks are tables that every store has. Together they do not occur in schemas of other
// programs.
var landmarks = []string{"cluster", versionTable, "shards", "task_events"}

// isUnmigrated reports whether the schema has no migrations yet.
func (f *schemaFacts) isUnmigrated() bool {
	return len(f.names) == 0 || len(f.names) == 1 && f.names[0] == versionTable
}

func (f *schemaFacts) isOurs() bool {
	return !slices.ContainsFunc(landmarks, func(name string) bool { return !slices.Contains(f.names, name) })
}

// refusalError returns an error with advice if a schema cannot be used.
func (f *schemaFacts) refusalError(s schemaName) error {
	role, own := quoteName(f.user), "give Troupe a schema of its own with --schema NAME "+
		"(TROUPE_SCHEMA, Config.Schema), which is created if it is not there"
	switch {
	case !f.plain:
		return fmt.Errorf("the schema %s has the name of a word of SQL: choose another name", s)
	case !f.there && !f.extensible:
		return fmt.Errorf(`the schema %s is not there, and %s may not create one in the `+
			`database %s: have its owner run: CREATE SCHEMA %s AUTHORIZATION %s; or: GRANT `+
			`CREATE ON DATABASE %s TO %s;`,
			s, f.user, f.database, s, role, quoteName(f.database), role)
	case f.there && !f.isUnmigrated() && !f.isOurs():
		return fmt.Errorf("the schema %s of the database %s is another program's (it has %s) "+
			"and stays as it is: %s", s, f.database, joinFew(f.names), own)
	case f.there && (!f.usable || f.isUnmigrated() && !f.extensible):
		return fmt.Errorf(`%s may not use the schema %s of the database %s: have its owner run: `+
			`GRANT USAGE, CREATE ON SCHEMA %s TO %s;`, f.user, s, f.database, s, role)
	case f.isOurs() && len(f.locked) > 0:
		return fmt.Errorf(`%s may not write to tables in the schema %s (%s): use the user who `+
			`made them, or have that one run: GRANT ALL ON ALL TABLES IN SCHEMA %s TO %s;`,
			f.user, s, joinFew(f.locked), s, role)
	}
	return nil
}

// quoteName returns a name in the form for a statement, quoted if necessary.
func quoteName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

// joinFew joins the first few names and counts the others.
func joinFew(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// ensureSchema creates the schema if needed. It returns an error and changes nothing if the schema
// belongs to another program. Concurrent calls run one at a time.
func ensureSchema(ctx context.Context, config *pgx.ConnConfig, s schemaName) (err error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", s.lockID("schema")); err != nil {
			return err
		}
		f, err := inspectSchema(ctx, tx, s)
		if err != nil {
			return fmt.Errorf("look at the schema %s: %w", s, err)
		}
		if err := f.refusalError(s); err != nil || f.there {
			return err
		}
		_, err = tx.Exec(ctx, "CREATE SCHEMA "+string(s))
		return err
	})
}

func inspectSchema(ctx context.Context, tx pgx.Tx, s schemaName) (f schemaFacts, err error) {
	err = tx.QueryRow(ctx, schemaQuery, string(s), landmarks).Scan(&f.user, &f.database, &f.plain,
		&f.there, &f.usable, &f.extensible, &f.names, &f.locked)
	return f, err
}
