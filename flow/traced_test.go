package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

const above = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceHeadersAreParsedAsStandardized(t *testing.T) {
	for _, good := range []string{above, "01" + above[2:], "cc" + above[2:] + "-what-the-future-brings"} {
		require.Equal(t, &flow.Traced{Parent: above, State: "a=1"}, flow.ReadTraced(good, " a=1 "), good)
	}
	require.True(t, flow.ReadTraced(above[:53]+"00", "").Unsampled)
	require.False(t, flow.ReadTraced(above[:53]+"ff", "").Unsampled)
	for _, bad := range []string{"", "00", above[:54], above + "-more", above + "0",
		"01" + above[2:] + "0", "ff" + above[2:], strings.ToUpper(above), strings.ReplaceAll(above, "-", "_"),
		"00-" + strings.Repeat("0", 32) + above[35:], above[:36] + strings.Repeat("0", 16) + "-01",
		"0g" + above[2:], above[:53] + "0x", above[:10] + "é" + above[12:]} {
		require.Nil(t, flow.ReadTraced(bad, "a=1"), bad)
	}
	for _, bad := range []string{strings.Repeat("a", 513), "a=\x00", "a=ä"} {
		require.Equal(t, &flow.Traced{Parent: above}, flow.ReadTraced(above, bad), "a state that cannot be passed on is left out alone")
	}
}

func TestTracedSurvivesTheJournalAndTheSnapshot(t *testing.T) {
	traced := &flow.Traced{Parent: above, State: `a="1"`, Link: true, Unsampled: true}
	row := flow.AppendEvents(nil, []flow.Event{{Type: flow.TaskCreated, At: 1, Traced: traced, Request: "r"}})
	events, err := flow.DecodeEvents(row)
	require.NoError(t, err)
	require.Equal(t, traced, events[0].Traced)
	plan := &flow.Plan{Root: &flow.PlanScope{}}
	s := flow.NewState("t", plan)
	require.NoError(t, flow.Fold(s, row))
	again, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(s).Bytes(), plan)
	require.True(t, ok)
	require.Equal(t, traced, again.Traced)
}
