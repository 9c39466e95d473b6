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

const deferring = `
start: a
nodes:
  a: {service: svc, exec_type: local_func, func: f, deferred: true, timeout_ms: 500, retry: {max_attempts: 2, delay: 10ms}, post: {output_key: out}}
`

// twoJobs is an output with two external jobs.
const twoJobs = `{"deferred": [{"service_type": "s", "job_id": "j1"}, {"service_type": "s", "job_id": 2}], "data": {"n": 1}}`

// deferred returns a task whose attempt waits for the external jobs of an output.
func deferred(t *testing.T, output string) *table {
	tb := defers(t, deferring)
	tb.must(t, flow.Report{Address: first(), Output: json.RawMessage(output)})
	return tb
}

// defers returns a started task.
func defers(t *testing.T, definition string) *table {
	tb := newTable(t, flowtest.Plan(t, definition))
	tb.must(t, flow.Start{})
	return tb
}

// must runs a command that must not be rejected.
func (tb *table) must(t *testing.T, c flow.Command) flow.Decision {
	t.Helper()
	d, err := tb.do(c)
	require.NoError(t, err)
	return d
}

// first returns the first attempt of node a.
func first() flow.Address { return flow.Address{Node: "a", Visit: 1, Attempt: 1} }

func outsideEnded(index int, output, failure string) flow.ExternalEnded {
	return flow.ExternalEnded{Address: first(), Index: index, Output: json.RawMessage(output), Error: failure}
}

func TestAnAttemptWaitsForAllExternalJobsAndEndsWithItsData(t *testing.T) {
	tb := deferred(t, twoJobs)
	wait := flow.Waiting(tb.state)
	require.Len(t, wait, 1)
	require.Equal(t, []string{"external", "2 of 2 external jobs have not ended; the first is s j1"}, []string{wait[0].For, wait[0].Text})
	due, idle := flow.Idle(tb.state)
	require.True(t, idle, "nobody carries it out")
	require.Equal(t, tb.state.Live(first()).Due, due)

	tb.must(t, outsideEnded(1, `7`, ""))
	tb.must(t, outsideEnded(1, `8`, "late")) // a repetition changes nothing
	tb.must(t, outsideEnded(5, ``, "no such job"))
	require.Equal(t, flow.TaskRunning, tb.state.Status)
	tb.must(t, outsideEnded(0, ``, ""))
	require.Equal(t, flow.TaskCompleted, tb.state.Status)
	require.JSONEq(t, `{"n": 1}`, string(tb.state.Root.Shared["out"]))
}

func TestDetailsAndMetricsOfExternalJobsAreKept(t *testing.T) {
	tb := deferred(t, twoJobs)
	failed := outsideEnded(0, ``, "it broke")
	failed.Details, failed.Metrics = json.RawMessage(`{"k":1}`), json.RawMessage(`[{"name":"rows"}]`)
	d := tb.must(t, failed)
	var told []flow.Event
	for _, e := range d.Events {
		if e.Type == flow.AttemptEnded {
			told = append(told, e)
		}
	}
	require.Len(t, told, 1)
	require.JSONEq(t, `{"k":1}`, string(told[0].Details))
	require.JSONEq(t, `[{"name":"rows"}]`, string(told[0].Metrics))
}

func TestTheFirstFailedExternalJobFailsTheAttempt(t *testing.T) {
	tb := deferred(t, twoJobs)
	d := tb.must(t, outsideEnded(0, ``, "it broke"))
	require.Contains(t, d.Effects, flow.Recall{Address: first(), Indexes: []int{1}})
	require.Contains(t, d.Effects, flow.Untrack{Address: first(), Index: 0})
	require.Equal(t, "it broke", tb.state.Active()[0].Units[0].Error.Text)
	require.Nil(t, tb.must(t, outsideEnded(1, ``, "")).Events, "nobody waits for it any longer")
	require.Equal(t, flow.TaskRunning, tb.state.Status, "it is tried again")
}

func TestATimeoutAndACancelRecallExternalJobs(t *testing.T) {
	tb := deferred(t, twoJobs)
	tb.must(t, outsideEnded(0, ``, ""))
	d := tb.must(t, flow.Cancel{})
	require.Contains(t, d.Effects, flow.Recall{Address: first(), Indexes: []int{1}})
	require.Equal(t, flow.TaskCanceled, tb.state.Status)

	tb = deferred(t, twoJobs)
	due := tb.state.Live(first()).Due
	tb.env.Now = due
	d = tb.must(t, flow.Ring{Alarm: flow.Alarm{At: due, Address: first(), Kind: flow.AlarmAttempt}})
	require.Contains(t, d.Effects, flow.Recall{Address: first(), Indexes: []int{0, 1}})
	require.Contains(t, tb.state.Active()[0].Units[0].Error.Text, "timeout")
}

func TestAGentleCancelWaitsForExternalJobs(t *testing.T) {
	tb := deferred(t, twoJobs)
	tb.must(t, flow.Cancel{Gently: true})
	require.Equal(t, flow.TaskCanceling, tb.state.Status)
	tb.must(t, outsideEnded(0, ``, ""))
	tb.must(t, outsideEnded(1, ``, ""))
	require.Equal(t, flow.TaskCanceled, tb.state.Status)
}

