package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestOrdersGetARequestIDIfARepetitionHadASecondEffect(t *testing.T) {
	for _, cmd := range travel {
		o := Order{Task: "t", Command: cmd}.Named()
		switch cmd.(type) {
		case flow.Signal, flow.Answer, flow.Append, flow.Pause, flow.Resume, flow.RetryTask:
			require.NotEmpty(t, o.Request, "%T", cmd)
			require.Equal(t, o, o.Named(), "sent again it is the same order")
			require.NotEqual(t, o.Request, Order{Task: "t", Command: cmd}.Named().Request)
		default:
			require.Empty(t, o.Request, "%T", cmd)
		}
		require.Equal(t, "mine", Order{Request: "mine", Command: cmd}.Named().Request)
	}
}

func TestTheIDOfATaskIsKnownBeforeItsStart(t *testing.T) {
	id := func(n NewTask, flowID string) string {
		got, err := n.TaskID(flowID)
		require.NoError(t, err)
		return got
	}
	keyed := id(NewTask{VersionID: "v1", Key: "k"}, "flow")
	require.Equal(t, keyed, id(NewTask{VersionID: "v2", Key: "k"}, "flow"), "whatever version is the newest")
	require.NotEqual(t, keyed, id(NewTask{Key: "other"}, "flow"))
	require.NotEqual(t, keyed, id(NewTask{Key: "k"}, "other"))
	own := "6fa459ea-ee8a-3ca4-894e-db77e160355e"
	require.Equal(t, own, id(NewTask{ID: own, Key: "k"}, "flow"))
	require.NotEqual(t, id(NewTask{}, "flow"), id(NewTask{}, "flow"))
	made := id(NewTask{}, "flow")
	require.Equal(t, made, id(NewTask{Task: made}, "flow"), "asked again it is the same task")
	_, err := (&NewTask{ID: "mine"}).TaskID("flow")
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
}
