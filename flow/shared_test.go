package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// TestSignalsCannotFillSharedWithoutEnd signals a task that waits for another key.
func TestSignalsCannotFillSharedWithoutEnd(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, "start: w\nnodes: {w: {kind: approval, params: {approval_key: $shared.go}}}"))
	tb.env.Limits = flow.Limits{Shared: 1_000}
	_, err := tb.do(flow.Start{})
	require.NoError(t, err)
	signal := func(key string, bytes int) error {
		_, err := tb.do(flow.Signal{Key: key, Value: json.RawMessage(`"` + strings.Repeat("x", bytes-2) + `"`)})
		return err
	}
	for i := range 9 {
		require.NoError(t, signal(fmt.Sprintf("key%d", i), 100))
	}
	err = signal("key9", 100)
	require.Equal(t, flow.Limit, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "shared would have 1040 bytes, more than the limit of 1000")
	require.NoError(t, signal("key1", 10), "a shorter value makes room …")
	require.NoError(t, signal("key9", 100), "… for another key")
	require.NoError(t, signal("key1", 500), "a key that is there may have any value")
	require.NoError(t, signal("go", 500), "what a step waits for is never refused")
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestABlankBeforeASignalsValueMakesNoDifference(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, `{"start":"w","nodes":{"w":{"kind":"approval","params":{"approval_key":"$shared.go"}},
		"d":{"kind":"subflow","prep":{"input_key":"$shared.go"},"flow":{"mode":"dag","nodes":{"x":{"service":"echo"}}}}},
		"edges":[{"from":"w","action":"default","to":"d"}]}`))
	_, err := tb.do(flow.Start{Version: "v"})
	require.NoError(t, err)
	_, err = tb.do(flow.Signal{Key: "go", Value: json.RawMessage(` {"x" : [1 ]}`)})
	require.NoError(t, err)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}
