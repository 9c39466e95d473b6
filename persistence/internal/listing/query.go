package listing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// Dialect describes the differences between the two databases.
type Dialect struct {
	// Mark begins a numbered parameter: "$" or "?".
	Mark string
	// Schema is the prefix of table names.
	Schema string
	// Labels writes the condition that a task has all these labels.
	Labels func(q *Query, labels map[string]string)
	// Open is the condition of the index on unfinished tasks. Ended is the column of the index on
	// ended tasks by state.
	Open, Ended string
	// EndedOfFlow extends the condition on an end state if an index by flow and state covers only
	// ended tasks.
	EndedOfFlow string
	// LabelSays writes the condition that any label of a task has a value. LabelOf writes the value
	// of a named label.
	LabelSays, LabelOf func(q *Query, text string)
	// Like is the operator for comparing texts while ignoring case.
	Like string
	// Failure is the SQL expression for persistence.Failure of a task's error.
	Failure string
	// Aside is put before a column to prevent the use of its index; "" if the database chooses
	// indexes well.
	Aside string
	// LabelTable reports whether labels have a table of their own, task_labels.
	LabelTable bool
	// Some is put before the number of a LIMIT, so that the database does not choose its plan by
	// this number. With a limit of one, the database would otherwise sort all rows.
	Some string
	// Narrow reports whether the database sorts whole rows. A query then first selects only the ids
	// of a page.
	Narrow bool
	// ByJobs reports whether tasks with jobs in a queue are found through these jobs, because the
	// jobs are few.
	ByJobs bool
	// RareLabel is the name of a filtered label that few tasks have; "" if there is none, or if
	// this was not checked.
	RareLabel string
	// ManyIDs reports whether many ids have the filtered prefix, so that a list is read in its own
	// order instead.
	ManyIDs bool
	// ByFlow reports whether the filtered flow has few tasks and the filtered labels have many.
	ByFlow bool
	// ByUpdate are disjoint parts of all tasks, for databases without an index on the time of the
	// last update. Each part has an index or is small.
	ByUpdate []Part
	aside    bool // the index on flows is not worth using in this query
}

// Part is a part of all tasks, with the column that orders it.
type Part struct {
	Where, Order string
	state        bool   // Where restricts the status
	only         string // the only status in the part; "" if several are possible
}

// Columns are the columns that Scan reads, in its order.
const Columns = head + `t.params` + tail

// listColumns are Columns without params, because lists do not show these large values.
const listColumns = head + `NULL` + tail

const (
	head = `t.id, t.flow_id, t.version_id, coalesce(f.name, ''), coalesce(f.slug, ''), coalesce(v.number, 0),
	t.status, t.cursor, t.last_action, t.error, t.paused, t.steps, t.followed, t.ended_at, t.waits, t.wait,
	t.labels, `
	tail = `, t.body_hash, t.created_at, t.updated_at`
)

// From returns the FROM clause with the joins that Columns need.
func (d Dialect) From() string { return " FROM " + d.Schema + "tasks t" + d.Joins() }

// Joins returns the joins that Columns need besides the task.
func (d Dialect) Joins() string {
	return " LEFT JOIN " + d.Schema + "flows f ON f.id = t.flow_id LEFT JOIN " + d.Schema + "flow_versions v ON v.id = t.version_id"
}

// usesLabel reports whether the tasks of a filter are found through a label. For lists by end time,
// this is faster only if few tasks have the label.
func (d Dialect) usesLabel(f persistence.TaskFilter) bool {
	return d.LabelTable && len(f.Labels) > 0 && !d.ByFlow && (!f.ByEnd || d.RareLabel != "")
}

// byLabel returns a FROM clause that reads the rows of a label in order of creation, and then their
// tasks.
func (d Dialect) byLabel() string {
	return " FROM " + d.Schema + "task_labels l CROSS JOIN " + d.Schema + "tasks t ON t.id = l.task"
}

// Query is a statement under construction, with its arguments.
type Query struct {
	Args []any
	text strings.Builder
	mark string
	open string // keyword before the next condition, "WHERE" or "AND"
	asc  bool   // oldest first
	some string // prefix of the number of a LIMIT
}

