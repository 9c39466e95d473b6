package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Approvals reads the approvals that tasks request from people. The commits of a task create and
// end these rows, and deleting the task deletes them.
type Approvals interface {
	// ListApprovals returns the approvals that the filter selects, the one that has waited longest
	// first.
	ListApprovals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error)
	// Approval returns one approval, or ErrNotFound.
	Approval(ctx context.Context, id string) (*ApprovalRow, error)
}

// ApprovalRow is an approval as stored, with its task and flow.
type ApprovalRow struct {
	flow.Approval
	Task, FlowID string
}

// ID returns the id of the approval, which is made from its task and address.
func (r ApprovalRow) ID() string { return flow.ApprovalID(r.Task, r.Address) }

// ApprovalFilter selects approvals.
type ApprovalFilter struct {
	State  flow.ApprovalState
	FlowID string // "" means any
	Task   string // id; "" means any
	// substring of the title, ignoring case, or a prefix of the task id; "" means any. No index
	// serves this filter
	Text   string
	Newest bool // newest first instead of oldest first

	// position of the last approval of the previous page, by Since and ID; zero means the first
	// page
	After         Spot
	Through       Spot // only approvals up to and including this spot in list order; zero means all
	Offset, Limit int
}

// Spot returns the position of the approval in a list.
func (r *ApprovalRow) Spot() Spot { return Spot{CreatedAt: r.Since, ID: r.ID()} }

// ApprovalRows returns the given approvals of a task as rows for a commit.
func ApprovalRows(s *flow.State, list []flow.Approval) []ApprovalRow {
	rows := make([]ApprovalRow, len(list))
	for i, a := range list {
		rows[i] = ApprovalRow{Approval: a, Task: s.Task, FlowID: s.Plan.FlowID}
	}
	return rows
}
