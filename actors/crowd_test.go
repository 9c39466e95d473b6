package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestATaskWithManyAttemptsUnderWayBeginsAsManyAsEndWhileOthersWait(t *testing.T) {
	for name, c := range map[string]struct {
		line   int64
		flying int
		cmd    flow.Command
		most   int
	}{
		"nobody waits":                     {0, 5000, flow.Report{}, crowd},
		"there is nearly a crowd":          {crowd - 10, 5000, flow.Report{}, 10},
		"it has few under way":             {crowd, 56, flow.Report{}, ownCrowd - 56},
		"it has many, and one ends":        {crowd, 5000, flow.Report{}, 1},
		"it has many, and some end":        {crowd, 5000, make(flow.Reports, 7), 7},
		"it was held back for long enough": {crowd, 5000, flow.Proceed{}, ownCrowd},
	} {
		t.Run(name, func(t *testing.T) {
			k := &task{hands: hands{m: &Member{}, basket: &basket{flying: c.flying}}}
			k.m.ready.Store(c.line)
			require.Equal(t, c.most, k.most(c.cmd))
		})
	}
}

func TestAttemptsThatWaitForTheStoreAreACrowdAndStopBeingOneWhenTheyAreStoredOrForgotten(t *testing.T) {
	k := &task{hands: hands{m: &Member{}, basket: &basket{}}}
	k.come(crowd)
	require.Equal(t, 1, k.most(flow.Report{}), "all of them are its own")
	k.come(-crowd)
	require.Equal(t, crowd, k.most(flow.Report{}))
	require.Zero(t, k.m.coming.Load())
}
