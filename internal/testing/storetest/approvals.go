package storetest

import (
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// newApproval returns an approval of a task that has been open since the given time.
func newApproval(task, node string, since int64) persistence.ApprovalRow {
	return persistence.ApprovalRow{Task: task, FlowID: "flow",
		Approval: flow.Approval{Address: flow.Address{Scope: "in#1", Node: node, Visit: 2}, Key: "$shared.ok",
			Title: "Ship " + node + "_100%?", Since: since, Due: since + 9, State: flow.ApprovalOpen}}
}

// createApproving creates a task that waits for approvals.
func (w *testEnv) createApproving(task string, rows ...persistence.ApprovalRow) {
	w.Helper()
	w.mustCommit(changeCommit(createCommit(task), func(c *persistence.Commit) { c.Approvals = rows[:1] }))
	w.mustCommit(changeCommit(appendCommit(task, 2), func(c *persistence.Commit) { c.Approvals = rows[1:] }))
}

// listAsked returns the nodes of the approvals that a filter selects.
func (w *testEnv) listAsked(f persistence.ApprovalFilter) []string {
	w.Helper()
	if f.State == "" {
		f.State = flow.ApprovalOpen
	}
	f.Limit = max(f.Limit, 1)
	nodes := []string{}
	for {
		page := requireList[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(), f))
		for i := range page {
			nodes = append(nodes, page[i].Node)
			f.After = page[i].Spot()
		}
		if len(page) < f.Limit {
			return nodes
		}
	}
}

// randomText returns a text that compression does not shorten.
func randomText(rng *rand.Rand) string {
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte('0' + rng.IntN(75))
	}
	return string(text)
}

var approvals = []storeBehavior{
	{"what tasks ask for is listed by time, page by page, and read as it was written", func(w *testEnv) {
		x, y, z := newApproval("a", "x", 7), newApproval("a", "y", 3), newApproval("b", "z", 7)
		w.createApproving("a", x, y)
		w.createApproving("b", z)
		require.Equal(w, []string{"y", "x", "z"}, w.listAsked(persistence.ApprovalFilter{}))
		require.Equal(w, []string{"y", "x", "z"}, w.listAsked(persistence.ApprovalFilter{Limit: 2}))
		require.Equal(w, []string{"z", "x", "y"}, w.listAsked(persistence.ApprovalFilter{Newest: true}))
		require.Equal(w, []string{"y", "x"}, w.listAsked(persistence.ApprovalFilter{Through: x.Spot()}))
		require.Equal(w, []string{"z", "x"}, w.listAsked(persistence.ApprovalFilter{Newest: true, Through: x.Spot()}))
		require.Equal(w, []string{"x"}, w.listAsked(persistence.ApprovalFilter{After: y.Spot(), Through: x.Spot()}))
		for newest, want := range map[bool]string{false: "z", true: "y"} {
			list := requireList[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(),
				persistence.ApprovalFilter{State: flow.ApprovalOpen, Newest: newest, Offset: 2, Limit: 1}))
			require.Equal(w, want, list[0].Node)
		}
		one, err := w.Approval(w.ctx(), x.ID())
		require.NoError(w, err)
		require.Equal(w, x, *one)
		for _, id := range []string{"", "a", "nul\x00", newApproval("c", "x", 1).ID()} {
			_, err = w.Approval(w.ctx(), id)
			require.ErrorIs(w, err, persistence.ErrNotFound)
		}
	}},
	{"those of scopes within scopes, however long their paths and whatever is in them, are kept", func(w *testEnv) {
		rng, deep := rand.New(rand.NewPCG(1, 1)), newApproval("a", "x\n\x00y", 3)
		for n := range 16 {
			deep.Scope = flow.ChildScope(flow.Address{Scope: deep.Scope, Node: randomText(rng) + "\n", Visit: n + 1})
		}
		deep.Title = "deep"
		beside, root := deep, newApproval("a", "r", 5)
		beside.Node, beside.Since, root.Scope = "z", 4, ""
		w.createApproving("a", deep, beside, root)
		require.Equal(w, []string{deep.Node, "z", "r"}, w.listAsked(persistence.ApprovalFilter{Limit: 1}))
		for _, r := range []persistence.ApprovalRow{deep, beside, root} {
			one, err := w.Approval(w.ctx(), r.ID())
			require.NoError(w, err)
			require.Equal(w, r, *one)
		}
	}},
	{"they are found by flow, by what the title says, and by their task", func(w *testEnv) {
		Publish(w, w.Store, "other", "version-2")
		x, y := newApproval("a", "x", 1), newApproval("a", "Y", 2)
		y.FlowID = "other"
		w.createApproving("a", x, y)
		require.Equal(w, []string{"x"}, w.listAsked(persistence.ApprovalFilter{FlowID: "flow"}))
		require.Equal(w, []string{"Y"}, w.listAsked(persistence.ApprovalFilter{FlowID: "other"}))
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{FlowID: "nul\x00"}))
		require.Equal(w, []string{"x", "Y"}, w.listAsked(persistence.ApprovalFilter{Task: "a"}))
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{Task: "nul\x00"}))
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{Task: "b"}))
		require.Equal(w, []string{"Y"}, w.listAsked(persistence.ApprovalFilter{Text: "ship y_100%"}))
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{Text: "%y__"}))
		require.Equal(w, []string{"x", "Y"}, w.listAsked(persistence.ApprovalFilter{Text: "a"}))
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{Text: "b"}))
	}},
	{"an answer is kept with who gave it, and what is asked again is open again", func(w *testEnv) {
		x := newApproval("a", "x", 1)
		w.createApproving("a", x, newApproval("a", "y", 2))
		x.State, x.EndedAt, x.By, x.Comment, x.Action = flow.ApprovalAnswered, 5, "ada", "why not?", "approved"
		w.mustCommit(changeCommit(appendCommit("a", 3), func(c *persistence.Commit) { c.Approvals = []persistence.ApprovalRow{x} }))
		require.Equal(w, []string{"y"}, w.listAsked(persistence.ApprovalFilter{}))
		require.Equal(w, []persistence.ApprovalRow{x},
			requireList[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(),
				persistence.ApprovalFilter{State: flow.ApprovalAnswered, Limit: 9})))
		again := newApproval("a", "x", 9)
		w.mustCommit(changeCommit(appendCommit("a", 4), func(c *persistence.Commit) { c.Approvals = []persistence.ApprovalRow{again} }))
		one, err := w.Approval(w.ctx(), x.ID())
		require.NoError(w, err)
		require.Equal(w, again, *one)
	}},
	{"they go with their task", func(w *testEnv) {
		x := newApproval("a", "x", 1)
		w.createApproving("a", x, newApproval("a", "y", 2))
		w.mustCommit(changeCommit(appendCommit("a", 3),
			func(c *persistence.Commit) {
				c.Columns = &persistence.Columns{Status: "completed",
					EndedAt: 3}
			}))
		n, err := w.DeleteEnded(w.ctx(), 10, 9)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Empty(w, w.listAsked(persistence.ApprovalFilter{}))
		_, err = w.Approval(w.ctx(), x.ID())
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
}
