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

// statement chooses the cheapest one that writes a batch.
func statement(incarnation string, batch []persistence.Commit) (string, []any) {
	for i := range batch {
		if !plain(&batch[i]) {
			return general(incarnation, batch)
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