// List returns the query for the tasks that a filter selects. A page of the newest tasks with some
// states or a label is read from an index.
func List(d Dialect, f persistence.TaskFilter) *Query {
	q := &Query{mark: d.Mark, asc: f.Oldest, some: d.Some}
	q.Add("SELECT " + listColumns)
	created, id := "t.created_at", "t.id"
	switch {
	case f.ByEnd:
		created = "t.ended_at"
	case f.ByUpdate:
		created = "t.updated_at"
	}
	switch parts := d.indexParts(f); {
	case f.Limit > 0 && len(parts) > 1:
		q.mergeParts(d, f, parts)
	case !f.ByUpdate && d.usesLabel(f):
		if !f.ByEnd {
			created, id = "l.created_at", "l.task"
		}
		q.Add(d.byLabel() + d.Joins())
		q.addWhere(d, f, "l.")
	case d.Narrow && f.Limit > 0 && !f.ByEnd && f.EndedFrom > 0:
		q.some = "" // these rows are sorted anyway
		q.Add(" FROM (SELECT t.id AS picked FROM " + d.Schema + "tasks t")
		q.addWhere(d, f, "")
		q.addOrder(created, id, f.Limit, f.Offset)
		q.Add(") CROSS JOIN " + d.Schema + "tasks t ON t.id = picked" + d.Joins())
		f.Limit, f.Offset = 0, 0
	default:
		q.Add(d.From())
		q.addWhere(d, f, "")
	}
	q.addOrder(created, id, f.Limit, f.Offset)
	return q
}

// indexParts returns disjoint parts of the selected tasks, each with an index in list order; nil if
// there are none.
func (d Dialect) indexParts(f persistence.TaskFilter) []Part {
	switch {
	case f.ByUpdate:
		return d.ByUpdate
	case len(f.Labels) > 0, f.ByEnd:
		return nil
	}
	return d.stateParts(f.Statuses, "")
}

// mergeParts adds a union of the parts. From each part it reads only as many rows as the page can
// need.
func (q *Query) mergeParts(d Dialect, f persistence.TaskFilter, parts []Part) {
	for i, part := range parts {
		q.Add([]string{" FROM (", " UNION ALL "}[min(i, 1)] + "SELECT * FROM (SELECT * FROM " + d.Schema + "tasks t")
		q.addPart(d, f, part)
		q.addOrder(part.Order, "t.id", f.Limit+f.Offset, 0)
		q.Add(") p" + strconv.Itoa(i))
	}
	q.Add(") t" + d.Joins())
}

func (q *Query) addOrder(column, id string, limit, offset int) {
	direction := " DESC"
	if q.asc {
		direction = ""
	}
	q.Add(" ORDER BY " + column + direction + ", " + id + direction)
	if limit > 0 {
		q.Add(" LIMIT "+q.some, limit)
	} else if offset > 0 {
		q.Add(" LIMIT 9223372036854775807")
	}
	if offset > 0 {
		q.Add(" OFFSET ", offset)
	}
}

// Add appends a text and, if there are values, a parameter for each, separated by commas.
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

// And adds a condition, after WHERE or AND.
func (q *Query) And(text string, values ...any) {
	q.Add(q.open)
	q.open = " AND "
	q.Add(text, values...)
}

// String returns the text of the statement.
func (q *Query) String() string { return q.text.String() }

// addPart adds the conditions of one part of the selected tasks.
func (q *Query) addPart(d Dialect, f persistence.TaskFilter, part Part) {
	q.open = " WHERE "
	q.And(part.Where)
	if part.state {
		f.Statuses = nil
		d.aside = part.isSmall()
	}
	q.addConditions(d, f, "")
}

// addWhere adds the conditions of a filter. by is "l." if the tasks are found through a label, else
// "".
func (q *Query) addWhere(d Dialect, f persistence.TaskFilter, by string) {
	q.open = " WHERE "
	d.aside = d.isNarrowed(f) && !d.ByFlow
	q.addConditions(d, f, by)
}

