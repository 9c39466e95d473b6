package define_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/definition/define"
	"github.com/troupe-engine/troupe/flow"
)

// TestADagInGoIsTheDagInText builds a flow and reads it again from its own text: nothing gets lost,
// and the nodes keep their order.
func TestADagInGoIsTheDagInText(t *testing.T) {
	b := define.NewDag("review").Profile(flow.ProfilePgflow).Timeout(time.Hour)
	fetch := b.Node("zz").Service("fetch").Retry(3, time.Second).Backoff(time.Minute, 0.5)
	undo := b.Node("undo").Service("undo")
	b.Node("score").After(fetch).Each(fetch.Output("rows")).Concurrency(4).Timeout(3 * time.Second).Compensate(undo)
	inside := define.NewDag("")
	inside.Node("sign").Direct()
	b.Branch("legal", inside).After(fetch).If(map[string]any{"run": map[string]any{"plan": "pro"}}).Skipping(flow.SkipOptional)
	b.Node("note").After(fetch).InputFrom("row", fetch.Output("rows[0]")).Input("kind", "first").Always()
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

func TestABuiltDefinitionIsCheckedLikeAText(t *testing.T) {
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

func TestABuilderReportsErrorsThatATextCannotContain(t *testing.T) {
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
	b.Node("each").Service("s").After(fetch).Each(fetch.Output()).Keys(
		definition.KeyFields{Concurrency: &definition.KeySpec{Name: "crm", Key: "$item.id", Limit: 1,
			Fair: "$item.user", WhenFull: definition.FullCancel}})
	text, err := b.JSON()
	require.NoError(t, err)
	plan, problems := compile.Text(text, flow.Limits{})
	require.Empty(t, problems)
	require.Equal(t, 2, plan.Keys.Concurrency.Limit)
	nodes := plan.Root.Nodes
	require.Equal(t, []any{3, 10, int64(1_000), "-5"}, []any{nodes["fetch"].Keys.Concurrency.Limit,
		nodes["fetch"].Keys.Rate.Limit, nodes["fetch"].Keys.Rate.PerMS, nodes["fetch"].Keys.Priority.Text})
	each := nodes["each"].Keys
	require.Equal(t, []any{"crm", "$item.id", "$item.user", flow.FullCancel, "7", true},
		[]any{each.Concurrency.Name, each.Concurrency.Key.Text, each.Concurrency.Fair.Text,
			each.Concurrency.Full, each.Priority.Text, each.PerUnit})
}

// fieldsInGo maps every field of a text to a method that sets it.
var fieldsInGo = map[string]func(b *define.Builder, n, other *define.NodeBuilder){
	"Definition.name":        func(_ *define.Builder, _, _ *define.NodeBuilder) {},
	"Definition.mode":        func(_ *define.Builder, _, _ *define.NodeBuilder) {},
	"Definition.nodes":       func(_ *define.Builder, _, _ *define.NodeBuilder) {},
	"Definition.description": func(b *define.Builder, _, _ *define.NodeBuilder) { b.Describe("x") },
	"Definition.profile":     func(b *define.Builder, _, _ *define.NodeBuilder) { b.Profile(flow.ProfileOrk) },
	"Definition.start":       func(b *define.Builder, n, _ *define.NodeBuilder) { b.Start(n) },
	"Definition.edges":       func(_ *define.Builder, n, other *define.NodeBuilder) { n.On("x", other) },
	"Definition.timeout_ms":  func(b *define.Builder, _, _ *define.NodeBuilder) { b.Timeout(time.Second) },
	"Definition.on_error":    func(b *define.Builder, _, _ *define.NodeBuilder) { b.OnError(definition.OnErrorFollow) },
	"Definition.on_missing":  func(b *define.Builder, _, _ *define.NodeBuilder) { b.OnMissing(definition.OnMissingCoerce) },
	"Definition.result":      func(b *define.Builder, _, _ *define.NodeBuilder) { b.Result("x") },
	"Definition.finally":     func(b *define.Builder, n, _ *define.NodeBuilder) { b.Finally(n) },
	"Definition.input_shape": func(b *define.Builder, _, _ *define.NodeBuilder) { b.Shape(flow.ShapeDeps) },
	"Definition.inputs":      func(b *define.Builder, _, _ *define.NodeBuilder) { b.Input("x", "int") },
	"Definition.defaults":    func(b *define.Builder, _, _ *define.NodeBuilder) { b.Defaults(definition.Defaults{ExecType: "queue"}) },
	"Definition.schedule":    func(b *define.Builder, _, _ *define.NodeBuilder) { b.Schedule(definition.Schedule{Cron: "@daily"}) },
	"Definition.concurrency": func(b *define.Builder, _, _ *define.NodeBuilder) { b.AtMost(1, "") },
	"Definition.rate":        func(b *define.Builder, _, _ *define.NodeBuilder) { b.Rate(1, time.Second, "") },
	"Definition.priority":    func(b *define.Builder, _, _ *define.NodeBuilder) { b.Priority(1) },

	"Node.kind":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Kind(flow.KindChoice) },
	"Node.service":             func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Service("x") },
	"Node.exec_type":           func(_ *define.Builder, n, _ *define.NodeBuilder) { n.ExecType(flow.ExecRemote) },
	"Node.func":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Func("x") },
	"Node.script":              func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Script(flow.Script{Code: "x"}) },
	"Node.params":              func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Params(map[string]int{"x": 1}) },
	"Node.prep":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.From("$params") },
	"Node.post":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.To("x") },
	"Node.workers_per_attempt": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.WorkersPerAttempt(1, time.Second) },
	"Node.worker_delay":        func(_ *define.Builder, n, _ *define.NodeBuilder) { n.WorkersPerAttempt(1, time.Second) },
	"Node.weighted_by_load":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Weighted() },
	"Node.timeout_ms":          func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Timeout(time.Second) },
	"Node.visibility_ms":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Visibility(time.Second) },
	"Node.on_error":            func(_ *define.Builder, n, _ *define.NodeBuilder) { n.OnError(definition.OnErrorFail) },
	"Node.choice_cases":        func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Case("x", "true") },
	"Node.default_action":      func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Otherwise("x") },
	"Node.parallel_services":   func(b *define.Builder, _, _ *define.NodeBuilder) { b.Parallel("p", "x") },
	"Node.parallel_execs":      func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Branches(definition.ExecSpec{Service: "x"}) },
	"Node.parallel_mode":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Concurrent(2) },
	"Node.max_parallel":        func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Concurrent(2) },
	"Node.failure_strategy":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Failures("fail_fast") },
	"Node.foreach_execs":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Items(definition.ExecSpec{Service: "x"}) },
	"Node.subflow_execs":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Children(definition.ExecSpec{Node: "x"}) },
	"Node.flow":                func(b *define.Builder, _, _ *define.NodeBuilder) { b.Published("p", "x") },
	"Node.compensate":          func(_ *define.Builder, n, other *define.NodeBuilder) { n.Compensate(other) },
	"Node.retry":               func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second) },
	"Node.deferred":            func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Deferred() },
	"Node.labels":              func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Labels("x") },
	"Node.concurrency":         func(_ *define.Builder, n, _ *define.NodeBuilder) { n.AtMost(1, "") },
	"Node.rate":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Rate(1, time.Second, "") },
	"Node.priority":            func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Priority(1) },
	"Node.depends_on":          func(_ *define.Builder, n, other *define.NodeBuilder) { n.After(other) },
	"Node.name":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Called("x") },
	"Node.output_type":         func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Returns("int") },
	"Node.run_on":              func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Always() },
	"Node.route":               func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Direct() },
	"Node.each":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Times(2) },
	"Node.when":                func(_ *define.Builder, n, _ *define.NodeBuilder) { n.When("true") },
	"Node.skip_mode":           func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Skipping(flow.SkipOptional) },
	"Node.on_exhausted":        func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Exhausted(flow.SkipFail) },
	"Node.input_shape":         func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Shape(flow.ShapeDeps) },
	"Node.input":               func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Static(map[string]int{"x": 1}) },
	"Node.inputs":              func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Input("x", 1) },
	"Node.start_delay":         func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Delay(time.Second) },
	"Node.start_timeout":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.StartTimeout(time.Second) },
	"Node.heartbeat_timeout":   func(_ *define.Builder, n, _ *define.NodeBuilder) { n.HeartbeatTimeout(time.Second) },

	"Prep.input_key": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.From("$params") },
	"Prep.input_map": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.FromField("x", "$params") },
	"Prep.expr":      func(_ *define.Builder, n, _ *define.NodeBuilder) { n.FromExpr("1") },
	"Prep.service":   func(_ *define.Builder, n, _ *define.NodeBuilder) { n.FromService("x") },

	"Post.output_key":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.To("x") },
	"Post.output_map":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.FieldTo("x", "y") },
	"Post.action_static": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Action("x") },
	"Post.action_key":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.ActionFrom("x") },

	"EachOf.items":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Each("$run") },
	"EachOf.count":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.TimesOf("$run.n") },
	"EachOf.concurrency": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Concurrency(2) },
	"EachOf.on_error":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.EachOnError("collect") },

	"When.if":     func(_ *define.Builder, n, _ *define.NodeBuilder) { n.If(1) },
	"When.if_not": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.IfNot(1) },
	"When.expr":   func(_ *define.Builder, n, _ *define.NodeBuilder) { n.When("true") },
	"When.cond":   func(_ *define.Builder, n, _ *define.NodeBuilder) { n.SkipIf("x") },

	"RetrySpec.max_attempts": func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second) },
	"RetrySpec.delay":        func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second) },
	"RetrySpec.backoff":      func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second).Backoff(time.Minute, 0.5) },
	"RetrySpec.max_delay":    func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second).Backoff(time.Minute, 0.5) },
	"RetrySpec.jitter":       func(_ *define.Builder, n, _ *define.NodeBuilder) { n.Retry(2, time.Second).Backoff(time.Minute, 0.5) },
}

