package listing

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

// Dialect is where the two databases differ.
type Dialect struct {
	// Mark begins a numbered parameter: "$" or "?".
	Mark string
	// Schema is what names of tables begin with.
	Schema string
	// Labels writes the condition that a task has all these labels.
	Labels func(q *Query, labels map[string]string)
	// Open is the condition of the index on tasks that have not ended, and Ended the column by
	// whose values there is one on those that have.
	Open, Ended string
	// EndedOfFlow goes on with the condition of a state that tasks have ended in, where there is an
	// index by flow and state on these alone.
	EndedOfFlow string
	// LabelSays writes the condition that a label of a task says a text, and LabelOf what the label
	// with a name says.
	LabelSays, LabelOf func(q *Query, text string)
	// Like compares texts in letters of either case.
	Like string
	// Failure is what persistence.Failure tells of a task's error.
	Failure string
	// Aside keeps the database from going by the index of the column that it stands before, ""
	// where it decides well by itself.
	Aside string
	// LabelTable: labels have a table of their own, task_labels.
	LabelTable bool
	// Some is what the number of a limit begins with, where the database would go about a list by
	// how short it is: for one task it sorts all there are, also for one behind thousands that are
	// skipped.
	Some string
	// Narrow: the database sorts whole rows if it has to sort, so it is asked first which tasks a
	// page has.
	Narrow bool
	// ByJobs: tasks with jobs in a queue are found by these jobs, which are few.
	ByJobs bool
	// RareLabel is the name of one of the labels that are asked for which few tasks have, "" where
	// there is none, or nobody has looked.
	RareLabel string
	// ManyIDs: so many ids begin as is asked for that a list is not read by them, but in its order.
	ManyIDs bool
	// ByFlow: the tasks of the flow that is asked for are few, and those with the labels are not.
	ByFlow bool
	// ByUpdate are disjoint parts of all tasks, each of which has an index or is small, when there
	// is no index on the time of the last update.
	ByUpdate []Part
	aside    bool // the flow of tasks is nothing to go by
}

// Part is some of all tasks, and the column that they are listed by.
type Part struct {
	Where, Order string
	state        bool   // it says which states are meant
	only         string // the one state that is; "" = several may be
}

// Columns are what Scan reads, in its order.
const Columns = head + `t.params` + tail

// listColumns are Columns of which nothing is large: nobody is shown the params of many tasks at
// once.
const listColumns = head + `NULL` + tail

const (
	head = `t.id, t.flow_id, t.version_id, coalesce(f.name, ''), coalesce(f.slug, ''), coalesce(v.number, 0),
	t.status, t.cursor, t.last_action, t.error, t.paused, t.steps, t.followed, t.ended_at, t.waits, t.wait,
	t.labels, `
	tail = `, t.body_hash, t.created_at, t.updated_at`
)

// From joins what Columns need.
func (d Dialect) From() string { return " FROM " + d.Schema + "tasks t" + d.Joins() }

// Joins are of what Columns need beside the task.
func (d Dialect) Joins() string {
	return " LEFT JOIN " + d.Schema + "flows f ON f.id = t.flow_id LEFT JOIN " + d.Schema + "flow_versions v ON v.id = t.version_id"
}

// usesLabel says that the tasks of a filter are found by a label. In the order of their ends that
// pays only where few have it.
func (d Dialect) usesLabel(f persistence.TaskFilter) bool {
	return d.LabelTable && len(f.Labels) > 0 && !d.ByFlow && (!f.ByEnd || d.RareLabel != "")
}

// byLabel goes from the tasks that have a label, in the order of their creation, to these.
func (d Dialect) byLabel() string {
	return " FROM " + d.Schema + "task_labels l CROSS JOIN " + d.Schema + "tasks t ON t.id = l.task"
}

// Query is a statement that grows with its arguments.
type Query struct {
	Args []any
	text strings.Builder
	mark string
	open string // "WHERE" or "AND": what the next condition begins with
	asc  bool   // the oldest come first
	some string // what the numbers of limits begin with
}

// List asks for the tasks that a filter picks. A page of the newest ones that are in some states,
// or have some label, is read from an index of these alone.
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
		q.some = "" // these are sorted
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

