package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestAHistoryHasTheStartOfAProgram(t *testing.T) {
	plan := flowtest.Plan(t, `{"profile":"ork","nodes":{"a":{"exec":{"type":"process","command":"ls"},"retry":{"max_attempts":2}}}}`)
	state, now := flow.NewState("t", plan), int64(0)
	told := flow.NewHistory("t", plan)
	do := func(c flow.Command) {
		now += 1000
		d, err := flow.Decide(state, c, flow.Env{Now: now, Member: "m"})
		require.NoError(t, err)
		for i := range d.Events {
			told.Apply(&d.Events[i])
		}
	}
	do(flow.Start{Version: "v"})
	a := flow.Address{Node: "a", Visit: 1, Attempt: 1}
	require.Equal(t, []int64{1000, 0}, []int64{told.Runs[0].StartedAt, told.Runs[0].BegunAt}, "it waits for its place")
	do(flow.Begin{Address: a, Carrier: "m"})
	require.Equal(t, []int64{1000, 2000}, []int64{told.Runs[0].StartedAt, told.Runs[0].BegunAt})
	do(flow.Report{Address: a, Error: "no"})
	require.Equal(t, []int64{2000, 3000}, []int64{told.Runs[0].BegunAt, told.Runs[0].EndedAt})
	require.Zero(t, told.Runs[1].BegunAt, "the next attempt has yet to begin")
}
