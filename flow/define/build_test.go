package define_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
)

// TestADagInGoIsTheDagInText builds a flow and reads it again from its own text: nothing gets lost, and
// the nodes keep their order.
func TestADagInGoIsTheDagInText(t *testing.T) {
	b := define.NewDag("review").Profile(flow.ProfilePgflow).Timeout(time.Hour)
	fetch := b.Node("zz").Service("fetch").Retry(3, time.Second).Backoff(time.Minute, 0.5)
	undo := b.Node("undo").Service("undo")
	b.Node("score").After(fetch).Each(fetch.Out("rows")).Concurrency(4).Timeout(3 * time.Second).Compensate(undo)
	inside := define.NewDag("")
	inside.Node("sign").Direct()
	b.Branch("legal", inside).After(fetch).If(map[string]any{"run": map[string]any{"plan": "pro"}}).Skipping(flow.SkipOptional)
	b.Node("note").After(fetch).InputFrom("row", fetch.Out("rows[0]")).Input("kind", "first").Always()
	b.Output("sum").Service("sum")

	text, err := b.JSON()
	require.NoError(t, err)
	plan, problems := compile.Text(text, flow.Limits{})
	require.Empty(t, problems)
	d, err := b.Definition()
	require.NoError(t, err)
	same, problems := compile.Definition(d, flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, same, plan)
	var order []string
	for _, n := range plan.Root.Dag.List {
		order = append(order, n.Key)
	}
	require.Equal(t, []string{"zz", "score", "gate:legal", "legal/sign", "legal", "note", "output"}, order)
}

func TestAGraphInGoIsTheGraphInText(t *testing.T) {
	b := define.NewGraph("trip").Result("booking").FailFast()
	refund := b.Node("refund").Service("refund").From("$input.output")
	book := b.Node("book").Service("book").From("$params.trip").To("booking").Compensate(refund)
	ask := b.Node("ask").Kind(flow.KindApproval).Params(map[string]string{"approval_key": "$shared.ok"})
	b.Start(book)
	book.Then(ask)
	done := b.Node("done").Func("note")
	ask.On("approved", done)
	text, err := b.JSON()
	require.NoError(t, err)
	plan, problems := compile.Text(text, flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, map[string]string{"approved": "done"}, plan.Root.Nodes["ask"].Edges)
	require.Equal(t, "refund", plan.Root.Nodes["book"].Undo)
}

func TestWhatIsBuiltIsCheckedAsATextIs(t *testing.T) {
	b := define.NewDag("bad")
	a, c := b.Node("a").Service("s"), b.Node("c").Service("s")
	a.After(c)
	c.After(a)
	b.Node("d").Direct().Service("s")
	text, err := b.JSON()
	require.NoError(t, err)
	_, problems := compile.Text(text, flow.Limits{})
	require.ErrorContains(t, problems.Err(), "in a circle: ")
	require.ErrorContains(t, problems.Err(), "a direct node has no handler")
}

func TestABuilderTellsWhatNoTextCouldSay(t *testing.T) {
	b := define.NewDag("twice")
	b.Node("a")
	b.Node("a")
	_, err := b.JSON()
	require.ErrorContains(t, err, `there is a node "a" already`)
}

func TestAFlowIsNotBuiltIntoItself(t *testing.T) {
	b := define.NewDag("snake")
	b.Branch("tail", b)
	_, err := b.JSON()
	require.ErrorContains(t, err, "tail: a flow cannot be inside itself")

	outer, inner := define.NewDag("outer"), define.NewGraph("inner")
	outer.Branch("in", inner)
	inner.Branch("out", outer)
	_, err = inner.JSON()
	require.ErrorContains(t, err, "out: a flow cannot be inside itself")
}

func TestKeysInGoAreThoseInText(t *testing.T) {
	b := define.NewDag("crm").AtMost(2, "$params.customer").Priority(7)
	fetch := b.Node("fetch").Service("fetch").AtMost(3, "$params.customer").Rate(10, time.Second, "").Priority(-5)
	b.Node("each").Service("s").After(fetch).Each(fetch.Out()).Keys(define.KeyFields{Concurrency: &define.KeySpec{Name: "crm", Key: "$item.id", Limit: 1, Fair: "$item.user", WhenFull: define.FullRefuse}})
	text, err := b.JSON()
	require.NoError(t, err)
	plan, problems := compile.Text(text, flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, 2, plan.Keys.Concurrency.Limit)
	nodes := plan.Root.Nodes
	require.Equal(t, []any{3, 10, int64(1_000), "-5"}, []any{nodes["fetch"].Keys.Concurrency.Limit, nodes["fetch"].Keys.Rate.Limit, nodes["fetch"].Keys.Rate.PerMS, nodes["fetch"].Keys.Priority.Text})
	each := nodes["each"].Keys
	require.Equal(t, []any{"crm", "$item.id", "$item.user", flow.FullRefuse, "7", true},
		[]any{each.Concurrency.Name, each.Concurrency.Key.Text, each.Concurrency.Fair.Text, each.Concurrency.Full, each.Priority.Text, each.PerUnit})
}
