package listing

import (
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// Dialect is where the two databases differ.
type Dialect struct {
	// Mark begins a numbered parameter: "$" or "?".
	Mark string
	// Labels writes the condition that a task has all these labels.
	Labels func(q *Query, labels map[string]string)
	// ByUpdate are disjoint parts of all tasks, each of which has an index or is small, when there
	// is no index on the time of the last update.
	ByUpdate []Part
}

// Part is some of all tasks, and the column that has their last update.
type Part struct{ Where, Order string }

// Columns are what Scan reads, in its order.
const Columns = head + `t.params` + tail

// listColumns are Columns of which nothing is large: nobody is shown the params of many tasks at once.
const listColumns = head + `NULL` + tail

const (
	head = `t.id, t.flow_id, t.version_id, coalesce(f.name, ''), coalesce(f.slug, ''), coalesce(v.number, 0),
	t.status, t.cursor, t.last_action, t.error, t.paused, t.steps, t.ended_at,
	t.labels, `
	tail = `, t.body_hash, t.created_at, t.updated_at`
)

// From joins what Columns need.
const From = ` FROM tasks t` + joins

const joins = ` LEFT JOIN flows f ON f.id = t.flow_id LEFT JOIN flow_versions v ON v.id = t.version_id`

// Query is a statement that grows with its arguments.
type Query struct {
	Args []any
	text strings.Builder
	mark string
	open string // "WHERE" or "AND": what the next condition begins with
}

// List asks for the tasks that a filter picks.
func List(d Dialect, f persistence.TaskFilter) *Query {
	q := &Query{mark: d.Mark}
	q.Add("SELECT " + listColumns)
	order := "t.created_at"
	if f.ByUpdate {
		order = "t.updated_at"
	}
	if f.ByUpdate && f.Limit > 0 && d.ByUpdate != nil {
		q.merge(d, f)
	} else {
		q.Add(From)
		q.where(d, f, "")
	}
	q.order(order, f.Limit, f.Offset)
	return q
}

// merge reads from each part no more than could be in the answer.
func (q *Query) merge(d Dialect, f persistence.TaskFilter) {
	for i, part := range d.ByUpdate {
		q.Add([]string{" FROM ((", " UNION ALL ("}[min(i, 1)] + "SELECT * FROM tasks t")
		q.where(d, f, part.Where)
		q.order(part.Order, f.Limit+f.Offset, 0)
		q.Add(")")
	}
	q.Add(") t" + joins)
}

func (q *Query) order(column string, limit, offset int) {
	q.Add(" ORDER BY " + column + " DESC, t.id DESC")
	if limit > 0 {
		q.Add(" LIMIT ", limit)
	} else if offset > 0 {
		q.Add(" LIMIT 9223372036854775807")
	}
	if offset > 0 {
		q.Add(" OFFSET ", offset)
	}
}

// Count asks how many tasks a filter picks.
func Count(d Dialect, f persistence.TaskFilter) *Query {
	q := &Query{mark: d.Mark}
	q.Add("SELECT count(*) FROM tasks t")
	q.where(d, f, "")
	return q
}

// Add appends a text and, when there are values, a parameter for each, separated by commas.
func (q *Query) Add(text string, values ...any) {
	q.text.WriteString(text)
	for i, v := range values {
		if i > 0 {
			q.text.WriteString(", ")
		}
		q.Args = append(q.Args, v)
		q.text.WriteString(q.mark + strconv.Itoa(len(q.Args)))
	}
}

// And begins a condition.
func (q *Query) And(text string, values ...any) {
	q.Add(q.open)
	q.open = " AND "
	q.Add(text, values...)
}

// String is the text of the statement.
func (q *Query) String() string { return q.text.String() }

// where begins with a condition of its own, if there is one.
func (q *Query) where(d Dialect, f persistence.TaskFilter, also string) {
	q.open = " WHERE "
	if also != "" {
		q.And(also)
	}
	if f.FlowID != "" {
		q.And("t.flow_id = ", f.FlowID)
	}
	if f.FlowSlug != "" {
		q.And("t.flow_id = (SELECT id FROM flows WHERE slug = ", f.FlowSlug)
		q.Add(")")
	}
	if f.VersionID != "" {
		q.And("t.version_id = ", f.VersionID)
	}
	if len(f.Statuses) > 0 {
		q.And("t.status IN (", toAny(f.Statuses)...)
		q.Add(")")
	}
	if f.CreatedFrom != 0 {
		q.And("t.created_at >= ", f.CreatedFrom)
	}
	if f.CreatedTo != 0 {
		q.And("t.created_at < ", f.CreatedTo)
	}
	if f.Paused != nil {
		q.And("t.paused = ", *f.Paused)
	}
	if f.Before.ID != "" {
		q.And("(t.created_at, t.id) < (", f.Before.CreatedAt, f.Before.ID)
		q.Add(")")
	}
	if len(f.Labels) > 0 {
		d.Labels(q, f.Labels)
	}
}

func toAny(list []string) []any {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return values
}
