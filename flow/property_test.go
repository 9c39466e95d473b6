package flow

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPromisesHoldForAnyFlow drives random flows by random commands. The table holds the promises
// after each of them; in the end nothing may be stuck.
func TestPromisesHoldForAnyFlow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tb := newTable(rt, planOf(rt, randomDefinition(rt)))
		tb.env.Limits = Limits{Steps: 60, Events: 20, Value: 1_000, Deliveries: 3, Depth: 2, Units: 6}
		_, err := tb.ask("r0", Start{Version: "v", Params: json.RawMessage(randomParams)})
		require.NoError(rt, err)
		for i := range rapid.IntRange(0, 30).Draw(rt, "commands") {
			tb.happen(rt, i)
		}
		tb.crash("last")
		require.True(rt, tb.drain(), "the task is stuck: %s\nthe last events: %s", snapshotOf(rt, tb.state), tb.rows[max(0, len(tb.rows)-5):])
		require.NoError(rt, orderedEvents(tb.events))
		tb.wait(10_000)
		tb.runs()
	})
}
