package listing

import (
	"github.com/troupe-engine/troupe/persistence"
)

// ApprovalColumns are the columns that ScanApproval reads.
const ApprovalColumns = "task, scope, node, visit, flow_id, state, since, due, key, title, ended_at, answered_by, comment, action"

// ScanApproval reads ApprovalColumns.
func ScanApproval(row Row, r *persistence.ApprovalRow) error {
	var scope, node []byte
	err := row.Scan(&r.Task, &scope, &node, &r.Visit, &r.FlowID, &r.State, &r.Since, &r.Due, &r.Key,
		&r.Title, &r.EndedAt, &r.By, &r.Comment, &r.Action)
	r.Scope, r.Node = string(scope), string(node)
	return err
}

// Approvals returns the query for the approvals that a filter selects.
func Approvals(d Dialect, f persistence.ApprovalFilter) *Query {
	q := &Query{mark: d.Mark, open: " WHERE ", asc: !f.Newest}
	q.Add("SELECT " + ApprovalColumns + " FROM " + d.Schema + "approvals")
	aside := d.Aside
	if f.Task == "" {
		aside = ""
	}
	q.And(aside+"state = ", string(f.State))
	if f.FlowID != "" {
		q.And("flow_id = ", f.FlowID)
	}
	if f.Task != "" {
		q.And("task = ", f.Task)
	}
	if f.Text != "" {
		q.And("(title "+d.Like+" ", "%"+likeEscaper.Replace(f.Text)+"%")
		q.Add(` ESCAPE '\' OR task >= `, f.Text)
		q.Add(" AND task < ", f.Text+"\U0010FFFF")
		q.Add(")")
	}
	q.addBounds("since", "id", f.After, f.Through)
	q.addOrder("since", "id", f.Limit, f.Offset)
	return q
}
