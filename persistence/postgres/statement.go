package postgres

import (
	"fmt"
	"strings"
)

// fence begins every statement. Its share lock waits for a takeover or a deletion of a flow in
// progress, and then reads the row again. If the row is missing, the other parts write nothing.
const fence = `WITH fence AS MATERIALIZED (SELECT FROM troupe.members WHERE incarnation = $1 AND fenced_at = 0 AND era = $2%s FOR SHARE)`

const (
	plainList  = `unnest($%d::%s[])`
	fencedList = `unnest(CASE WHEN (SELECT true FROM fence) THEN $%d::%s[] END)`
)

// follow is a part of the fence. The batch is not written if a row does not follow the last row of
// its journal. This keeps journals free of gaps, and the primary key keeps them free of duplicates.
// Earlier rows are not checked.
const follow = ` AND NOT EXISTS (SELECT FROM %s x
	WHERE (SELECT max(e.seq) FROM troupe.task_events e WHERE e.task = x.task AND e.seq >= x.seq) IS DISTINCT FROM x.seq)`

// known is a part of the fence. The batch is not written if the version of a new task does not
// exist. The lock on the member prevents concurrent deletions of versions.
const known = ` AND NOT EXISTS (SELECT FROM %s x WHERE NOT EXISTS (SELECT FROM troupe.flow_versions v WHERE v.id = x.id))`

// there is a part of the fence. The batch is not written if one of these tasks does not exist. The
// lock protects a task that continues after its end from retention, and waits for a deletion in
// progress. A task that had not ended at the last commit needs no check.
const there = ` AND NOT EXISTS (SELECT FROM %s x WHERE NOT EXISTS (SELECT FROM troupe.tasks t WHERE t.id = x.id FOR NO KEY UPDATE))`

