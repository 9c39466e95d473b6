package sqlite

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// approvalStore reads approvals.
type approvalStore struct{ *database }

// writeApprovals applies the changes of a commit to approvals.
func (t writeTx) writeApprovals(rows []persistence.ApprovalRow) error {
	for i := range rows {
		r := &rows[i]
		_, err := t.execCount(
			`INSERT INTO approvals (task, id, scope, node, visit, flow_id, state, since, due, key, title, ended_at, answered_by, comment, action) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (task, id) DO UPDATE SET state = excluded.state, since = excluded.since, due = excluded.due, ended_at = excluded.ended_at,
				answered_by = excluded.answered_by, comment = excluded.comment, action = excluded.action`,
			r.Task, r.ID(), []byte(r.Scope), []byte(r.Node), r.Visit, r.FlowID, string(r.State),
			r.Since, r.Due, persistence.CleanText(r.Key), persistence.CleanText(r.Title), r.EndedAt,
			persistence.CleanText(r.By), persistence.CleanText(r.Comment), persistence.CleanText(r.Action))
		if err != nil {
			return err
		}
	}
	return nil
}

func (s approvalStore) ListApprovals(ctx context.Context, f persistence.ApprovalFilter) ([]persistence.ApprovalRow, error) {
	q := listing.Approvals(dialect, f)
	return readRows(ctx, &s.readers, "list approvals", listing.ScanApproval, q.String(), q.Args...)
}

func (s approvalStore) Approval(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	return readFirst(ctx, &s.readers, "read an approval", listing.ScanApproval,
		"SELECT "+listing.ApprovalColumns+" FROM approvals WHERE task = ? AND id = ?",
		flow.ApprovalTask(id), id)
}
