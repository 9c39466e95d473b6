package listing

import (
	"reflect"

	"github.com/troupe-engine/troupe/persistence"
)

// Count asks how many tasks a filter picks.
func Count(d Dialect, f persistence.TaskFilter) *Query {
	f.ByUpdate = false
	q := &Query{mark: d.Mark, asc: f.Oldest}
	q.Add("SELECT count(*) FROM (")
	if d.saidByLabel(f) {
		q.Add("SELECT 1 FROM " + d.Schema + "task_labels l")
		q.where(d, f, "l.")
		q.most(f)
		return q
	}
	parts := d.parts(f)
	if len(parts) < 2 {
		q.picked(d, f, func() { q.Add("1") })
		return q
	}
	for i, part := range parts { // state by state, from the indexes of these
		q.Add([]string{"", " UNION ALL "}[min(i, 1)] + "SELECT 1 FROM " + d.Schema + "tasks t")
		q.part(d, f, part)
	}
	q.most(f)
	return q
}

// saidByLabel says that a filter asks for nothing that the row of a label does not tell.
func (d Dialect) saidByLabel(f persistence.TaskFilter) bool {
	rest := f
	rest.Labels, rest.CreatedFrom, rest.CreatedTo, rest.Most = nil, 0, 0, 0
	return d.LabelTable && len(f.Labels) == 1 && reflect.DeepEqual(rest, persistence.TaskFilter{})
}

// CountBy asks how many of them there are by something.
func CountBy(d Dialect, f persistence.TaskFilter, by persistence.By) *Query {
	q := &Query{mark: d.Mark, asc: f.Oldest}
	q.Add("SELECT what, count(*) FROM (")
	q.picked(d, f, func() {
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

// picked ends a part that reads something of each task that a filter picks, up to as many as are counted: those of one state no sooner than
// those of another.
func (q *Query) picked(d Dialect, f persistence.TaskFilter, what func()) {
	from, by := " FROM "+d.Schema+"tasks t", ""
	if d.LabelTable && len(f.Labels) > 0 {
		from, by = d.byLabel(), "l."
	}
	q.Add("SELECT ")
	what()
	q.Add(from)
	q.where(d, f, by)
	q.most(f)
}

func (q *Query) most(f persistence.TaskFilter) {
	if f.Most > 0 {
		q.Add(" LIMIT ", f.Most)
	}
	q.Add(") counted")
}