// indexParts are disjoint ones of what a filter picks, each of which has an index in the order of
// the list.
func (d Dialect) indexParts(f persistence.TaskFilter) []Part {
	switch {
	case f.ByUpdate:
		return d.ByUpdate
	case len(f.Labels) > 0, f.ByEnd:
		return nil
	}
	return d.stateParts(f.Statuses, "")
}

// mergeParts reads from each part no more than could be in the answer.
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

// addPart has the conditions of a part of what a filter picks.
func (q *Query) addPart(d Dialect, f persistence.TaskFilter, part Part) {
	q.open = " WHERE "
	q.And(part.Where)
	if part.state {
		f.Statuses = nil
		d.aside = part.isSmall()
	}
	q.addConditions(d, f, "")
}

// addWhere has the conditions of a filter. By is "l." when the first of the labels leads to the
// tasks.
func (q *Query) addWhere(d Dialect, f persistence.TaskFilter, by string) {
	q.open = " WHERE "
	d.aside = d.isNarrowed(f) && !d.ByFlow
	q.addConditions(d, f, by)
}

// isNarrowed says that there are few of the tasks that a filter picks, of whatever flow they are:
// its flow is nothing to go by.
func (d Dialect) isNarrowed(f persistence.TaskFilter) bool {
	if len(f.Statuses) == 0 {
		return f.EndedFrom > 0 || f.Waits != 0 || f.Queued != "" || f.Paused != nil && *f.Paused
	}
	states := d.stateParts(f.Statuses, "")
	return len(states) == 1 && states[0].isSmall()
}

// isSmall says of a part by states that few tasks are in them: all but those that are completed.
// Their indexes tell the flow.
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
		q.And("t.version_id IN (SELECT id FROM "+d.Schema+"flow_versions WHERE number = CAST(", f.Version) // which may be more than one can have
		q.Add(" AS bigint))")
	}
	if f.IDPrefix != "" {
		column := "t.id"
		if d.ManyIDs {
			column = d.Aside + column
		}
		q.And(column+" >= ", f.IDPrefix)
		q.And(column+" < ", f.IDPrefix+"\U0010FFFF") // ids are compared by their bytes, and none has that character
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
		q.And("t.paused = " + strconv.FormatBool(*f.Paused)) // no parameter: there is an index on those that are
	}
	if f.Waits != 0 {
		q.And("t.waits <> 0") // in the words of the index
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

// addBounds asks for what is behind a place in the order of the list, and not behind another.
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

// addQueued asks for tasks with jobs in a queue.
func (q *Query) addQueued(d Dialect, service string) {
	q.And(d.Open) // a task that has ended has no jobs
	if d.ByJobs {
		q.And("t.id IN (SELECT q.task FROM "+d.Schema+"task_queue q WHERE q.service = ", service)
	} else {
		q.And("EXISTS (SELECT 1 FROM "+d.Schema+"task_queue q WHERE q.task = t.id AND "+d.Aside+"q.service = ", service)
	}
	q.Add(")")
}

// addEndConditions has the conditions about the end of a task. Nearly all tasks have one: that
// alone is nothing to go by, and comes last, because a database that reads from the first bound
// would read nearly all.
func (q *Query) addEndConditions(d Dialect, f persistence.TaskFilter) {
	for _, bound := range []struct {
		text string
		at   int64
	}{{"t.ended_at >= ", f.EndedFrom}, {"t.ended_at < ", f.EndedTo}, {"t.ended_at - t.created_at >= ", f.LastedFrom}, {"t.ended_at - t.created_at < ", f.LastedTo}} {
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

// addTextSearch asks for a text where people look for it.
func (q *Query) addTextSearch(d Dialect, text string) {
	q.And("(t.id >= ", text)
	q.Add(" AND t.id < ", text+"\U0010FFFF")
	q.Add(" OR t.error "+d.Like+" ", "%"+likeEscaper.Replace(text)+"%")
	q.Add(` ESCAPE '\' OR `)
	d.LabelSays(q, text)
	q.Add(")")
}

// addLabels asks for all labels. One that few tasks have, or else the first one by name, is that by
// which tasks are found, if one is.
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

// addStatus asks for states. Rows of a label tell theirs, and several states are found among them
// in the order of the list.
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

// columnName is one of a task, or of the label that leads to it.
func columnName(name, by string) string { return cmp.Or(by, "t.") + name }

// stateParts are parts, each of which has an index, that together have some states; none if there
// is a word among them that is no state. By is "l." when it is labels that tell the states.
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
