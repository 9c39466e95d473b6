package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestANoteOfALostClaimChangesNothing(t *testing.T) {
	at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	s := flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"s"}}}`))
	now := int64(0)
	decide := func(c flow.Command) (flow.Decision, error) {
		now++
		return flow.Decide(s, c, flow.Env{Now: now})
	}
	do := func(c flow.Command) {
		_, err := decide(c)
		require.NoError(t, err)
	}
	refused := func(token string) {
		d, err := decide(flow.Note{Address: at, Token: token, Text: "running"})
		require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
		require.Empty(t, d.Events)
		require.Empty(t, s.Live(at).Note)
	}
	do(flow.Start{Version: "v"})
	do(flow.Claim{Address: at, Worker: "first", Token: "1", Until: 100})
	do(flow.GiveBack{Address: at, Token: "1"})
	refused("1")
	do(flow.Claim{Address: at, Worker: "second", Token: "2", Until: 100})
	refused("1")

	do(flow.Note{Address: at, Token: "2", Text: "drying"})
	require.Equal(t, "drying", s.Live(at).Note)
	do(flow.Note{Address: at, Text: "dried"})
	require.Equal(t, "dried", s.Live(at).Note, "who sends no token is believed")
}
