package actors_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
)

func TestAStartThatIsRefusedLeavesNothingBehind(t *testing.T) {
	th := start(t, actors.Config{IdleAfter: 20 * time.Millisecond})
	version := th.publish(t, untilApproved)
	_, _, err := th.StartTask(t.Context(), actors.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`[1]`)})
	require.Equal(t, flow.Invalid, flow.KindOf(err))
	id, created, err := th.StartTask(t.Context(), actors.NewTask{VersionID: version, Key: "k", Params: json.RawMessage(`{"n":1}`)})
	require.NoError(t, err)
	require.True(t, created)
	row, err := th.store.Task(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(row.Params))
}
