package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/persistence"
)

func (s *store) applyApprovals(rows []persistence.ApprovalRow) {
	for _, r := range rows {
		s.approvals[r.ID()] = r
	}
}

// dropApprovals deletes the approvals of a task.
func (s *store) dropApprovals(task string) {
	maps.DeleteFunc(s.approvals, func(_ string, r persistence.ApprovalRow) bool { return r.Task == task })
}

func (s *store) ListApprovals(ctx context.Context, f persistence.ApprovalFilter) ([]persistence.ApprovalRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	order := func(a, b persistence.Spot) int {
		c := cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
		if f.Newest {
			return -c
		}
		return c
	}
	list := []persistence.ApprovalRow{}
	for _, r := range s.approvals {
		said := strings.Contains(strings.ToLower(r.Title), strings.ToLower(f.Text)) || strings.HasPrefix(r.Task, f.Text)
		placed := (f.After.ID == "" || order(r.Spot(), f.After) > 0) && (f.Through.ID == "" || order(r.Spot(), f.Through) <= 0)
		if r.State == f.State && (f.FlowID == "" || r.FlowID == f.FlowID) && (f.Task == "" || r.Task == f.Task) && said && placed {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b persistence.ApprovalRow) int { return order(a.Spot(), b.Spot()) })
	list = list[min(f.Offset, len(list)):]
	return takeFirst(list, f.Limit), nil
}

func (s *store) Approval(ctx context.Context, id string) (*persistence.ApprovalRow, error) {
	leave, err := s.beginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, ok := s.approvals[id]
	if !ok {
		return nil, fmt.Errorf("read an approval: %w", persistence.ErrNotFound)
	}
	return &r, nil
}
