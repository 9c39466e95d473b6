package flow_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const detailed = `
mode: dag
nodes:
  a: {service: svc, retry: {max_attempts: 2}}
`

func TestDetailsOfAnErrorAreThoseOfTheLastAttempt(t *testing.T) {
	tb := defers(t, detailed)
	at := first()
	tb.must(t, flow.Report{Address: at, Error: "it broke", Details: json.RawMessage(` { "k": 1 } `)})
	units := flow.NewUnitList(flow.Address{Node: "a", Visit: 1})
	units.From(tb.state)
	require.Equal(t, `{"k":1}`, string(units.At(0).Details))
	tb.wait(60_000)
	at.Attempt = 2
	tb.must(t, flow.Report{Address: at, Error: "again", Details: json.RawMessage(`[2]`)})
	require.Equal(t, "[2]", string(tb.state.NodeView(0).Details))
	runs := tb.runs()
	require.Equal(t, []string{`{"k":1}`, `[2]`}, []string{string(runs[0].Details), string(runs[1].Details)})
}

func TestDroppedDetailsAreMentionedInTheError(t *testing.T) {
	for details, says := range map[string]string{
		`null`:                                  "it broke",
		`{`:                                     "it broke (its details are no JSON that can be kept)",
		`"` + strings.Repeat("x", 70_000) + `"`: "it broke (its details have 70002 bytes, more than the 65536 that are kept)",
		strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000): "it broke (its details are no JSON that can be kept)",
	} {
		tb := defers(t, "mode: dag\nnodes:\n  a: {service: svc}\n")
		tb.must(t, flow.Report{Address: first(), Error: "it broke", Details: json.RawMessage(details)})
		require.Equal(t, says, tb.rootNode("a").Rare().Error)
		require.Nil(t, tb.rootNode("a").Rare().Details)
	}
}

func TestMetricsAreKeptWithTheirAttemptIfTheyAreAList(t *testing.T) {
	tb := defers(t, detailed)
	at := first()
	tb.must(t, flow.Report{Address: at, Error: "it broke", Metrics: json.RawMessage(` [{"name": "rows", "count": 1}] `)})
	tb.wait(60_000)
	at.Attempt = 2
	tb.must(t, flow.Report{Address: at, Output: json.RawMessage(`1`), Metrics: json.RawMessage(`{"name": "rows"}`)})
	runs := tb.runs()
	require.Equal(t, []string{`[{"name":"rows","count":1}]`, ""}, []string{string(runs[0].Metrics), string(runs[1].Metrics)})
}