// Each part writes one kind of row.
const (
	createTasks = `created AS (
	INSERT INTO troupe.tasks (id, flow_id, version_id, created_at, updated_at, ended_at, snapshot_seq, steps, followed, paused, resting,
		shard, settled_at, status, cursor, last_action, error, waits, wait, body_hash, labels, params, snapshot, outcome)
	SELECT x.*, CASE WHEN x.ended_at > 0 THEN x.status ELSE '' END FROM %s x%s)`

	appendRows = `appended AS (
	INSERT INTO troupe.task_events (task, seq, at, events) SELECT x.* FROM %s x%s)`

	addCheckpoints = `checked AS (
	INSERT INTO troupe.checkpoints (task, seq, part, size, snapshot) SELECT x.* FROM %s x%s)`

	showColumns = `shown AS (
	UPDATE troupe.tasks t SET status = x.status, cursor = x.cursor, last_action = x.last_action, error = x.error, waits = x.waits, wait = x.wait,
		paused = x.paused, steps = x.steps, followed = x.followed, ended_at = x.ended_at, updated_at = x.at,
		outcome = CASE WHEN x.ended_at > 0 THEN x.status ELSE '' END,
		settled_at = CASE WHEN x.ended_at > 0 OR t.resting THEN x.at END
	FROM %s x WHERE t.id = x.task)`

	changeTasks = `changed AS (
	UPDATE troupe.tasks t SET
		status = coalesce(x.status, t.status), cursor = coalesce(x.cursor, t.cursor),
		last_action = coalesce(x.last_action, t.last_action), error = coalesce(x.error, t.error),
		waits = coalesce(x.waits, t.waits), wait = coalesce(x.wait, t.wait),
		paused = coalesce(x.paused, t.paused), steps = coalesce(x.steps, t.steps), followed = coalesce(x.followed, t.followed),
		outcome = CASE WHEN x.ended_at IS NULL THEN t.outcome WHEN x.ended_at > 0 THEN x.status ELSE '' END,
		ended_at = coalesce(x.ended_at, t.ended_at), resting = coalesce(x.resting, t.resting),
		updated_at = CASE WHEN x.status IS NULL THEN t.updated_at ELSE x.at END,
		settled_at = CASE WHEN coalesce(x.ended_at, t.ended_at) > 0 OR coalesce(x.resting, t.resting)
			THEN CASE WHEN x.status IS NULL THEN t.updated_at ELSE x.at END END,
		snapshot = CASE WHEN x.snapshot IS NOT NULL AND t.snapshot_seq <= x.seq THEN x.snapshot ELSE t.snapshot END,
		snapshot_seq = CASE WHEN x.snapshot IS NOT NULL AND t.snapshot_seq <= x.seq THEN x.seq ELSE t.snapshot_seq END
	FROM %s x WHERE t.id = x.task)`

	putToSleep = `slept AS (
	INSERT INTO troupe.wakes (task, due, shard) SELECT x.task, x.due, x.shard FROM %s x%s
	ON CONFLICT (task) DO UPDATE SET due = excluded.due)`

	wakeUp = `woken AS (
	DELETE FROM troupe.wakes w USING %s x WHERE w.task = x.task)`

	enqueue = `queued AS (
	INSERT INTO troupe.task_queue (task, job_id, service, enqueued_at, turn, size, labels, long_id)
	SELECT x.task, x.job_id, x.service, x.enqueued_at, x.turn, x.size, x.labels, x.long_id FROM %s x%s ON CONFLICT DO NOTHING)`

	ask = `asking AS (
	INSERT INTO troupe.permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn, long_holder)
	SELECT x.task, x.holder, x.key, x.shard, x.most, x.per_ms, x.when_full, x.urgency, x.fair, x.asked_at, x.turn, x.long_holder FROM %s x%s ON CONFLICT DO NOTHING)`

	hold = `holding AS (
	UPDATE troupe.permits p SET state = 2 FROM %s x WHERE p.task = x.task AND p.holder = x.holder AND p.key = x.key)`

	release = `releasing AS (
	DELETE FROM troupe.permits p USING %s x WHERE p.task = x.task AND p.holder = x.holder AND p.key = x.key)`

	track = `tracking AS (
	INSERT INTO troupe.externals (task, job, n, shard, service, id, data, started_at, next_at, pending, recalled, long_job)
	SELECT x.task, x.job, x.n, x.shard, x.service, x.id, x.data, x.started_at, x.next_at, x.pending, x.recalled, x.long_job FROM %s x%s ON CONFLICT DO NOTHING)`

	untrack = `untracking AS (
	DELETE FROM troupe.externals e USING %s x WHERE e.task = x.task AND e.job = x.job AND e.n = x.n)`

	recall = `recalling AS (
	UPDATE troupe.externals e SET recalled = true, next_at = 0, failures = 0 FROM %s x WHERE e.task = x.task AND e.job = x.job AND e.n = x.n)`

	approve = `approving AS (
	INSERT INTO troupe.approvals (task, id, scope, node, visit, flow_id, state, since, due, key, title, ended_at, answered_by, comment, action)
	SELECT x.task, x.id, x.scope, x.node, x.visit, x.flow_id, x.state, x.since, x.due, x.key, x.title, x.ended_at, x.answered_by, x.comment, x.action FROM %s x%s
	ON CONFLICT (task, id) DO UPDATE SET state = excluded.state, since = excluded.since, due = excluded.due, ended_at = excluded.ended_at,
		answered_by = excluded.answered_by, comment = excluded.comment, action = excluded.action)`

	dequeue = `dequeued AS (
	DELETE FROM troupe.task_queue q USING %s x WHERE q.task = x.task AND q.job_id = x.job_id)`
)

// An existing task with the id of a new one is an error that undoes the batch. In a repeated batch,
// unlessThere skips the task. The other parts then write rows of a new task only if it was created.
const (
	unlessThere = ` ON CONFLICT DO NOTHING RETURNING id`
	ifBegun     = ` WHERE CASE WHEN x.begins THEN x.task IN (SELECT id FROM created) ELSE true END`
	ifBegunRow  = ` WHERE CASE WHEN x.seq = 1 THEN x.task IN (SELECT troupe.journal_key(id) FROM created) ELSE true END`
	ifBegunMark = ` WHERE CASE WHEN x.seq = 1 THEN x.task IN (SELECT id FROM created) ELSE true END`
)