// saidOtherwise lists fields that are other notations for the effect of a method.
var saidOtherwise = map[string]string{
	"Definition.code": "troupe.HandleFlow", "Definition.timeout": "Timeout", "Definition.embedded": "Branch", "Node.exec_mode": "ExecType",
	"Node.timeout": "Timeout", "Node.subflow": "Branch",
	"Node.max_retries": "Retry", "Node.wait_ms": "Retry", "Node.max_attempts": "WorkersPerAttempt",
	"Node.attempt_delay_ms": "WorkersPerAttempt",
	"Node.choice_key":       "nothing: it has no meaning", "Node.whenUnmet": "Skipping",
	"Node.exec": "Service and Func", "Node.delay": "Timer", "Node.signal": "WaitEvent and Approval",
	"Prep.exec_type": "FromService", "Prep.route": "FromService", "Prep.func": "FromService", "Prep.script": "FromService",
}

func TestEveryFieldHasAMethodInGo(t *testing.T) {
	for _, of := range []any{definition.Definition{}, definition.Node{}, definition.Prep{}, flow.Post{},
		definition.EachOf{}, definition.When{}, definition.RetrySpec{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || f.Anonymous || name == "-" {
				continue
			}
			field := reflect.TypeOf(of).Name() + "." + name
			set := fieldsInGo[field]
			if set == nil {
				require.NotEmpty(t, saidOtherwise[field], "%s: which method of the builder sets it?", field)
				continue
			}
			b := define.NewGraph("g")
			set(b, b.Node("n"), b.Node("other"))
			d, err := b.Definition()
			require.NoError(t, err)
			require.True(t, isSet(d, reflect.TypeOf(of).Name(), f), "%s is not set by its method", field)
		}
	}
}

