package postgres

import (
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// The parts of a statement that writes more than rows. It has only those that its batch needs, because
// the server gets ready even for what turns out to be empty. "IS TRUE" keeps a subquery a lookup in a
// hash instead of a join, of which only nested loops are allowed here.
const (
	asRows    = ` AS d (task, seq, at, events)`
	asChanges = ` AS u (task, seq, at, status, cursor, last_action, error, paused, steps, ended_at,
		snapshot, resting, due, flow_id, version_id, labels, params, body_hash, created_at)`

	created = `created AS (
	INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, ended_at, snapshot_seq, steps, paused, resting,
		settled_at, status, cursor, last_action, error, body_hash, labels, params, snapshot)
	SELECT task, flow_id, version_id, created_at, at, coalesce(ended_at, 0), CASE WHEN snapshot IS NULL THEN 0 ELSE seq END,
		coalesce(steps, 0), coalesce(paused, false), coalesce(resting, false),
		CASE WHEN ended_at > 0 OR resting THEN at END, coalesce(status, 'pending'), coalesce(cursor, ''), coalesce(last_action, ''), coalesce(error, ''),
		body_hash, labels::jsonb, params, snapshot
	FROM u WHERE flow_id IS NOT NULL
	ON CONFLICT DO NOTHING RETURNING id)`

	followsOrBegins = `CASE WHEN d.seq = 1 THEN d.task IN (SELECT id FROM created) ELSE ` + follows + ` END`

	appended = `appended AS (
	INSERT INTO task_events (task, seq, at, events) SELECT d.* FROM d WHERE d.events IS NOT NULL AND %s
	ON CONFLICT DO NOTHING RETURNING task)`

	ok = `ok AS MATERIALIZED (
	SELECT task FROM appended
	UNION ALL
	SELECT d.task FROM d WHERE d.events IS NULL AND (SELECT max(p.seq) FROM task_events p WHERE p.task = d.task) = d.seq)`

	changed = `changed AS (
	UPDATE tasks t SET
		status = coalesce(u.status, t.status), cursor = coalesce(u.cursor, t.cursor),
		last_action = coalesce(u.last_action, t.last_action), error = coalesce(u.error, t.error),
		paused = coalesce(u.paused, t.paused), steps = coalesce(u.steps, t.steps),
		ended_at = coalesce(u.ended_at, t.ended_at), resting = coalesce(u.resting, t.resting),
		updated_at = CASE WHEN u.status IS NULL THEN t.updated_at ELSE u.at END,
		settled_at = CASE WHEN coalesce(u.ended_at, t.ended_at) > 0 OR coalesce(u.resting, t.resting)
			THEN CASE WHEN u.status IS NULL THEN t.updated_at ELSE u.at END END,
		snapshot = CASE WHEN u.snapshot IS NOT NULL AND t.snapshot_seq <= u.seq THEN u.snapshot ELSE t.snapshot END,
		snapshot_seq = CASE WHEN u.snapshot IS NOT NULL AND t.snapshot_seq <= u.seq THEN u.seq ELSE t.snapshot_seq END
	FROM u WHERE t.id = u.task AND u.flow_id IS NULL AND (u.task IN (SELECT task FROM ok)) IS TRUE)`

	slept = `slept AS (
	INSERT INTO wakes (task, due) SELECT task, due FROM u WHERE resting AND due <> 0 AND (task IN (SELECT task FROM ok)) IS TRUE
	ON CONFLICT (task) DO UPDATE SET due = excluded.due)`

	woken = `woken AS (
	DELETE FROM wakes w USING u WHERE w.task = u.task AND (NOT u.resting OR u.due = 0) AND (u.task IN (SELECT task FROM ok)) IS TRUE)`

	queued = `queued AS (
	INSERT INTO task_queue (task, job_id, service, enqueued_at)
	SELECT q.* FROM %s AS q (task, job_id, service, enqueued_at) WHERE (q.task IN (SELECT task FROM ok)) IS TRUE
	ON CONFLICT DO NOTHING)`

	dequeued = `dequeued AS (
	DELETE FROM task_queue q USING %s AS x (task, job_id)
	WHERE q.task = x.task AND q.job_id = x.job_id AND (x.task IN (SELECT task FROM ok)) IS TRUE)`
)

// general writes everything that commits can have.
func general(incarnation string, batch []persistence.Commit) (string, []any) {
	b := builder{parts: []string{fence}, args: []any{incarnation}}
	r, u, q := newRows(batch), newChanges(batch), newJobs(batch)
	b.add(`d AS MATERIALIZED (SELECT d.* FROM fence, %s`+asRows+`)`, r.task, r.seq, r.at, r.events)
	first := follows
	if len(u.task) > 0 {
		b.add(`u AS MATERIALIZED (SELECT u.* FROM fence, %s`+asChanges+`)`,
			u.task, u.seq, u.at, u.status, u.cursor, u.lastAction, u.message, u.paused, u.steps, u.endedAt,
			u.snapshot, u.resting, u.due, u.flow, u.version, u.labels, u.params, u.bodyHash, u.createdAt)
	}
	if u.creates {
		b.parts = append(b.parts, created)
		first = followsOrBegins
	}
	b.parts = append(b.parts, fmt.Sprintf(appended, first), ok)
	if u.updates {
		b.parts = append(b.parts, changed)
	}
	if u.rests {
		b.parts = append(b.parts, slept, woken)
	}
	if len(q.task) > 0 {
		b.add(queued, q.task, q.job, q.service, q.at)
	}
	if len(q.outTask) > 0 {
		b.add(dequeued, q.outTask, q.outJob)
	}
	return strings.Join(b.parts, ",\n") + "\nSELECT task FROM ok", b.args
}

// builder numbers parameters in the order in which parts use them.
type builder struct {
	parts []string
	args  []any
}

// add adds a part that reads columns as a table.
func (b *builder) add(part string, columns ...any) {
	list := make([]string, len(columns))
	for i, column := range columns {
		b.args = append(b.args, column)
		list[i] = fmt.Sprintf("$%d::%s[]", len(b.args), typeOf(column))
	}
	b.parts = append(b.parts, fmt.Sprintf(part, "unnest("+strings.Join(list, ", ")+")"))
}

func typeOf(column any) string {
	switch column.(type) {
	case []string, []*string:
		return "text"
	case []int64, []*int64:
		return "bigint"
	case []*int:
		return "int"
	case []*bool:
		return "boolean"
	case [][]byte:
		return "bytea"
	}
	panic(fmt.Sprintf("postgres: no type for a column of %T", column))
}
