package postgres

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

func (l *list) approval(c *persistence.Commit, r *persistence.ApprovalRow) {
	l.begin(16)
	l.text(r.Task)
	l.boolean(c.Create != nil)
	l.text(r.ID())
	l.bytea([]byte(r.Scope))
	l.bytea([]byte(r.Node))
	l.number(int64(r.Visit))
	l.text(r.FlowID)
	l.text(string(r.State))
	l.number(r.Since)
	l.number(r.Due)
	l.words(r.Key)
	l.words(r.Title)
	l.number(r.EndedAt)
	l.words(r.By)
	l.words(r.Comment)
	l.words(r.Action)
	l.end()
}

func (s *store) ListApprovals(ctx context.Context, f persistence.ApprovalFilter) ([]persistence.ApprovalRow, error) {
	if !flow.IsText(f.FlowID) || !flow.IsText(f.Task) || !flow.IsText(f.Text) {
		return nil, nil
	}
	q := listing.Approvals(dialect, f)
	if f.Task == "" && f.Limit > 0 {
		return page(ctx, s, "list approvals", listing.ScanApproval, q.String(), q.Args...)
	}
	return read(ctx, s, "list approvals", listing.ScanApproval, q.String(), q.Args...)
}

func (s *store) Approval(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	if !flow.IsText(id) {
		return nil, fmt.Errorf("read an approval: %w", persistence.ErrNotFound)
	}
	return find(ctx, s, "read an approval", listing.ScanApproval, "SELECT "+listing.ApprovalColumns+" FROM troupe.approvals WHERE task = $1 AND id = $2", flow.ApprovalTask(id), id)
}
