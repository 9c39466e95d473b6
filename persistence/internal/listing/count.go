package listing

import (
	"reflect"
	"strconv"

	"github.com/troupe-engine/troupe/persistence"
)

// Count returns the query for the number of tasks that a filter selects.
func Count(d Dialect, f persistence.TaskFilter) *Query {
	f.ByUpdate = false
	q := &Query{mark: d.Mark, asc: f.Oldest}
	q.Add("SELECT count(*) FROM (")
	if d.countedByLabel(f) {
		q.Add("SELECT 1 FROM " + d.Schema + "task_labels l")
		q.addWhere(d, f, "l.")
		q.addLimit(f.Most)
		return q
	}
	parts := d.indexParts(f)
	if len(parts) < 2 {
		q.addPicked(d, f, func() { q.Add("1") })
		return q
	}
	for i, part := range parts { // one part per state, each from the index of that state
		q.Add([]string{"", " UNION ALL "}[min(i, 1)] + "SELECT 1 FROM " + d.Schema + "tasks t")
		q.addPart(d, f, part)
	}
	q.addLimit(f.Most)
	return q
}

// countedByLabel reports whether the table of labels has all columns that the filter needs.
func (d Dialect) countedByLabel(f persistence.TaskFilter) bool {
	return d.LabelTable && len(f.Labels) == 1 && asksOnlyFor(f, func(rest *persistence.TaskFilter) { rest.Labels = nil })
}

// countedByIndex reports whether the indexes by state have all columns that the filter needs.
func countedByIndex(f persistence.TaskFilter) bool {
	return asksOnlyFor(f, func(rest *persistence.TaskFilter) { rest.FlowID, rest.FlowIDs, rest.FlowSlug = "", nil, "" })
}

// asksOnlyFor reports whether the filter has only states, creation times, and the conditions that
// without removes.
func asksOnlyFor(f persistence.TaskFilter, without func(*persistence.TaskFilter)) bool {
	f.Statuses, f.CreatedFrom, f.CreatedTo, f.Most, f.Oldest = nil, 0, 0, 0, false
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	without(&f)
	return reflect.DeepEqual(f, persistence.TaskFilter{})
}

// CountBy returns the query for task counts by a property. Each row has the number of a part, the
// value of the property and a count; Groups reads these rows. A part counts one task more than the
// limit, to show that there are more.
func CountBy(d Dialect, f persistence.TaskFilter, by persistence.By) *Query {
	f.ByUpdate = false
	if f.Most > 0 {
		f.Most++
	}
	q := &Query{mark: d.Mark, asc: f.Oldest}
	if by == (persistence.By{}) && q.byState(d, f) {
		return q
	}
	q.Add("SELECT 0, what, count(*) FROM (")
	q.addPicked(d, f, func() {
		switch {
		case by.Label != "":
			q.Add("coalesce(")
			d.LabelOf(q, by.Label)
			q.Add(", '')")
		case by.Flow:
			q.Add("t.flow_id")
		default:
			q.Add("t.status")
		}
		q.Add(" AS what")
	})
	q.Add(" GROUP BY what")
	return q
}

var everyState = []string{"pending", "running", "canceling", "completed", "failed", "canceled"}

// byState counts each end state separately and all active tasks together. It returns false if the
// indexes lack columns that the filter needs.
func (q *Query) byState(d Dialect, f persistence.TaskFilter) bool {
	table, by := "tasks t", ""
	switch {
	case d.countedByLabel(f):
		table, by = "task_labels l", "l."
	case !countedByIndex(f):
		return false
	}
	if len(f.Statuses) == 0 {
		f.Statuses = everyState
	}
	parts := d.stateParts(f.Statuses, by)
	f.Statuses = nil
	for i, part := range parts {
		q.Add([]string{"", " UNION ALL "}[min(i, 1)] + "SELECT " + strconv.Itoa(i) + ", ")
		if part.only != "" {
			q.Add("'" + part.only + "', count(*) FROM (SELECT 1 FROM " + d.Schema + table)
		} else {
			q.Add("what, count(*) FROM (SELECT " + columnName("status", by) + " AS what FROM " + d.Schema + table)
		}
		q.open = " WHERE "
		q.And(part.Where)
		if part.only != "" && by == "" && f.OfFlows() {
			q.Add(d.EndedOfFlow)
		}
		d.aside = part.only == "" && by == ""
		q.addConditions(d, f, by)
		q.addLimit(f.Most)
		if part.only == "" {
			q.Add(" GROUP BY what")
		}
	}
	return len(parts) > 0
}

// addPicked ends a part that reads a property of each selected task, up to the limit of counting.
// It does not prefer any state.
func (q *Query) addPicked(d Dialect, f persistence.TaskFilter, what func()) {
	from, by := " FROM "+d.Schema+"tasks t", ""
	if d.usesLabel(f) {
		from, by = d.byLabel(), "l."
	}
	q.Add("SELECT ")
	what()
	q.Add(from)
	q.addWhere(d, f, by)
	q.addLimit(f.Most)
}

func (q *Query) addLimit(n int) {
	if n > 0 {
		q.Add(" LIMIT ", n)
	}
	q.Add(") counted")
}

// Groups returns the groups from the rows of CountBy, for a filter with the given limit.
func Groups(rows []Counted, most int) map[string]persistence.Group {
	of := map[int]int{}
	for _, row := range rows {
		of[row.Part] += row.Count
	}
	groups := map[string]persistence.Group{}
	for _, row := range rows {
		switch more := most > 0 && of[row.Part] > most; {
		case more:
			groups[row.What] = persistence.Group{Count: min(row.Count, most), More: true}
		case row.Count > 0:
			groups[row.What] = persistence.Group{Count: row.Count}
		}
	}
	return groups
}
