package flow_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

var payload = json.RawMessage(`{"text":"` + strings.Repeat("x", 189) + `"}`) // 200 bytes

// BenchmarkChainStep measures a step of a chain in the core: the report of one step, the dispatch
// of the next, and the journal row.
func BenchmarkChainStep(b *testing.B) {
	plan := flowtest.Plan(b, `
start: a
nodes:
  a: {service: s, prep: {input_key: out}, post: {output_key: out}}
  b: {service: s, prep: {input_key: out}, post: {output_key: out}}
edges: [{from: a, action: default, to: b}, {from: b, action: default, to: a}]`)
	s, row, bytes := flow.NewState("t", plan), []byte(nil), 0
	env := flow.Env{Now: epoch, Member: "member-1@17", Limits: flow.Limits{Steps: 1 << 60}}
	d := mustDecide(b, s, flow.Start{Params: json.RawMessage(`{"input":1}`)}, env)
	b.ReportAllocs()
	for b.Loop() {
		env.Now++
		next := d.Effects[len(d.Effects)-1].(flow.Dispatch).Job
		d = mustDecide(b, s, flow.Report{Address: next.Address, Output: payload, Worker: "w-1"}, env)
		row = flow.AppendEvents(row[:0], d.Events)
		bytes += len(row)
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "journalB/op")
}

// BenchmarkFanoutUnit measures one unit of a fanout. The cost must not depend on the number of
// units.
func BenchmarkFanoutUnit(b *testing.B) {
	for _, units := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(units), func(b *testing.B) {
			plan := flowtest.Plan(b, "start: f\nnodes: {f: {kind: foreach, service: s, "+
				"parallel_mode: concurrent, prep: {input_key: $params.list}, post: {output_key: out}}}")
			params := json.RawMessage(`{"list":[` + strings.TrimSuffix(strings.Repeat("12345,", units), ",") + `]}`)
			for b.Loop() {
				fanOut(b, plan, params)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*units), "ns/unit")
		})
	}
}

// BenchmarkDagNode measures a node of a dag, and its memory without its output while the task runs.
func BenchmarkDagNode(b *testing.B) {
	const nodes = 10_000
	var d strings.Builder
	d.WriteString("mode: dag\nnodes:\n  first: {service: s}\n")
	for i := range nodes - 2 {
		fmt.Fprintf(&d, "  m%d: {service: s, depends_on: [first], prep: {input_key: $deps.first}}\n", i)
	}
	d.WriteString("  last: {kind: approval, params: {approval_key: ok}, depends_on: [first]}\n")
	plan := flowtest.Plan(b, d.String())
	var bytes uint64
	for b.Loop() {
		before := inUse()
		s := doneDag(b, plan)
		bytes = inUse() - before
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
	b.ReportMetric(float64(bytes)/nodes, "B/node")
}

// doneDag returns a task whose work is all done. All outputs share the same bytes.
func doneDag(b *testing.B, plan *flow.Plan) *flow.State {
	s := flow.NewState("t", plan)
	env := flow.Env{Now: epoch, Member: "member-1@17", Limits: flow.Limits{Steps: 1 << 60}}
	todo := []flow.Command{flow.Start{}}
	for len(todo) > 0 {
		d := mustDecide(b, s, todo[0], env)
		todo = todo[1:]
		for _, e := range d.Effects {
			if job, ok := e.(flow.Dispatch); ok {
				todo = append(todo, flow.Report{Address: job.Job.Address, Output: payload})
			}
		}
		if d.More != nil {
			todo = append(todo, d.More)
		}
	}
	return s
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func fanOut(b *testing.B, plan *flow.Plan, params json.RawMessage) {
	s, row := flow.NewState("t", plan), []byte(nil)
	env := flow.Env{Now: epoch, Member: "member-1@17"}
	d := mustDecide(b, s, flow.Start{Params: params}, env)
	jobs := d.Effects
	for len(jobs) > 0 {
		job, ok := jobs[0].(flow.Dispatch)
		jobs = jobs[1:]
		if !ok {
			continue
		}
		d = mustDecide(b, s, flow.Report{Address: job.Job.Address, Output: json.RawMessage(`1`), Worker: "w-1"}, env)
		row = flow.AppendEvents(row[:0], d.Events)
		jobs = append(jobs, d.Effects...)
	}
	require.Equal(b, flow.TaskCompleted, s.Status)
}

// BenchmarkRest measures the snapshot of a waiting task and its decoding.
func BenchmarkRest(b *testing.B) {
	plan := flowtest.Plan(b, "start: w\nnodes: {w: {kind: wait_event, params: {signal_key: flag}}}")
	s := flow.NewState("t", plan)
	mustDecide(b, s, flow.Start{Params: payload}, flow.Env{Now: epoch})
	b.ReportAllocs()
	for b.Loop() {
		_, ok := flow.DecodeSnapshot(flow.EncodeSnapshot(s).Bytes(), plan)
		require.True(b, ok)
	}
}

func mustDecide(b *testing.B, s *flow.State, c flow.Command, env flow.Env) flow.Decision {
	d, err := flow.Decide(s, c, env)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkDecodeRow measures the decoding of an event of a journal.
func BenchmarkDecodeRow(b *testing.B) {
	at := flow.Address{Node: "a", Visit: 12, Attempt: 1}
	events := []flow.Event{
		{Type: flow.AttemptEnded, At: epoch, Node: at.Node, Visit: at.Visit, Attempt: 1,
			Status: string(flow.AttemptOK), Output: payload, Worker: "w-1"},
		{Type: flow.StepEnded, At: epoch, Node: at.Node, Visit: at.Visit,
			Status: string(flow.StepCompleted), Action: "default", Next: "b", Post: true},
		{Type: flow.StepEntered, At: epoch, Node: "b", Visit: at.Visit, InputRef: "$shared.out", Total: 1},
		{Type: flow.AttemptsDispatched, At: epoch, Node: "b", Visit: at.Visit, Attempt: 1, Total: 1, Carrier: "member-1@17"},
	}
	for name, output := range map[string]json.RawMessage{"200 B": payload,
		"1 MB": json.RawMessage(`{"list":[` + strings.Repeat(`{"name":"x","n":17},`, 50_000) + `0]}`)} {
		b.Run(name, func(b *testing.B) {
			events[0].Output = output
			row := flow.AppendEvents(nil, events)
			b.ReportAllocs()
			for b.Loop() {
				_, err := flow.DecodeEvents(row)
				require.NoError(b, err)
			}
		})
	}
}
