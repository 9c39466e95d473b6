package persistence

import (
	"context"

	"github.com/troupe-engine/troupe/flow"
)

// Approvals is the store's side of what tasks ask people for: rows made and ended by the commits of
// the tasks, and gone with them.
type Approvals interface {
	// ListApprovals lists those of a filter, the one that has waited longest first.
	ListApprovals(ctx context.Context, f ApprovalFilter) ([]ApprovalRow, error)
	// Approval reads one. ErrNotFound when there is none.
	Approval(ctx context.Context, id string) (*ApprovalRow, error)
}

// ApprovalRow is an approval of a task.
type ApprovalRow struct {
	flow.Approval
	Task, FlowID string
}

// ID names it.
func (r ApprovalRow) ID() string { return flow.ApprovalID(r.Task, r.Address) }

// ApprovalFilter picks approvals.
type ApprovalFilter struct {
	State  flow.ApprovalState
	FlowID string // "" = any
	Task   string // id; "" = any
	Text   string // what the title says, in letters of either case, or the id of the task begins with; "" = any. No index answers it
	Newest bool   // the one that began last comes first

	After         Spot // of the last one of the page before, by Since and ID; zero = the first page
	Through       Spot // only those at this place or before it in the order of the list; zero = all
	Offset, Limit int
}

// Spot is where an approval is in a list.
func (r *ApprovalRow) Spot() Spot { return Spot{CreatedAt: r.Since, ID: r.ID()} }

// ApprovalRows are approvals of a task as a commit has them.
func ApprovalRows(s *flow.State, list []flow.Approval) []ApprovalRow {
	rows := make([]ApprovalRow, len(list))
	for i, a := range list {
		rows[i] = ApprovalRow{Approval: a, Task: s.Task, FlowID: s.Plan.FlowID}
	}
	return rows
}
