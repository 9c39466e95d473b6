package storetest

import (
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// approval is one of a task that is open since a time.
func approval(task, node string, since int64) persistence.ApprovalRow {
	return persistence.ApprovalRow{Task: task, FlowID: "flow", Approval: flow.Approval{Address: flow.Address{Scope: "in#1", Node: node, Visit: 2}, Key: "$shared.ok",
		Title: "Ship " + node + "_100%?", Since: since, Due: since + 9, State: flow.ApprovalOpen}}
}

// approving makes a task that asks for approvals.
func (w *world) approving(task string, rows ...persistence.ApprovalRow) {
	w.Helper()
	w.must(with(created(task), func(c *persistence.Commit) { c.Approvals = rows[:1] }))
	w.must(with(appended(task, 2), func(c *persistence.Commit) { c.Approvals = rows[1:] }))
}

// asked are the nodes of the approvals that a filter picks.
func (w *world) asked(f persistence.ApprovalFilter) []string {
	w.Helper()
	if f.State == "" {
		f.State = flow.ApprovalOpen
	}
	f.Limit = max(f.Limit, 1)
	nodes := []string{}
	for {
		page := got[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(), f))
		for i := range page {
			nodes = append(nodes, page[i].Node)
			f.After = page[i].Spot()
		}
		if len(page) < f.Limit {
			return nodes
		}
	}
}

// noise is a text that does not become shorter when it is packed.
func noise(rng *rand.Rand) string {
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte('0' + rng.IntN(75))
	}
	return string(text)
}

var approvals = []behavior{
	{"what tasks ask for is listed by time, page by page, and read as it was written", func(w *world) {
		x, y, z := approval("a", "x", 7), approval("a", "y", 3), approval("b", "z", 7)
		w.approving("a", x, y)
		w.approving("b", z)
		require.Equal(w, []string{"y", "x", "z"}, w.asked(persistence.ApprovalFilter{}))
		require.Equal(w, []string{"y", "x", "z"}, w.asked(persistence.ApprovalFilter{Limit: 2}))
		require.Equal(w, []string{"z", "x", "y"}, w.asked(persistence.ApprovalFilter{Newest: true}))
		require.Equal(w, []string{"y", "x"}, w.asked(persistence.ApprovalFilter{Through: x.Spot()}))
		require.Equal(w, []string{"z", "x"}, w.asked(persistence.ApprovalFilter{Newest: true, Through: x.Spot()}))
		require.Equal(w, []string{"x"}, w.asked(persistence.ApprovalFilter{After: y.Spot(), Through: x.Spot()}))
		for newest, want := range map[bool]string{false: "z", true: "y"} {
			list := got[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(), persistence.ApprovalFilter{State: flow.ApprovalOpen, Newest: newest, Offset: 2, Limit: 1}))
			require.Equal(w, want, list[0].Node)
		}
		one, err := w.Approval(w.ctx(), x.ID())
		require.NoError(w, err)
		require.Equal(w, x, *one)
		for _, id := range []string{"", "a", "nul\x00", approval("c", "x", 1).ID()} {
			_, err = w.Approval(w.ctx(), id)
			require.ErrorIs(w, err, persistence.ErrNotFound)
		}
	}},
	{"those of scopes within scopes, however long their paths and whatever is in them, are kept", func(w *world) {
		rng, deep := rand.New(rand.NewPCG(1, 1)), approval("a", "x\n\x00y", 3)
		for n := range 16 {
			deep.Scope = flow.ChildScope(flow.Address{Scope: deep.Scope, Node: noise(rng) + "\n", Visit: n + 1})
		}
		deep.Title = "deep"
		beside, root := deep, approval("a", "r", 5)
		beside.Node, beside.Since, root.Scope = "z", 4, ""
		w.approving("a", deep, beside, root)
		require.Equal(w, []string{deep.Node, "z", "r"}, w.asked(persistence.ApprovalFilter{Limit: 1}))
		for _, r := range []persistence.ApprovalRow{deep, beside, root} {
			one, err := w.Approval(w.ctx(), r.ID())
			require.NoError(w, err)
			require.Equal(w, r, *one)
		}
	}},
	{"they are found by flow, by what the title says, and by their task", func(w *world) {
		Publish(w, w.Store, "other", "version-2")
		x, y := approval("a", "x", 1), approval("a", "Y", 2)
		y.FlowID = "other"
		w.approving("a", x, y)
		require.Equal(w, []string{"x"}, w.asked(persistence.ApprovalFilter{FlowID: "flow"}))
		require.Equal(w, []string{"Y"}, w.asked(persistence.ApprovalFilter{FlowID: "other"}))
		require.Empty(w, w.asked(persistence.ApprovalFilter{FlowID: "nul\x00"}))
		require.Equal(w, []string{"x", "Y"}, w.asked(persistence.ApprovalFilter{Task: "a"}))
		require.Empty(w, w.asked(persistence.ApprovalFilter{Task: "nul\x00"}))
		require.Empty(w, w.asked(persistence.ApprovalFilter{Task: "b"}))
		require.Equal(w, []string{"Y"}, w.asked(persistence.ApprovalFilter{Text: "ship y_100%"}))
		require.Empty(w, w.asked(persistence.ApprovalFilter{Text: "%y__"}))
		require.Equal(w, []string{"x", "Y"}, w.asked(persistence.ApprovalFilter{Text: "a"}))
		require.Empty(w, w.asked(persistence.ApprovalFilter{Text: "b"}))
	}},
	{"an answer is kept with who gave it, and what is asked again is open again", func(w *world) {
		x := approval("a", "x", 1)
		w.approving("a", x, approval("a", "y", 2))
		x.State, x.EndedAt, x.By, x.Comment, x.Action = flow.ApprovalAnswered, 5, "ada", "why not?", "approved"
		w.must(with(appended("a", 3), func(c *persistence.Commit) { c.Approvals = []persistence.ApprovalRow{x} }))
		require.Equal(w, []string{"y"}, w.asked(persistence.ApprovalFilter{}))
		require.Equal(w, []persistence.ApprovalRow{x}, got[persistence.ApprovalRow](w)(w.ListApprovals(w.ctx(), persistence.ApprovalFilter{State: flow.ApprovalAnswered, Limit: 9})))
		again := approval("a", "x", 9)
		w.must(with(appended("a", 4), func(c *persistence.Commit) { c.Approvals = []persistence.ApprovalRow{again} }))
		one, err := w.Approval(w.ctx(), x.ID())
		require.NoError(w, err)
		require.Equal(w, again, *one)
	}},
	{"they go with their task", func(w *world) {
		x := approval("a", "x", 1)
		w.approving("a", x, approval("a", "y", 2))
		w.must(with(appended("a", 3), func(c *persistence.Commit) { c.Columns = &persistence.Columns{Status: "completed", EndedAt: 3} }))
		n, err := w.DeleteEnded(w.ctx(), 10, 9)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Empty(w, w.asked(persistence.ApprovalFilter{}))
		_, err = w.Approval(w.ctx(), x.ID())
		require.ErrorIs(w, err, persistence.ErrNotFound)
	}},
}
