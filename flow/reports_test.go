package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

const foreachInWindow = `
start: a
nodes: {a: {kind: foreach, service: s, parallel_mode: concurrent, max_parallel: 3, prep: {input_key: $params.list}}}
`

func typesOf(events []flow.Event) (types []flow.EventType) {
	for i := range events {
		types = append(types, events[i].Type)
	}
	return types
}

func TestSeveralReportsAreOneDecisionAndFillPlacesOnce(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, foreachInWindow))
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list":[1,2,3,4,5,6]}`)})
	require.NoError(t, err)
	var all flow.Reports
	for _, a := range tb.open() {
		all = append(all, tb.completion(a))
	}
	d, err := tb.do(all)
	require.NoError(t, err)
	require.Equal(t, []flow.EventType{flow.AttemptEnded, flow.AttemptEnded, flow.AttemptEnded, flow.AttemptsDispatched}, typesOf(d.Events))
	require.Equal(t, 3, d.Events[3].Total)
}

func TestARefusedReportRefusesOnlyItself(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, foreachInWindow))
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list":[1,2,3]}`)})
	require.NoError(t, err)
	open := tb.open()
	wrong := tb.completion(open[1])
	wrong.Token = "of nobody"
	d, err := tb.do(flow.Reports{tb.completion(open[0]), wrong, tb.completion(open[0]), tb.completion(open[2])})
	require.NoError(t, err)
	require.Equal(t, []flow.EventType{flow.AttemptEnded, flow.AttemptEnded}, typesOf(d.Events))
	require.Equal(t, []flow.Address{open[1]}, tb.open())
}

func TestReportsInADecisionAreBounded(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, foreachInWindow))
	_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list":[1]}`)})
	require.NoError(t, err)
	_, err = tb.do(make(flow.Reports, flow.MaxReports+1))
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
}