// isSet reports whether a field of a definition, or of something in one of its nodes, is set.
func isSet(d *definition.Definition, of string, f reflect.StructField) bool {
	if of == "Definition" {
		return !reflect.ValueOf(*d).FieldByIndex(f.Index).IsZero()
	}
	for _, n := range d.Nodes {
		parts := map[string]any{"Node": *n, "Prep": n.Prep, "Post": n.Post, "EachOf": n.Each, "When": n.When, "RetrySpec": n.Retry}
		if v := reflect.Indirect(reflect.ValueOf(parts[of])); v.IsValid() && !v.FieldByIndex(f.Index).IsZero() {
			return true
		}
	}
	return false
}

func TestEveryKindHasAMethodInGo(t *testing.T) {
	inside := func() *define.Builder {
		b := define.NewDag("")
		b.Node("x").Service("x")
		return b
	}
	graph := map[string]func(*define.Builder) *define.NodeBuilder{
		"executor": func(b *define.Builder) *define.NodeBuilder { return b.Node("n").Service("s") },
		"choice": func(b *define.Builder) *define.NodeBuilder {
			return b.Choice("n").Case("x", "params.n > 1").Otherwise("y")
		},
		"parallel":   func(b *define.Builder) *define.NodeBuilder { return b.Parallel("n", "a", "b").Concurrent(2) },
		"foreach":    func(b *define.Builder) *define.NodeBuilder { return b.Foreach("n", define.Param("list")).Service("s") },
		"subflow":    func(b *define.Builder) *define.NodeBuilder { return b.Subflow("n", inside()) },
		"timer":      func(b *define.Builder) *define.NodeBuilder { return b.Timer("n", time.Second) },
		"wait_event": func(b *define.Builder) *define.NodeBuilder { return b.WaitEvent("n", define.Shared("paid")) },
		"approval":   func(b *define.Builder) *define.NodeBuilder { return b.Approval("n", define.Shared("ok")) },
	}
	dag := map[string]func(*define.Builder) *define.NodeBuilder{
		"fanout": func(b *define.Builder) *define.NodeBuilder { return b.Fanout("n", define.Param("list")).Service("s") },
		"map":    func(b *define.Builder) *define.NodeBuilder { return b.Map("n").Service("s") },
		"branch": func(b *define.Builder) *define.NodeBuilder { return b.Branch("n", inside()) },
		"output": func(b *define.Builder) *define.NodeBuilder { return b.Output("n").Service("s") },
	}
	for mode, kinds := range map[flow.Mode]map[string]func(*define.Builder) *define.NodeBuilder{flow.ModeGraph: graph, flow.ModeDag: dag} {
		for kind, add := range kinds {
			t.Run(kind, func(t *testing.T) {
				b := define.NewDag("f")
				if mode == flow.ModeGraph {
					b = define.NewGraph("f")
				}
				n := add(b)
				if mode == flow.ModeGraph {
					b.Start(n)
				}
				text, err := b.JSON()
				require.NoError(t, err)
				if kind != "executor" {
					require.Contains(t, string(text), `"kind":"`+kind+`"`)
				}
				_, problems := compile.Text(text, flow.Limits{})
				require.NoError(t, problems.Err())
			})
		}
	}
	for _, kind := range kinds(t) {
		require.True(t, graph[kind] != nil || dag[kind] != nil || kind == "remote" ||
			kind == "single", "%s: which method of the builder makes it?", kind)
	}
}

