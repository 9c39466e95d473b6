package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/carriers/functions"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/persistence"
)

// forgetful is a store that confirms every write after a moment, and keeps nothing.
type forgetful struct {
	persistence.Store
	takes time.Duration
}

func (f forgetful) Lanes() int { return 2 }

func (f forgetful) Commit(_ context.Context, _ string, batch []persistence.Commit) ([]error, error) {
	time.Sleep(f.takes)
	return make([]error, len(batch)), nil
}

// BenchmarkChain measures the processor time of a step in a member without its store. The lengths
// of the chains show the cost of a task's start and end.
func BenchmarkChain(b *testing.B) {
	for _, steps := range []int{10, 100} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) { benchChain(b, steps) })
	}
}

func benchChain(b *testing.B, steps int) {
	local := functions.New(functions.Options{})
	local.RegisterRaw("same", func(_ context.Context, j job.Job) (json.RawMessage, error) { return j.Input, nil })
	store := forgetful{model.New(model.Options{}), time.Millisecond}
	m, err := actors.Start(b.Context(), actors.Config{Store: store, Carriers: map[flow.ExecType]actors.Carrier{flow.ExecFunc: local}})
	require.NoError(b, err)
	b.Cleanup(m.Kill)
	require.NoError(b, store.CreateFlow(b.Context(), persistence.Flow{ID: "f"}))
	require.NoError(b, store.CreateVersion(b.Context(), persistence.Version{ID: "v", FlowID: "f",
		Number: 1, Status: "published", Definition: longChain(steps)}))
	params := json.RawMessage(`{"p":"` + strings.Repeat("x", 200) + `"}`)
	b.ReportAllocs()
	b.ResetTimer()
	began := cpu(b)
	inFlight(b.N/steps+1, 64, func() {
		started, err := m.StartTask(b.Context(), engine.NewTask{VersionID: "v", Params: params})
		require.NoError(b, err)
		_, err = m.Await(b.Context(), started.Task)
		require.NoError(b, err)
	})
	b.ReportMetric(float64((cpu(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func longChain(steps int) []byte {
	var d strings.Builder
	d.WriteString("start: s1\nnodes:\n  s1: {exec_type: local_func, func: same, prep: {input_key: $params.p}, post: {output_key: p}}\n")
	for i := 2; i <= steps; i++ {
		fmt.Fprintf(&d, "  s%d: {exec_type: local_func, func: same, prep: {input_key: p}, post: {output_key: p}}\n", i)
	}
	d.WriteString("edges:\n")
	for i := 1; i < steps; i++ {
		fmt.Fprintf(&d, "  - {from: s%d, action: default, to: s%d}\n", i, i+1)
	}
	return []byte(d.String())
}

// inFlight calls f n times, with the given concurrency.
func inFlight(n, concurrency int, f func()) {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range concurrency {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				f()
			}
		})
	}
	all.Wait()
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTally measures the cost of counting the end of an attempt, with concurrent callers.
func BenchmarkTally(b *testing.B) {
	m, err := actors.Start(b.Context(), actors.Config{Store: model.New(model.Options{})})
	require.NoError(b, err)
	b.Cleanup(m.Kill)
	end := &flow.End{Exec: &flow.Exec{Type: flow.ExecQueue, Service: "email"}, Status: flow.AttemptOK, TookMS: 7}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Tally(end)
		}
	})
}