func TestTheFormerCarrierCannotReportOnAWaitingAttempt(t *testing.T) {
	tb := deferred(t, twoJobs)
	require.Nil(t, tb.must(t, flow.Report{Address: first(), Error: "late"}).Events)
	require.Nil(t, tb.must(t, flow.Report{Address: first(), Lost: true}).Events)
	require.Nil(t, tb.must(t, flow.Recover{}).Events)
	_, wanted := tb.state.Job(first())
	require.False(t, wanted)
	for _, e := range flow.Outstanding(tb.state) {
		require.IsType(t, flow.Alarm{}, e)
	}
}

func TestOutputsThatMayNameExternalJobs(t *testing.T) {
	for name, tt := range map[string]struct{ output, out, err string }{
		"an empty list is a plain output":   {output: `{"deferred": []}`, out: `{"deferred": []}`},
		"a list of texts is a plain output": {output: `{"deferred": ["a"]}`, out: `{"deferred": ["a"]}`},
		"what is no list is a plain output": {output: `{"deferred": true}`, out: `{"deferred": true}`},
		"a list by itself is a plain output": {output: `[{"service_type": "s", "job_id": "j"}]`,
			out: `[{"service_type": "s", "job_id": "j"}]`},
		"an entry without service_type fails": {output: `{"deferred": [{"job_id": "j1"}]}`,
			err: `deferred[0] has no service_type: name the service of the job "j1"`},
		"one of them without it fails": {output: `{"deferred": [{"service_type": "s", ` +
			`"job_id": "j"}, {"job_id": "j2"}]}`, err: "deferred[1] has no service_type"},
		"one that is no object fails": {output: `{"deferred": [{"service_type": "s", ` +
			`"job_id": "j"}, 7]}`, err: "deferred[1] is a number"},
		"an entry without job_id fails": {output: `{"deferred": [{"service_type": "s"}]}`,
			err: "deferred[0] has no job_id"},
		"more than a thousand of them fail it": {output: `{"deferred": [` + strings.Repeat(
			`{"service_type":"s","job_id":"j"},`, 1000) + `{"service_type":"s","job_id":"j"}]}`,
			err: "more than the 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			tb := deferred(t, tt.output)
			if tt.err != "" {
				require.Contains(t, tb.state.Active()[0].Units[0].Error.Text, tt.err)
				return
			}
			require.JSONEq(t, tt.out, string(tb.state.Root.Shared["out"]))
		})
	}
}

func TestExternalJobsAreTrackedWithAllTheirData(t *testing.T) {
	tb := defers(t, deferring)
	d := tb.must(t, flow.Report{Address: first(),
		Output: json.RawMessage(`{"deferred": [{"job_id": "j", "url": "mock://success"}], "note": 1}`)})
	var track flow.Track
	for _, e := range d.Effects {
		if e, ok := e.(flow.Track); ok {
			track = e
		}
	}
	require.Equal(t, []flow.External{{Task: "task-1", Job: flow.JobID("task-1", first()), Service: "custom_http", ID: "j",
		Data: json.RawMessage(`{"job_id": "j", "url": "mock://success"}`), StartedAt: tb.env.Now}}, track.Jobs)
	tb.must(t, outsideEnded(0, `{"status": "success"}`, ""))
	require.JSONEq(t, `{"deferred": [{"job_id": "j", "url": "mock://success"}], "note": 1}`,
		string(tb.state.Root.Shared["out"]), "without data all of it is the output")
}

func TestOrkAttemptsMayWaitAndOnlyExplicitTimeoutsContinue(t *testing.T) {
	for definition, due := range map[string]bool{
		"profile: ork\nnodes: {a: {service: svc, exec_type: local_func, func: f}}":               false,
		"profile: ork\nnodes: {a: {service: svc, exec_type: local_func, func: f, timeout: 10s}}": true,
	} {
		tb := defers(t, definition)
		require.NotZero(t, tb.state.Live(first()).Due)
		tb.must(t, flow.Report{Address: first(), Output: json.RawMessage(twoJobs)})
		require.Equal(t, due, tb.state.Live(first()).Due > 0)
	}
}

func TestWithoutAnOutputAnAttemptGetsThatOfItsExternalJobs(t *testing.T) {
	for n, want := range map[int]string{1: `"o0"`, 2: `["o0", "o1"]`} {
		tb := defers(t, strings.ReplaceAll(deferring, "deferred: true, ", ""))
		r := flow.Report{Address: first()}
		for i := range n {
			r.Deferred = append(r.Deferred, flow.External{Service: "s", ID: fmt.Sprint("j", i)})
		}
		tb.must(t, r)
		for i := range n {
			tb.must(t, outsideEnded(n-1-i, fmt.Sprintf("%q", fmt.Sprint("o", n-1-i)), ""))
		}
		require.JSONEq(t, want, string(tb.state.Root.Shared["out"]))
	}
}