// kinds lists the words for a node's kind in a text.
func kinds(t *testing.T) []string {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(definition.Schema, &schema))
	all := schema.Defs["Node"].Properties["kind"].Enum
	require.NotEmpty(t, all)
	return all
}

func TestTheOutputOfANodeIsReferredToInBothModes(t *testing.T) {
	graph := define.NewGraph("g")
	require.EqualValues(t, "$shared.a.id", graph.Node("a").Output("id"))
	require.EqualValues(t, "$shared.x", graph.Node("b").To("x").Output())
	dag := define.NewDag("d")
	require.EqualValues(t, "$deps.a.id", dag.Node("a").Output("id"))
	text, err := graph.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"a":{"post":{"output_key":"a"}}`)
	graph.Node("a.b").Output()
	_, err = graph.JSON()
	require.ErrorContains(t, err, `node "a.b": no reference reaches the key "a.b" of shared: name another one with To`)
}

func TestDurationsFinerThanAMillisecondAreRefused(t *testing.T) {
	_, err := definition.ParseYAML([]byte("mode: dag\nnodes: {a: {service: s, start_delay: 500us}}\n"))
	require.ErrorContains(t, err, `nodes.a.start_delay: "500us" is finer than a millisecond`)

	b := define.NewDag("f")
	b.Node("a").Service("s").Delay(500 * time.Microsecond)
	text, err := b.JSON()
	require.NoError(t, err)
	_, err = definition.Parse(text)
	require.ErrorContains(t, err, `nodes.a.start_delay: "500µs" is finer than a millisecond`,
		"what a builder was given is not cut to nothing")
}

func TestBuilderRefusesPartsOfAMillisecond(t *testing.T) {
	const fine = time.Second + time.Microsecond
	for name, tt := range map[string]struct {
		build func(b *define.Builder, n *define.NodeBuilder)
		want  string
	}{
		"Timer":      {func(b *define.Builder, _ *define.NodeBuilder) { b.Timer("t", fine) }, `node "t": the delay`},
		"Timeout":    {func(_ *define.Builder, n *define.NodeBuilder) { n.Timeout(fine) }, `node "a": the timeout`},
		"of a flow":  {func(b *define.Builder, _ *define.NodeBuilder) { b.Timeout(fine) }, "the timeout"},
		"Visibility": {func(_ *define.Builder, n *define.NodeBuilder) { n.Visibility(fine) }, `node "a": the visibility`},
	} {
		t.Run(name, func(t *testing.T) {
			b := define.NewGraph("f")
			tt.build(b, b.Node("a").Service("s"))
			_, err := b.Definition()
			require.EqualError(t, err, "flow: "+tt.want+", 1.000001s, is finer than a millisecond: round it")
		})
	}
}
