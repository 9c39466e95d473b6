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

// longList is a list of numbers of about 900 KB.
var longList = json.RawMessage(`{"l":[` + strings.TrimSuffix(strings.Repeat("12345,", 150_000), ",") + `]}`)

func TestAConditionThatTakesTooMuchFailsItsStep(t *testing.T) {
	in := strings.TrimSuffix(strings.Repeat(`{"in":[7,"$params.l"]},`, 20), ",")
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","on_error":"fail","nodes":{"a":{"kind":"choice","choice_cases":[{"action":"x","expr":{"or":[`+
			in+`]}}]}}}`))
	_, err := tb.do(flow.Start{Params: longList})
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Regexp(t, `^a: choice_cases\[0\]: expression {"or":.{70,80}…: it takes more than `+
		`the limit of 3,000,000 units of work: work on less data, or leave this to a worker$`, tb.state.Error)
}

func TestTheCasesOfAChoiceHaveOneBudget(t *testing.T) {
	var cases []string
	for i := range 20 {
		cases = append(cases, fmt.Sprintf(`{"action":"x","expr":"params.l.exists(x, x == %d)"}`, i))
	}
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","on_error":"fail","nodes":{"a":{"kind":"choice","choice_cases":[`+
			strings.Join(cases, ",")+`]}}}`))
	_, err := tb.do(flow.Start{Params: longList})
	require.NoError(t, err)
	require.Contains(t, tb.state.Error, "it takes more than the limit of 3,000,000 units of work")
}

// TestADecisionIsCutWhenItTakesMuchEffort runs a dag of conditions, each of which is within the
// budget.
func TestADecisionIsCutWhenItTakesMuchEffort(t *testing.T) {
	var nodes []string
	for i := range 12 {
		nodes = append(nodes, fmt.Sprintf(`"n%d":{"service":"s","when":{"expr":"run.l.size() < %d"}}`, i, i))
	}
	s := flow.NewState("task-1", flowtest.Plan(t, `{"nodes":{`+strings.Join(nodes, ",")+`}}`))
	decisions, effort := 0, 0
	for c := flow.Command(flow.Start{Params: longList}); c != nil; decisions++ {
		d, err := flow.Decide(s, c, flow.Env{Now: epoch})
		require.NoError(t, err)
		require.Less(t, d.Effort, 2*flow.MaxEffort)
		effort += d.Effort
		c = d.More
	}
	require.Greater(t, effort, 12*200_000)
	require.GreaterOrEqual(t, decisions, effort/(2*flow.MaxEffort))
	require.Greater(t, decisions, 1)
	require.Equal(t, flow.TaskCompleted, s.Status)
}
