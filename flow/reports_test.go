package flow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const foreachInWindow = `
start: a
nodes: {a: {kind: foreach, service: s, parallel_mode: concurrent, max_parallel: 3, prep: {input_key: $params.list}}}
`

func typesOf(events []Event) (types []EventType) {
	for i := range events {
		types = append(types, events[i].Type)
	}
	return types
}

func TestReportsAreOneDecisionThatFillsTheirPlacesOnce(t *testing.T) {
	tb := newTable(t, planOf(t, foreachInWindow))
	_, err := tb.do(Start{Params: json.RawMessage(`{"list":[1,2,3,4,5,6]}`)})
	require.NoError(t, err)
	var all Reports
	for _, a := range tb.open() {
		all = append(all, tb.completion(a))
	}
	d, err := tb.do(all)
	require.NoError(t, err)
	require.Equal(t, []EventType{AttemptEnded, AttemptEnded, AttemptEnded, AttemptsStarted}, typesOf(d.Events))
	require.Equal(t, 3, d.Events[3].Total)
}

func TestARefusedReportRefusesOnlyItself(t *testing.T) {
	tb := newTable(t, planOf(t, foreachInWindow))
	_, err := tb.do(Start{Params: json.RawMessage(`{"list":[1,2,3]}`)})
	require.NoError(t, err)
	open := tb.open()
	wrong := tb.completion(open[1])
	wrong.Token = "of nobody"
	d, err := tb.do(Reports{tb.completion(open[0]), wrong, tb.completion(open[0]), tb.completion(open[2])})
	require.NoError(t, err)
	require.Equal(t, []EventType{AttemptEnded, AttemptEnded}, typesOf(d.Events))
	require.Equal(t, []Address{open[1]}, tb.open())
}

func TestReportsInADecisionAreBounded(t *testing.T) {
	tb := newTable(t, planOf(t, foreachInWindow))
	_, err := tb.do(Start{Params: json.RawMessage(`{"list":[1]}`)})
	require.NoError(t, err)
	_, err = tb.do(make(Reports, MaxReports+1))
	require.Equal(t, Limit, KindOf(err))
}