// kinds are the kinds of rows in a batch, in the order of its parameters.
var kinds = [...]struct{ name, part, repeated string }{
	lasts:     {name: "troupe.batch_last"},    // used by the fence
	versions:  {name: "troupe.batch_version"}, // used by the fence
	tasks:     {"troupe.batch_task", createTasks, unlessThere},
	rows:      {"troupe.batch_row", appendRows, ifBegunRow},
	columns:   {"troupe.batch_change", showColumns, ""},
	changes:   {"troupe.batch_change", changeTasks, ""},
	sleeps:    {"troupe.batch_wake", putToSleep, ifBegun},
	wakeups:   {"troupe.batch_wake", wakeUp, ""},
	enqueued:  {"troupe.batch_job", enqueue, ifBegun},
	dequeued:  {"troupe.batch_job", dequeue, ""},
	checks:    {"troupe.batch_checkpoint", addCheckpoints, ifBegunMark},
	asked:     {"troupe.batch_permit", ask, ifBegun},
	holds:     {"troupe.batch_permit_id", hold, ""},
	releases:  {"troupe.batch_permit_id", release, ""},
	goingOn:   {name: "troupe.batch_version"}, // ids of tasks, used by the fence
	tracked:   {"troupe.batch_external", track, ifBegun},
	untracks:  {"troupe.batch_external_id", untrack, ""},
	recalls:   {"troupe.batch_external_id", recall, ""},
	approvals: {"troupe.batch_approval", approve, ifBegun},
}

const (
	lasts = iota
	versions
	tasks
	rows
	columns
	changes
	sleeps
	wakeups
	enqueued
	dequeued
	checks
	asked
	holds
	releases
	goingOn
	tracked
	untracks
	recalls
	approvals
)

// statementShape is the set of kinds in a batch: one bit for each, and one for repeated. A
// statement has only the parts that its batch needs, because the server also prepares empty parts.
type statementShape uint32

// repeated is the bit of a batch in which a new task may exist already.
const repeated = len(kinds)

func (s statementShape) hasKind(kind int) bool { return s&(1<<kind) != 0 }

type preparedStatement struct{ name, text string }

// statementFor returns the statement of a shape, in the store's schema.
func (s *database) statementFor(of statementShape) *preparedStatement {
	if p, ok := s.statements.Load(of); ok {
		return p.(*preparedStatement)
	}
	p, _ := s.statements.LoadOrStore(of, &preparedStatement{fmt.Sprintf("commit_%05x", uint32(of)), s.schema.qualify(of.buildSQL())})
	return p.(*preparedStatement)
}

// buildSQL returns a statement that yields one row if the batch was written. In a repeated batch,
// it yields a row for each created task in addition.
func (s statementShape) buildSQL() string {
	parts, parameter, conditions := []string{""}, 2, ""
	for kind, k := range kinds {
		if !s.hasKind(kind) {
			continue
		}
		parameter++
		from := fmt.Sprintf(fencedList, parameter, k.name)
		switch {
		case kind == lasts:
			conditions += fmt.Sprintf(follow, fmt.Sprintf(plainList, parameter, k.name))
		case kind == versions:
			conditions += fmt.Sprintf(known, fmt.Sprintf(plainList, parameter, k.name))
		case kind == goingOn:
			conditions += fmt.Sprintf(there, fmt.Sprintf(plainList, parameter, k.name))
		case k.repeated == "":
			parts = append(parts, fmt.Sprintf(k.part, from))
		case s.hasKind(repeated):
			parts = append(parts, fmt.Sprintf(k.part, from, k.repeated))
		default:
			parts = append(parts, fmt.Sprintf(k.part, from, ""))
		}
	}
	parts[0] = fmt.Sprintf(fence, conditions)
	answer := "\nSELECT NULL::text FROM fence"
	if s.hasKind(repeated) {
		answer += " UNION ALL SELECT id FROM created"
	}
	return strings.Join(parts, ",\n") + answer
}