// isNarrowed reports whether few tasks match without the flow, so that the index on flows is not
// worth using.
func (d Dialect) isNarrowed(f persistence.TaskFilter) bool {
	if len(f.Statuses) == 0 {
		return f.EndedFrom > 0 || f.Waits != 0 || f.Queued != "" || f.Paused != nil && *f.Paused
	}
	states := d.stateParts(f.Statuses, "")
	return len(states) == 1 && states[0].isSmall()
}

// isSmall reports whether a part by state has few tasks, which is assumed for all states except
// completed. The indexes of small parts contain the flow.
func (p *Part) isSmall() bool { return p.only != "completed" }

func (q *Query) addConditions(d Dialect, f persistence.TaskFilter, by string) {
	created, id, flow := "t.created_at", "t.id", "t.flow_id"
	if by != "" {
		created, id = "l.created_at", "l.task"
	}
	if d.aside {
		flow = d.Aside + flow
	}
	if f.FlowID != "" {
		q.And(flow+" = ", f.FlowID)
	}
	if f.FlowSlug != "" {
		q.And(flow+" = (SELECT id FROM "+d.Schema+"flows WHERE slug = ", f.FlowSlug)
		q.Add(")")
	}
	if f.VersionID != "" {
		q.And("t.version_id = ", f.VersionID)
	}
	if len(f.FlowIDs) > 0 {
		q.And(flow+" IN (", toAny(f.FlowIDs)...)
		q.Add(")")
	}
	if f.Version > 0 {
		// the number may exceed the range of an integer column
		q.And("t.version_id IN (SELECT id FROM "+d.Schema+"flow_versions WHERE number = CAST(", f.Version)
		q.Add(" AS bigint))")
	}
	if f.IDPrefix != "" {
		column := "t.id"
		if d.ManyIDs {
			column = d.Aside + column
		}
		q.And(column+" >= ", f.IDPrefix)
		// ids are compared by bytes, and no id contains this character
		q.And(column+" < ", f.IDPrefix+"\U0010FFFF")
	}
	if f.Node != "" {
		q.And("t.cursor = ", f.Node)
	}
	if f.Text != "" {
		q.addTextSearch(d, f.Text)
	}
	if f.Failure != "" {
		q.And("("+d.Failure+") = ", f.Failure)
	}
	if len(f.Statuses) > 0 {
		q.addStatus(d, f.Statuses, by)
	}
	if f.CreatedFrom != 0 {
		q.And(created+" >= ", f.CreatedFrom)
	}
	if f.CreatedTo != 0 {
		q.And(created+" < ", f.CreatedTo)
	}
	if f.Paused != nil {
		// a literal instead of a parameter, because an index covers the paused tasks
		q.And("t.paused = " + strconv.FormatBool(*f.Paused))
	}
	if f.Waits != 0 {
		q.And("t.waits <> 0") // same text as the condition of the index
		q.And("t.waits & ", int64(f.Waits))
		q.Add(" <> 0")
	}
	if f.Queued != "" {
		q.addQueued(d, f.Queued)
	}
	q.addEndConditions(d, f)
	if f.ByEnd {
		created, id = "t.ended_at", "t.id"
	}
	q.addBounds(created, id, f.Before, f.Through)
	if len(f.Labels) > 0 {
		q.addLabels(d, f.Labels, by)
	}
}

// addBounds adds the conditions for rows after one position in list order, and up to another.
func (q *Query) addBounds(column, id string, after, through persistence.Spot) {
	behind, until := ") < (", ") >= ("
	if q.asc {
		behind, until = ") > (", ") <= ("
	}
	for _, bound := range []struct {
		is string
		at persistence.Spot
	}{{behind, after}, {until, through}} {
		if bound.at.ID != "" {
			q.And("("+column+", "+id+bound.is, bound.at.CreatedAt, bound.at.ID)
			q.Add(")")
		}
	}
}

