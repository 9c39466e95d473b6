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

// bench runs a task of many units without the checks of table, whose cost grows with the state.
type bench struct {
	t     *testing.T
	state *flow.State
	env   flow.Env
	jobs  []flow.Job
	most  int // maximum events of one decision
}

func (b *bench) do(c flow.Command) {
	for c != nil {
		d, err := flow.Decide(b.state, c, b.env)
		require.NoError(b.t, err)
		b.most, c = max(b.most, len(d.Events)), d.More
		for _, e := range d.Effects {
			if e, ok := e.(flow.Dispatch); ok {
				b.jobs = append(b.jobs, e.Job)
			}
		}
	}
}

// work reports on every job, and returns their number.
func (b *bench) work(fails func(unit int) bool) (n int) {
	for ; len(b.jobs) > 0; n++ {
		job := b.jobs[0]
		b.jobs = b.jobs[1:]
		r := flow.Report{Address: job.Address, Output: json.RawMessage(fmt.Sprint(job.Unit))}
		if fails(job.Unit) {
			r.Error = "broken"
		}
		b.do(r)
	}
	return n
}

func listOfNumbers(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, ",%d", i)
	}
	return "[" + text.String()[1:] + "]"
}

func TestOnlyFailedUnitsRunAgain(t *testing.T) {
	const units = 10_000
	for name, definition := range map[string]string{
		"fanout": "mode: dag\nnodes: {f: {service: s, each: {items: $run.list, on_error: collect}}}",
		"foreach": "start: f\nnodes: {f: {kind: foreach, service: s, parallel_mode: concurrent, " +
			"prep: {input_key: $params.list}, post: {output_key: f}}}",
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, state: flow.NewState("t", flowtest.Plan(t, definition)),
				env: flow.Env{Now: epoch, Member: "m", Limits: flow.Limits{Events: 100}}}
			b.do(flow.Start{Params: json.RawMessage(`{"list":` + listOfNumbers(units) + `}`)})
			require.Equal(t, units, b.work(func(unit int) bool { return unit == 77 }))
			require.Equal(t, flow.TaskFailed, b.state.Status)

			b.do(flow.RetryTask{})
			require.Equal(t, 1, b.work(func(int) bool { return false }))
			require.Equal(t, flow.TaskCompleted, b.state.Status)
			require.JSONEq(t, `{"f":`+listOfNumbers(units)+`}`, string(b.state.Result()))
		})
	}
}

func TestAllUnitsRunAgainAfterTheirCombinedOutputFailed(t *testing.T) {
	for name, definition := range map[string]string{
		"fanout":  "mode: dag\nnodes: {f: {service: s, each: {items: $run.list, on_error: collect}}}",
		"foreach": "start: f\nnodes: {f: {kind: foreach, service: s, prep: {input_key: $params.list}, post: {output_key: f}}}",
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, flowtest.Plan(t, definition))
			tb.env.Limits = flow.Limits{Levels: 3}
			work := func(output string) (n int) {
				for len(tb.open()) > 0 {
					_, err := tb.do(flow.Report{Address: tb.open()[0], Output: json.RawMessage(output)})
					require.NoError(t, err)
					n++
				}
				return n
			}
			_, err := tb.do(flow.Start{Params: json.RawMessage(`{"list": [1, 2]}`)})
			require.NoError(t, err)
			require.Equal(t, 2, work("[[[1]]]"))
			require.Equal(t, flow.TaskFailed, tb.state.Status)

			_, err = tb.do(flow.RetryTask{})
			require.NoError(t, err)
			require.Equal(t, 2, work("1"))
			require.Equal(t, flow.TaskCompleted, tb.state.Status)
		})
	}
}

func TestScatteredUnitsAreStartedAgainInBoundedDecisions(t *testing.T) {
	plan := flowtest.Plan(t, "mode: dag\nnodes: {f: {service: s, each: {items: $run.list, on_error: collect}}}")
	b := &bench{t: t, state: flow.NewState("t", plan), env: flow.Env{Now: epoch, Member: "m"}}
	b.do(flow.Start{Params: json.RawMessage(`{"list":` + listOfNumbers(10_000) + `}`)})
	b.work(func(unit int) bool { return unit%2 == 1 })
	b.do(flow.RetryTask{})
	require.LessOrEqual(t, b.most, flow.DefaultLimits.Events)
	require.Len(t, b.jobs, flow.DefaultLimits.Window)
	require.Equal(t, 5_000, b.work(func(int) bool { return false }))
	require.Equal(t, flow.TaskCompleted, b.state.Status)
}
