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

// afterLarge starts a flow whose first step has an output of 1 MiB, and returns the jobs that are
// dispatched after it.
func afterLarge(t *testing.T, text, params string) (*flow.State, []flow.Job) {
	t.Helper()
	s := flow.NewState("task-1", flowtest.Plan(t, text))
	d, err := flow.Decide(s, flow.Start{Params: json.RawMessage(params)}, flow.Env{Now: epoch})
	require.NoError(t, err)
	first := jobsOf(d)
	require.Len(t, first, 1)
	d, err = flow.Decide(s, flow.Report{Address: first[0].Address, Output: textOfBytes(1 << 20)}, flow.Env{Now: epoch})
	require.NoError(t, err)
	return s, jobsOf(d)
}

func jobsOf(d flow.Decision) (jobs []flow.Job) {
	for _, e := range d.Effects {
		if e, ok := e.(flow.Dispatch); ok {
			jobs = append(jobs, e.Job)
		}
	}
	return jobs
}

func TestUnitsShareTheirStepsInput(t *testing.T) {
	s, jobs := afterLarge(t, "nodes: {a: {service: s}, b: {kind: fanout, depends_on: [a], each: {count: 500}, service: s}}", `{}`)
	require.Len(t, jobs, 500)
	for _, j := range jobs {
		require.Same(t, &jobs[0].Input[0], &j.Input[0], "500 MB would be held for one of 1 MB")
	}
	job, ok := s.Job(jobs[7].Address)
	require.True(t, ok)
	require.Same(t, &jobs[0].Input[0], &job.Input[0])
}

// TestUnitsThatCopyTheirInputAreBoundedInFlight merges the item of each unit into the whole input
// of the step.
func TestUnitsThatCopyTheirInputAreBoundedInFlight(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat("1,", 500), ",")
	text := `{"nodes":{"a":{"service":"s"},"b":{"kind":"fanout","input_shape":"merged","depends_on":["a"],"each":{"items":"$run.l"},"service":"s"}}}`
	s, jobs := afterLarge(t, text, `{"l":[`+items+`]}`)
	require.Less(t, len(jobs), 64, "64 MiB may be in flight")
	require.Greater(t, len(jobs), 60)
	ended := 0
	for len(jobs) > 0 {
		d, err := flow.Decide(s, flow.Report{Address: jobs[0].Address}, flow.Env{Now: epoch})
		require.NoError(t, err)
		jobs = append(jobs[1:], jobsOf(d)...)
		ended++
	}
	require.Equal(t, 500, ended)
	require.Equal(t, flow.TaskCompleted, s.Status)
}

func TestBranchesThatCopyTheirParamsAreBoundedInFlight(t *testing.T) {
	var execs []string
	for i := range 200 {
		execs = append(execs, fmt.Sprintf(`{"service":"s%d","params":{"x":%d}}`, i, i))
	}
	s := flow.NewState("task-1", flowtest.Plan(t,
		`{"start":"p","nodes":{"p":{"kind":"parallel","parallel_mode":"concurrent","parallel_execs":[`+
			strings.Join(execs, ",")+`]}}}`))
	d, err := flow.Decide(s, flow.Start{Params: json.RawMessage(`{"v":` + string(textOfBytes(1<<20-100)) + `}`)}, flow.Env{Now: epoch})
	require.NoError(t, err)
	require.LessOrEqual(t, len(jobsOf(d)), 65)
	require.Greater(t, len(jobsOf(d)), 60)
}
