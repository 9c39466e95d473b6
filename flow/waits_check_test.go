package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// sameWaits compares the waits of a state with those of its snapshot, and with the result of
// Waiting.
func sameWaits(t require.TestingT, s *flow.State) {
	if s.Status == "" {
		return
	}
	kinds, first := s.Waits()
	var told flow.WaitKinds
	for _, w := range flow.Waiting(s) {
		told |= flow.WaitKindOf(map[string]string{"approval": "approval", "signal": "signal",
			"timer": "timer", "manual": "manual"}[w.For])
	}
	require.Equal(t, told.Words(), kinds.Words())
	require.Equal(t, kinds == 0, first == nil)
	again, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(s).Bytes(), s.Plan)
	require.True(t, ok)
	kindsAgain, firstAgain := again.Waits()
	require.Equal(t, kinds, kindsAgain)
	require.Equal(t, first, firstAgain)
}

func TestATaskShowsItsWaitsUntilTheyEnd(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `mode: dag
nodes:
  ask: {kind: approval, params: {approval_key: go}}
  paid: {kind: wait_event, params: {signal_key: paid}}
  nap: {kind: timer, params: {delay_ms: 9000}}
  work: {service: s}`))
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	kinds, first := tb.state.Waits()
	require.Equal(t, []string{"approval", "signal", "timer"}, kinds.Words())
	require.Equal(t, &flow.Awaited{Kind: "approval", Node: "ask", Visit: 1, Key: "go", Since: first.Since}, first)
	for key, want := range map[string][]string{"paid": {"approval", "timer"}} {
		_, err = tb.do(flow.Signal{Key: key, Value: []byte("1")})
		require.NoError(t, err)
		kinds, same := tb.state.Waits()
		require.Equal(t, want, kinds.Words())
		require.Same(t, first, same, "the first one is the same")
	}
	_, err = tb.do(flow.Signal{Key: "go", Value: []byte("1")})
	require.NoError(t, err)
	kinds, first = tb.state.Waits()
	require.Equal(t, flow.WaitTimer, kinds)
	require.Equal(t, "nap", first.Node)
	_, err = tb.do(flow.Cancel{Force: true})
	require.NoError(t, err)
	kinds, first = tb.state.Waits()
	require.Zero(t, kinds)
	require.Nil(t, first)
}
