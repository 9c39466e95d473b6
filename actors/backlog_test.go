package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func TestABusyTaskStartsAsManyAttemptsAsEndDuringABacklog(t *testing.T) {
	for name, c := range map[string]struct {
		tasks  int64
		line   int64
		flying int
		cmd    flow.Command
		most   int
	}{
		"nobody waits":                     {0, 0, 5000, flow.Report{}, backlog},
		"there is nearly a backlog":        {1, backlog - 10, 5000, flow.Report{}, 10},
		"it has few under way":             {16, backlog, 56, flow.Report{}, maxAllowance - 56},
		"it has few, and so have others":   {64, backlog, 56, flow.Report{}, sharedAllowance/64 - 56},
		"it is one of very many":           {5000, backlog, 0, flow.Report{}, minAllowance},
		"it has many, and one ends":        {1, backlog, 5000, flow.Report{}, 1},
		"it has many, and some end":        {1, backlog, 5000, make(flow.Reports, 7), 7},
		"it was held back for long enough": {1, backlog, 5000, flow.Proceed{}, maxAllowance},
	} {
		t.Run(name, func(t *testing.T) {
			k := &task{effectPerformer: effectPerformer{m: &Member{}, inbox: &inbox{expectedJobs: c.flying}}}
			k.m.counts.ready.Store(c.line)
			k.m.counts.taskActors.Store(c.tasks)
			require.Equal(t, c.most, k.turnPart().attemptLimit(c.cmd))
		})
	}
}

func TestUnstoredAttemptsCountAsBacklogUntilStoredOrDropped(t *testing.T) {
	k := &task{effectPerformer: effectPerformer{m: &Member{}, inbox: &inbox{}}}
	k.turnPart().addUnstored(backlog)
	require.Equal(t, 1, k.turnPart().attemptLimit(flow.Report{}), "all of them are its own")
	k.turnPart().addUnstored(-backlog)
	require.Equal(t, backlog, k.turnPart().attemptLimit(flow.Report{}))
	require.Zero(t, k.m.counts.unstoredAttempts.Load())
}