// addQueued adds the condition that a task has jobs in a queue.
func (q *Query) addQueued(d Dialect, service string) {
	q.And(d.Open) // an ended task has no jobs
	if d.ByJobs {
		q.And("t.id IN (SELECT q.task FROM "+d.Schema+"task_queue q WHERE q.service = ", service)
	} else {
		q.And("EXISTS (SELECT 1 FROM "+d.Schema+"task_queue q WHERE q.task = t.id AND "+d.Aside+"q.service = ", service)
	}
	q.Add(")")
}

// addEndConditions adds the conditions on the end time. They come last, because nearly all tasks
// have ended. A database that begins with this condition would read nearly all rows.
func (q *Query) addEndConditions(d Dialect, f persistence.TaskFilter) {
	for _, bound := range []struct {
		text string
		at   int64
	}{{"t.ended_at >= ", f.EndedFrom}, {"t.ended_at < ", f.EndedTo},
		{"t.ended_at - t.created_at >= ", f.LastedFrom}, {"t.ended_at - t.created_at < ", f.LastedTo}} {
		if bound.at > 0 {
			q.And(bound.text, bound.at)
		}
	}
	switch {
	case f.ByEnd || max(f.EndedFrom, f.EndedTo) > 0:
		q.And("t.ended_at > 0")
	case max(f.LastedFrom, f.LastedTo) > 0:
		q.And(d.Aside + "t.ended_at > 0")
	}
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// addTextSearch adds the condition that a text is in the id, the error or a label.
func (q *Query) addTextSearch(d Dialect, text string) {
	q.And("(t.id >= ", text)
	q.Add(" AND t.id < ", text+"\U0010FFFF")
	q.Add(" OR t.error "+d.Like+" ", "%"+likeEscaper.Replace(text)+"%")
	q.Add(` ESCAPE '\' OR `)
	d.LabelSays(q, text)
	q.Add(")")
}

// addLabels adds the conditions for all labels. If the tasks are found through a label, this is the
// rare label, or else the first by name.
func (q *Query) addLabels(d Dialect, labels map[string]string, by string) {
	if by == "" {
		d.Labels(q, labels)
		return
	}
	rest := maps.Clone(labels)
	first := cmp.Or(d.RareLabel, slices.Min(slices.Collect(maps.Keys(labels))))
	q.And("l.key = ", first)
	q.And("l.value = ", labels[first])
	if delete(rest, first); len(rest) > 0 {
		d.Labels(q, rest)
	}
}

// addStatus adds the condition on states. Rows of labels have their own copy of the state, which
// keeps the list order for several states.
func (q *Query) addStatus(d Dialect, statuses []string, by string) {
	known := d.stateParts(statuses, by)
	switch {
	case by != "" && len(statuses) > 1:
		q.And(d.Aside+by+"status IN (", toAny(statuses)...)
		q.Add(")")
	case len(known) == 1:
		q.And(known[0].Where)
	default:
		q.And(columnName("status", by)+" IN (", toAny(statuses)...)
		q.Add(")")
	}
}

// columnName returns a column of the task, or of the label through which the tasks are found.
func columnName(name, by string) string { return cmp.Or(by, "t.") + name }

// stateParts returns parts, each with an index, that together have the given states. It returns
// none if a given state does not exist. by is "l." if the rows of labels have the state.
func (d Dialect) stateParts(statuses []string, by string) (parts []Part) {
	part := func(where, only string) {
		parts = append(parts, Part{Where: where, Order: "t.created_at", state: true, only: only})
	}
	ended, underWay := d.Ended, d.Open+" AND t.status"
	if by != "" {
		ended, underWay = by+"status", by+"status"
	}
	var open []string
	for _, s := range slices.Compact(slices.Sorted(slices.Values(statuses))) {
		switch s {
		case "completed", "failed", "canceled":
			part(ended+" = '"+s+"'", s)
		case "pending", "running", "canceling":
			open = append(open, "'"+s+"'")
		default:
			return nil
		}
	}
	if len(open) > 0 {
		part(underWay+" IN ("+strings.Join(open, ", ")+")", "")
	}
	return parts
}

func toAny(list []string) []any {
	values := make([]any, len(list))
	for i, s := range list {
		values[i] = s
	}
	return values
}
