package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// begin writes the first row of a task. It locks the version, so that a deletion of the flow waits.
const begin = `WITH version AS MATERIALIZED (SELECT id FROM troupe.flow_versions WHERE id = $2::text FOR KEY SHARE),
created AS (
	INSERT INTO troupe.tasks (id, flow_id, version_id, created_at, updated_at, settled_at, resting, shard, status, cursor, body_hash, labels, params)
	SELECT $1::text, $3::text, id, $4::bigint, $4::bigint, $4::bigint, true, $5::smallint, $6::text, $7::text, $8::text, $9::jsonb, $10::bytea FROM version
	ON CONFLICT (id) DO NOTHING RETURNING id),
appended AS (INSERT INTO troupe.task_events (task, seq, at, events) SELECT troupe.journal_key(id), 1, $4::bigint, $11::bytea FROM created),
slept AS (INSERT INTO troupe.wakes (task, due, shard) SELECT id, $4::bigint, $5::smallint FROM created)
SELECT EXISTS (SELECT FROM version), EXISTS (SELECT FROM created)`

// beginAsking writes the permits that a task requests before it starts.
const beginAsking = `INSERT INTO troupe.permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn)
	VALUES ($1::text, $2::text, $3::text, $4::smallint, $5::bigint, $6::bigint, $7::text, $8::bigint, $9::text, $10::bigint, $11::text)`

// Begin writes the first row of a task within a transaction on the store's database. The task
// exists if and only if that transaction commits. It is at rest and due at its creation time, so
// the owner of its shard wakes it. No fence is needed, because no member can own a task that does
// not exist yet. If the task exists already, Begin returns it and writes nothing.
//
// Begin returns ErrNoVersion if the version does not exist.
func Begin(ctx context.Context, in persistence.Store, tx pgx.Tx, c *persistence.Commit) (there *persistence.TaskRow, err error) {
	s, ok := in.(*store)
	if !ok {
		return nil, errors.New("the store is no database of PostgreSQL")
	}
	var version, created bool
	err = tx.QueryRow(ctx, s.schema.qualify(begin), c.Task, c.Create.VersionID, c.Create.FlowID,
		c.At, int16(persistence.ShardOf(c.Task)), c.Columns.Status, c.Columns.Cursor,
		c.Create.BodyHash, listing.Labels(c.Create.Labels), c.Create.Params, c.Events).Scan(&version, &created)
	switch {
	case err != nil:
		return nil, s.explainTxError(err)
	case !version:
		return nil, persistence.ErrNoVersion
	case !created:
		there = &persistence.TaskRow{ID: c.Task}
		err = tx.QueryRow(ctx, s.schema.qualify(
			"SELECT flow_id, version_id, body_hash FROM troupe.tasks WHERE id = $1"),
			c.Task).Scan(&there.FlowID, &there.VersionID, &there.BodyHash)
		return there, err
	}
	return nil, s.askPermits(ctx, tx, c)
}

func (s *database) askPermits(ctx context.Context, tx pgx.Tx, c *persistence.Commit) error {
	if c.Permits == nil {
		return nil
	}
	for _, r := range c.Permits.Ask {
		if _, err := tx.Exec(ctx, s.schema.qualify(beginAsking), c.Task, r.Holder, r.Key,
			int16(persistence.ShardOf(r.Key)), r.Limit, r.PerMS, r.Full, -r.Priority, r.Fair,
			r.AskedAt, r.Turn); err != nil {
			return err
		}
	}
	return nil
}

// SQLSTATE codes for missing tables, schemas and privileges.
const (
	undefinedTable  = "42P01"
	undefinedSchema = "3F000"
	noPrivilege     = "42501"
)

// explainTxError adds advice to errors that mean that Troupe's tables cannot be used in the
// transaction.
func (s *database) explainTxError(err error) error {
	e := new(pgconn.PgError)
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case undefinedTable, undefinedSchema:
		return fmt.Errorf("the transaction is on a database that has no tables of Troupe in "+
			"schema %s: begin it on the database of the store: %w", s.schema, err)
	case noPrivilege:
		return fmt.Errorf("the role of the transaction may not write to the tables of Troupe in "+
			"schema %s: grant it that (USAGE on the schema; SELECT, INSERT and UPDATE on its "+
			"tables): %w", s.schema, err)
	}
	return err
}
