package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// bench drives a task of many units without the table's promises, which cost as much as the state is large.
type bench struct {
	t     *testing.T
	state *State
	env   Env
	jobs  []Job
	most  int // events of one decision
}

func (b *bench) do(c Command) {
	for c != nil {
		d, err := Decide(b.state, c, b.env)
		require.NoError(b.t, err)
		b.most, c = max(b.most, len(d.Events)), d.More
		for _, e := range d.Effects {
			if e, ok := e.(Dispatch); ok {
				b.jobs = append(b.jobs, e.Job)
			}
		}
	}
}

// work reports about every job, and returns how many there were.
func (b *bench) work(fails func(unit int) bool) (n int) {
	for ; len(b.jobs) > 0; n++ {
		job := b.jobs[0]
		b.jobs = b.jobs[1:]
		r := Report{Address: job.Address, Output: json.RawMessage(fmt.Sprint(job.Unit))}
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

func TestOfManyUnitsOnlyThoseThatFailedRunAgain(t *testing.T) {
	const units = 10_000
	for name, definition := range map[string]string{
		"fanout":  "mode: dag\nnodes: {f: {service: s, each: {items: $run.list, on_error: collect}}}",
		"foreach": "start: f\nnodes: {f: {kind: foreach, service: s, parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: f}}}",
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, state: NewState("t", planOf(t, definition)), env: Env{Now: epoch, Member: "m", Limits: Limits{Events: 100}}}
			b.do(Start{Params: json.RawMessage(`{"list":` + listOfNumbers(units) + `}`)})
			require.Equal(t, units, b.work(func(unit int) bool { return unit == 77 }))
			require.Equal(t, TaskFailed, b.state.Status)

			b.do(RetryTask{})
			require.Equal(t, 1, b.work(func(int) bool { return false }))
			require.Equal(t, TaskCompleted, b.state.Status)
			require.JSONEq(t, `{"f":`+listOfNumbers(units)+`}`, string(b.state.Result()))
		})
	}
}

func TestScatteredUnitsAreStartedAgainInBoundedDecisions(t *testing.T) {
	plan := planOf(t, "mode: dag\nnodes: {f: {service: s, each: {items: $run.list, on_error: collect}}}")
	b := &bench{t: t, state: NewState("t", plan), env: Env{Now: epoch, Member: "m"}}
	b.do(Start{Params: json.RawMessage(`{"list":` + listOfNumbers(10_000) + `}`)})
	b.work(func(unit int) bool { return unit%2 == 1 })
	b.do(RetryTask{})
	require.LessOrEqual(t, b.most, DefaultLimits.Events)
	require.Len(t, b.jobs, DefaultLimits.Window)
	require.Equal(t, 5_000, b.work(func(int) bool { return false }))
	require.Equal(t, TaskCompleted, b.state.Status)
}
