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

// wide returns a dag of independent nodes.
func wide(nodes int) string {
	var list []string
	for i := range nodes {
		list = append(list, fmt.Sprintf(`"n%d":{"service":"echo"}`, i))
	}
	return `{"mode":"dag","nodes":{` + strings.Join(list, ",") + `}}`
}

func TestADecisionBeginsNoMoreNodesThanItsLimit(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, wide(10)))
	tb.env.Most = 3
	d, err := tb.decide("", flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Len(t, jobsOf(d), 3)
	require.Equal(t, 3, d.Started)
	require.Equal(t, flow.Proceed{}, d.More, "the others are not forgotten")

	tb.env.Most = 1
	d, err = tb.decide("", tb.hands(jobsOf(d)[0]))
	require.NoError(t, err)
	require.Len(t, jobsOf(d), 1, "as many as end")
	require.Equal(t, flow.Proceed{}, d.More)

	tb.env.Most = 0
	d, err = tb.decide("", d.More)
	require.NoError(t, err)
	require.Len(t, jobsOf(d), 6)
	require.Nil(t, d.More)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestAGraphIgnoresTheLimitOfAttempts(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t,
		`{"start":"a","nodes":{"a":{"service":"echo"},"b":{"service":"echo"}},"edges":[{"from":"a","action":"default","to":"b"}]}`))
	tb.env.Most = 1
	d, err := tb.decide("", flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Nil(t, d.More)
	tb.work()
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
}

func TestAnEndedTaskHasNoContinuation(t *testing.T) {
	tb := newTable(t, flowtest.Plan(t, strings.Replace(wide(4), `"mode":"dag"`, `"mode":"dag","on_error":"fail_fast"`, 1)))
	tb.env.Most = 2
	d, err := tb.decide("", flow.Start{Version: "v", Params: json.RawMessage(`{}`)})
	require.NoError(t, err)
	jobs := jobsOf(d)
	tb.env.Most = 1
	d, err = tb.decide("", flow.Reports{tb.hands(jobs[0]), {Address: jobs[1].Address, Error: "no", Fatal: true}})
	require.NoError(t, err)
	require.Equal(t, flow.TaskFailed, tb.state.Status)
	require.Equal(t, 1, d.Started, "the first one that ends had another one begin")
	require.Nil(t, d.More)
}
