package postgres

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// approvalStore reads approvals.
type approvalStore struct{ *database }

func (l *rowArray) addApproval(c *persistence.Commit, r *persistence.ApprovalRow) {
	l.beginRow(16)
	l.putText(r.Task)
	l.putBool(c.Create != nil)
	l.putText(r.ID())
	l.putBytes([]byte(r.Scope))
	l.putBytes([]byte(r.Node))
	l.putNumber(int64(r.Visit))
	l.putText(r.FlowID)
	l.putText(string(r.State))
	l.putNumber(r.Since)
	l.putNumber(r.Due)
	l.putCleanText(r.Key)
	l.putCleanText(r.Title)
	l.putNumber(r.EndedAt)
	l.putCleanText(r.By)
	l.putCleanText(r.Comment)
	l.putCleanText(r.Action)
	l.endRow()
}

func (s approvalStore) ListApprovals(ctx context.Context, f persistence.ApprovalFilter) ([]persistence.ApprovalRow, error) {
	if !flow.IsText(f.FlowID) || !flow.IsText(f.Task) || !flow.IsText(f.Text) {
		return nil, nil
	}
	q := listing.Approvals(dialect, f)
	if f.Task == "" && f.Limit > 0 {
		return readPage(ctx, s.database, "list approvals", listing.ScanApproval, q.String(), q.Args...)
	}
	return readRows(ctx, s.database, "list approvals", listing.ScanApproval, q.String(), q.Args...)
}

func (s approvalStore) Approval(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	if !flow.IsText(id) {
		return nil, fmt.Errorf("read an approval: %w", persistence.ErrNotFound)
	}
	return findByKey(ctx, s.database, "read an approval", listing.ScanApproval,
		"SELECT "+listing.ApprovalColumns+" FROM troupe.approvals WHERE task = $1 AND id = $2",
		flow.ApprovalTask(id), id)
}
