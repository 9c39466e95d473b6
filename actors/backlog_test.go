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
		"nobody waits":                     {0, 5000, flow.Report{}, backlog},
		"there is nearly a backlog":        {backlog - 10, 5000, flow.Report{}, 10},
		"it has few under way":             {backlog, 56, flow.Report{}, ownBacklog - 56},
		"it has many, and one ends":        {backlog, 5000, flow.Report{}, 1},
		"it has many, and some end":        {backlog, 5000, make(flow.Reports, 7), 7},
		"it was held back for long enough": {backlog, 5000, flow.Proceed{}, ownBacklog},
	} {
		t.Run(name, func(t *testing.T) {
			k := &task{hands: hands{m: &Member{}, basket: &basket{flying: c.flying}}}
			k.m.ready.Store(c.line)
			require.Equal(t, c.most, k.most(c.cmd))
		})
	}
}

func TestAttemptsThatWaitForTheStoreAreABacklogAndStopBeingOneWhenTheyAreStoredOrForgotten(t *testing.T) {
	k := &task{hands: hands{m: &Member{}, basket: &basket{}}}
	k.come(backlog)
	require.Equal(t, 1, k.most(flow.Report{}), "all of them are its own")
	k.come(-backlog)
	require.Equal(t, backlog, k.most(flow.Report{}))
	require.Zero(t, k.m.coming.Load())
}
