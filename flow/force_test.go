package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// The result of the interrupted finally is unknown, so the task might have failed.
func TestATaskWhoseFinallyIsCutShortByForceIsNotCompleted(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","finally":"last","nodes":{"a":{"service":"echo"},"last":{"kind":"timer","params":{"delay_ms":1000}}}}`))
	tb.tell(flow.Start{Version: "v"})
	tb.tell(flow.Report{Address: tb.open()[0], Output: []byte("1")})
	require.Equal(t, flow.TaskCompleted, tb.state.Closing.Status)
	_, err := tb.do(flow.Cancel{Force: true})
	require.NoError(t, err)
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
	require.Equal(t, "canceled before everything was undone", tb.state.Error)
}

func TestASecondStartOfTheClosingReplacesTheFirst(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","finally":"last","nodes":{"a":{"service":"echo"},"last":{"kind":"timer","params":{"delay_ms":1000}}}}`))
	tb.tell(flow.Start{Version: "v"})
	tb.tell(flow.Report{Address: tb.open()[0], Output: []byte("1")})
	h := flow.NewHistory("task-1", tb.state.Plan)
	var entered flow.Event
	for _, e := range tb.events {
		if h.Apply(&e); e.Type == flow.TaskClosing {
			h.Apply(&e)
		}
		if e.Type == flow.StepEntered {
			entered = e
		}
	}
	h.Apply(&flow.Event{Type: flow.TaskRetried})
	h.Apply(&entered)
	require.Nil(t, h.State.Closing)
	require.Nil(t, h.State.Scope(entered.Scope))
}
