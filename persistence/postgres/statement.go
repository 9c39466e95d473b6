package postgres

import "github.com/troupe-engine/troupe/persistence"

// fence begins every statement. A share lock waits for a takeover under way and then looks again;
// no row means that nothing else of the statement happens.
const fence = `WITH fence AS MATERIALIZED (SELECT FROM members WHERE incarnation = $1 AND fenced_at = 0 FOR SHARE)`

// follows is true when the row before is there: with it a journal has no gap, with the primary key no
// double. A scalar subquery is looked up row by row in the index, whatever the planner thinks of joins.
const follows = `(SELECT true FROM task_events p WHERE p.task = d.task AND p.seq = d.seq - 1)`

const appendOne = fence + `
INSERT INTO task_events (task, seq, at, events)
SELECT d.* FROM fence, (VALUES ($2::text, $3::bigint, $4::bigint, $5::bytea)) AS d (task, seq, at, events) WHERE ` + follows + `
ON CONFLICT DO NOTHING RETURNING task`

const appendMany = fence + `
INSERT INTO task_events (task, seq, at, events)
SELECT d.* FROM fence, unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS d (task, seq, at, events) WHERE ` + follows + `
ON CONFLICT DO NOTHING RETURNING task`

// commitMany writes everything that commits can have. "IS TRUE" keeps a subquery a lookup in a hash
// instead of a join, of which only nested loops are allowed here.
const commitMany = fence + `,
d AS MATERIALIZED (
	SELECT d.* FROM fence, unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) AS d (task, seq, at, events)),
u AS MATERIALIZED (
	SELECT u.* FROM fence, unnest($6::text[], $7::bigint[], $8::bigint[],
		$9::text[], $10::text[], $11::text[], $12::text[], $13::boolean[], $14::int[], $15::bigint[],
		$16::bytea[], $17::boolean[], $18::bigint[],
		$19::text[], $20::text[], $21::jsonb[], $22::bytea[], $23::text[], $24::bigint[])
	AS u (task, seq, at, status, cursor, last_action, error, paused, steps, ended_at,
		snapshot, resting, due, flow_id, version_id, labels, params, body_hash, created_at)),
created AS (
	INSERT INTO tasks (id, flow_id, version_id, created_at, updated_at, ended_at, snapshot_seq, steps, paused, resting,
		status, cursor, last_action, error, body_hash, labels, params, snapshot)
	SELECT task, flow_id, version_id, created_at, at, coalesce(ended_at, 0), CASE WHEN snapshot IS NULL THEN 0 ELSE seq END,
		coalesce(steps, 0), coalesce(paused, false), coalesce(resting, false),
		coalesce(status, 'pending'), coalesce(cursor, ''), coalesce(last_action, ''), coalesce(error, ''),
		body_hash, labels, params, snapshot
	FROM u WHERE flow_id IS NOT NULL
	ON CONFLICT DO NOTHING RETURNING id),
appended AS (
	INSERT INTO task_events (task, seq, at, events)
	SELECT d.* FROM d WHERE d.events IS NOT NULL
		AND CASE WHEN d.seq = 1 THEN d.task IN (SELECT id FROM created) ELSE ` + follows + ` END
	ON CONFLICT DO NOTHING RETURNING task),
ok AS MATERIALIZED (
	SELECT task FROM appended
	UNION ALL
	SELECT d.task FROM d WHERE d.events IS NULL AND (SELECT max(p.seq) FROM task_events p WHERE p.task = d.task) = d.seq),
changed AS (
	UPDATE tasks t SET
		status = coalesce(u.status, t.status), cursor = coalesce(u.cursor, t.cursor),
		last_action = coalesce(u.last_action, t.last_action), error = coalesce(u.error, t.error),
		paused = coalesce(u.paused, t.paused), steps = coalesce(u.steps, t.steps),
		ended_at = coalesce(u.ended_at, t.ended_at), resting = coalesce(u.resting, t.resting),
		updated_at = CASE WHEN u.status IS NULL THEN t.updated_at ELSE u.at END,
		snapshot = CASE WHEN u.snapshot IS NOT NULL AND t.snapshot_seq <= u.seq THEN u.snapshot ELSE t.snapshot END,
		snapshot_seq = CASE WHEN u.snapshot IS NOT NULL AND t.snapshot_seq <= u.seq THEN u.seq ELSE t.snapshot_seq END
	FROM u WHERE t.id = u.task AND u.flow_id IS NULL AND (u.task IN (SELECT task FROM ok)) IS TRUE),
slept AS (
	INSERT INTO wakes (task, due) SELECT task, due FROM u WHERE resting AND due <> 0 AND task IN (SELECT task FROM ok) IS TRUE
	ON CONFLICT (task) DO UPDATE SET due = excluded.due),
woken AS (
	DELETE FROM wakes w USING u WHERE w.task = u.task AND (NOT u.resting OR u.due = 0) AND (u.task IN (SELECT task FROM ok)) IS TRUE),
queued AS (
	INSERT INTO task_queue (task, job_id, service, enqueued_at)
	SELECT q.* FROM unnest($25::text[], $26::text[], $27::text[], $28::bigint[]) AS q (task, job_id, service, enqueued_at)
	WHERE (q.task IN (SELECT task FROM ok)) IS TRUE
	ON CONFLICT DO NOTHING),
dequeued AS (
	DELETE FROM task_queue q USING unnest($29::text[], $30::text[]) AS x (task, job_id)
	WHERE q.task = x.task AND q.job_id = x.job_id AND (x.task IN (SELECT task FROM ok)) IS TRUE)
SELECT task FROM ok`

// statement chooses the cheapest one that writes a batch.
func statement(incarnation string, batch []persistence.Commit) (string, []any) {
	for i := range batch {
		if !plain(&batch[i]) {
			return commitMany, general(incarnation, batch)
		}
	}
	if len(batch) == 1 {
		c := &batch[0]
		return appendOne, []any{incarnation, c.Task, c.Seq, c.At, c.Events}
	}
	r := newRows(batch)
	return appendMany, []any{incarnation, r.task, r.seq, r.at, r.events}
}

// plain is a commit that adds its row and nothing else.
func plain(c *persistence.Commit) bool {
	return c.Events != nil && c.Create == nil && c.Columns == nil && c.Snapshot == nil && c.Rest == nil &&
		len(c.Enqueue) == 0 && len(c.Dequeue) == 0
}
