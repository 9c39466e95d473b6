package stats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/stats"
)

func TestQuantilesAreDurationsThatWereMeasured(t *testing.T) {
	require.Equal(t, stats.Times{}, stats.TimesOf(nil))
	require.Equal(t, stats.Times{P50: 7, P95: 7, P99: 7, Max: 7}, stats.TimesOf([]int64{7}))
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	require.Equal(t, stats.Times{P50: 50, P95: 95, P99: 99, Max: 100}, stats.TimesOf(hundred))
}

func read(id string, events ...flow.Event) *stats.Task {
	task := stats.NewTask(id)
	for i := range events {
		task.Event(&events[i])
	}
	return task
}

func entered(ms int64, scope, node string, visit int) flow.Event {
	return flow.Event{Type: flow.StepEntered, At: ms, Scope: scope, Node: node, Visit: visit, Total: 1}
}

func TestNodesAreCountedBesideEachOtherInAllVisitsOfTheirScope(t *testing.T) {
	created, over := flow.Event{Type: flow.TaskCreated, At: 1}, flow.Event{Type: flow.TaskEnded, At: 101, Status: "failed"}
	s := stats.New()
	require.False(t, s.Add(read("on", created)), "what goes on has no duration")
	require.True(t, s.Add(read("t1", created,
		entered(1, "", "sub", 1), entered(2, "sub#1", "pay", 1),
		flow.Event{Type: flow.AttemptsStarted, At: 2, Scope: "sub#1", Node: "pay", Visit: 1, Attempt: 1, Total: 3},
		flow.Event{Type: flow.AttemptsStarted, At: 5, Scope: "sub#1", Node: "pay", Visit: 1, Attempt: 2, Total: 2},
		flow.Event{Type: flow.StepEnded, At: 12, Scope: "sub#1", Node: "pay", Visit: 1},
		entered(20, "sub#2", "pay", 1), flow.Event{Type: flow.StepEnded, At: 60, Scope: "sub#2", Node: "pay", Visit: 1, Error: "no", Attempt: 1, Due: 99},
		flow.Event{Type: flow.StepEnded, At: 61, Node: "after", Status: "skipped"},
		entered(62, "~2", "refund", 1), over)))
	require.True(t, s.Add(read("t2", created, entered(1, "", "sub", 1), over)))
	n, times := s.Tasks()
	require.Equal(t, 2, n)
	require.Equal(t, int64(100), times.P50)
	require.Equal(t, []stats.Node{
		{Key: "sub", Visits: 2},
		{Scope: "sub", Key: "pay", Visits: 2, Failures: 1, Retries: 3, Times: stats.Times{P50: 10, P95: 40, P99: 40, Max: 40}, LastFailed: "t1"},
		{Scope: "~", Key: "refund", Visits: 1},
	}, s.Nodes())
}
