//go:build unix

package durable_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/process"
	"github.com/troupe-engine/troupe/worker"
)

// runWorker works until it gets a SIGTERM.
func (s *setup) runWorker() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	w := worker.New(worker.Config{Server: s.Server, ID: s.Name, Attach: true, Concurrency: 2, Logger: slog.New(slog.DiscardHandler)})
	worker.HandleFlow(w, "ten", s.takeTenSteps)
	worker.HandleFlow(w, "trip", s.bookTrip)
	worker.HandleFlow(w, "pack", s.packItems)
	worker.HandleFlow(w, "rounds", s.payRounds)
	return w.Run(ctx)
}

// serveMember serves a member without functions until the test ends.
func serveMember(t *testing.T, cfg troupe.Config) (e *troupe.Engine, url string) {
	t.Helper()
	e, err := troupe.Open(t.Context(), cfg)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, e.Close())
	})
	return e, "http://" + l.Addr().String()
}

// runWorkersUntilEnd starts workers, one after another, until a task has ended, and returns their
// number. Each of them but the last kills itself.
func runWorkersUntilEnd(t *testing.T, e *troupe.Engine, s setup, task string) (result *troupe.Result, workers int) {
	t.Helper()
	ended := make(chan *troupe.Result, 1)
	go func() {
		if r, err := e.Wait(t.Context(), task); err == nil {
			ended <- r
		}
	}()
	for {
		workers++
		s.Name = fmt.Sprint("w", workers)
		p, _ := startProgram(t, s)
		select {
		case result = <-ended:
			require.NoError(t, p.Stop(patience))
			return result, workers
		case <-p.Done():
			require.ErrorContains(t, p.Err, "killed", p.Said())
		case <-time.After(patience):
			require.FailNow(t, "the task does not end", p.Said())
		}
	}
}

// TestFunctionInAWorkerGoesOnBehindItsRecordedSteps kills the worker between any two of ten steps,
// and within some of them.
func TestFunctionInAWorkerGoesOnBehindItsRecordedSteps(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir()}
		for k := 1; k <= 10; k++ {
			s.Kills = append(s.Kills, fmt.Sprint("a-after-", k))
		}
		cut := []int{1, 5, 10}
		for _, k := range cut {
			s.Kills = append(s.Kills, fmt.Sprint("a-in-", k))
		}
		task := startTask(t, store, "ten", "a")
		e, url := serveMember(t, troupe.Config{Store: store, ResumeGrace: -1})
		s.Server = url
		result, workers := runWorkersUntilEnd(t, e, s, task)
		require.Equal(t, len(s.Kills)+1, workers)
		require.Equal(t, "55", string(result.Value), result.Error)
		lines := readLedger(t, s.Dir)
		requireRecordedOnce(t, lines, "a")
		for k := 1; k <= 10; k++ {
			times := 1
			if slices.Contains(cut, k) {
				times = 2 // it was cut off, and ran again
			}
			require.Equal(t, times, countLines(lines, fmt.Sprint("step", k)), "step %d", k)
		}
	})
}

// TestCanceledFunctionInAWorkerIsUndoneDespiteKills cancels a task during a step, and kills the
// worker within each undo.
func TestCanceledFunctionInAWorkerIsUndoneDespiteKills(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Kills: []string{"a-undo-3", "a-undo-2", "a-undo-1"}}
		task := startTask(t, store, "trip", "a")
		e, url := serveMember(t, troupe.Config{Store: store, ResumeGrace: -1})
		s.Server = url
		canceled := make(chan error, 1)
		go func() {
			s.awaitLine(t.Context(), "wait")
			canceled <- e.Cancel(t.Context(), task)
		}()
		result, workers := runWorkersUntilEnd(t, e, s, task)
		require.NoError(t, <-canceled)
		require.Equal(t, 4, workers)
		require.EqualValues(t, "canceled", result.Status)
		var undone []string
		for _, line := range readLedger(t, s.Dir)[2:] {
			undone = append(undone, line[0])
		}
		require.Equal(t, []string{"undo3", "undo3", "undo2", "undo2", "undo1", "undo1"}, undone,
			"an undo that was cut off runs again, one that was recorded does not")
	})
}

// TestLateResultOfAFrozenWorkerIsRefused freezes a worker within a step until another worker has
// ended the task.
func TestLateResultOfAFrozenWorkerIsRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Kills: []string{"a-in-5:freeze"}}
		task := startTask(t, store, "ten", "a")
		e, url := serveMember(t, troupe.Config{Store: store, ResumeGrace: -1})
		s.Server = url
		programs, inputs := map[string]*process.Process{}, map[string]io.Writer{}
		for _, name := range []string{"w1", "w2"} {
			s.Name = name
			p, in := startProgram(t, s)
			programs[name], inputs[name] = p, in
		}
		s.awaitLine(t.Context(), "step5")
		var frozen string
		for _, line := range readLedger(t, s.Dir) {
			if line[0] == "step5" {
				frozen = line[2]
			}
		}
		require.NoError(t, programs[frozen].Freeze())
		result, err := e.Wait(t.Context(), task)
		require.NoError(t, err)
		require.Equal(t, "55", string(result.Value), result.Error)
		_, err = inputs[frozen].Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, programs[frozen].Thaw())
		require.Eventually(t, func() bool {
			lines := readLedger(t, s.Dir)
			return slices.Equal(lines[len(lines)-1], []string{"end", "a", frozen})
		}, patience, 10*time.Millisecond, "the late result ends its function")
		for _, p := range programs {
			require.NoError(t, p.Stop(patience))
		}
		lines := readLedger(t, s.Dir)
		requireRecordedOnce(t, lines, "a")
		for k := 1; k <= 10; k++ {
			times := 1
			if k == 5 {
				times = 2
			}
			require.Equal(t, times, countLines(lines, fmt.Sprint("step", k)), "step %d", k)
		}
	})
}
