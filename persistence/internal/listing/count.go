package listing

import (
	"reflect"
	"strconv"

	"github.com/troupe-engine/troupe/persistence"
)

// Count asks how many tasks a filter picks.
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
	for i, part := range parts { // state by state, from the indexes of these
		q.Add([]string{"", " UNION ALL "}[min(i, 1)] + "SELECT 1 FROM " + d.Schema + "tasks t")
		q.addPart(d, f, part)
	}
	q.addLimit(f.Most)
	return q
}

// countedByLabel says that a filter asks for nothing that the row of a label does not tell.
func (d Dialect) countedByLabel(f persistence.TaskFilter) bool {
	return d.LabelTable && len(f.Labels) == 1 && asksOnlyFor(f, func(rest *persistence.TaskFilter) { rest.Labels = nil })
}

// countedByIndex says the same of the indexes on states.
func countedByIndex(f persistence.TaskFilter) bool {
	return asksOnlyFor(f, func(rest *persistence.TaskFilter) { rest.FlowID, rest.FlowIDs, rest.FlowSlug = "", nil, "" })
}

// asksOnlyFor says that a filter asks for states, times of creation, and else only for what without
// takes off.
func asksOnlyFor(f persistence.TaskFilter, without func(*persistence.TaskFilter)) bool {
	f.Statuses, f.CreatedFrom, f.CreatedTo, f.Most, f.Oldest = nil, 0, 0, 0, false
	if len(f.Labels) == 0 {
		f.Labels = nil
	}
	without(&f)
	return reflect.DeepEqual(f, persistence.TaskFilter{})
}

// CountBy asks how many of them there are by something. Each row tells the number of a part of
// them, of what, and how many; Groups reads them. Of a part one more is counted than of a group,
// which tells that there are more.
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

// byState counts each state of which an index tells all that is asked by itself, and those under
// way together; false: no index does.
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

// addPicked ends a part that reads something of each task that a filter picks, up to as many as are
// counted: those of one state no sooner than those of another.
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

// Groups are what CountBy has told, of a filter that counts so many.
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
