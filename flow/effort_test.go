package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// longList is some 900 KB of numbers.
var longList = json.RawMessage(`{"l":[` + strings.TrimSuffix(strings.Repeat("12345,", 150_000), ",") + `]}`)

func TestAConditionThatTakesTooMuchFailsItsStep(t *testing.T) {
	in := strings.TrimSuffix(strings.Repeat(`{"in":[7,"$params.l"]},`, 20), ",")
	tb := newTable(t, planOf(t, `{"start":"a","on_error":"fail","nodes":{"a":{"kind":"choice","choice_cases":[{"action":"x","expr":{"or":[`+in+`]}}]}}}`))
	_, err := tb.do(Start{Params: longList})
	require.NoError(t, err)
	require.Equal(t, TaskFailed, tb.state.Status)
	require.Equal(t, "choice_cases[0]: it takes more than the limit of 3,000,000 units of work: work on less data, or leave this to a worker", tb.state.Error)
}

func TestTheCasesOfAChoiceHaveOneBudget(t *testing.T) {
	var cases []string
	for i := range 20 {
		cases = append(cases, fmt.Sprintf(`{"action":"x","expr":"params.l.exists(x, x == %d)"}`, i))
	}
	tb := newTable(t, planOf(t, `{"start":"a","on_error":"fail","nodes":{"a":{"kind":"choice","choice_cases":[`+strings.Join(cases, ",")+`]}}}`))
	_, err := tb.do(Start{Params: longList})
	require.NoError(t, err)
	require.Contains(t, tb.state.Error, "it takes more than the limit of 3,000,000 units of work")
}

// TestADecisionIsCutWhenItTakesMuchEffort runs a dag of conditions, none of which takes too much by itself.
func TestADecisionIsCutWhenItTakesMuchEffort(t *testing.T) {
	var nodes []string
	for i := range 12 {
		nodes = append(nodes, fmt.Sprintf(`"n%d":{"service":"s","when":{"expr":"run.l.size() < %d"}}`, i, i))
	}
	s := NewState("task-1", planOf(t, `{"nodes":{`+strings.Join(nodes, ",")+`}}`))
	decisions, effort := 0, 0
	for c := Command(Start{Params: longList}); c != nil; decisions++ {
		d, err := Decide(s, c, Env{Now: epoch})
		require.NoError(t, err)
		require.Less(t, d.Effort, 2*maxEffort)
		effort += d.Effort
		c = d.More
	}
	require.Greater(t, effort, 12*200_000)
	require.GreaterOrEqual(t, decisions, effort/(2*maxEffort))
	require.Greater(t, decisions, 1)
	require.Equal(t, TaskCompleted, s.Status)
}
