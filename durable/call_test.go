//go:build unix

package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/durable"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/worker"
)

type label struct {
	Text string `json:"text"`
}

func TestCallRunsAJobOfAService(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		var tries atomic.Int64
		keys := make(chan string, 3)
		troupe.Handle(e, "print-label", func(ctx context.Context, p payment) (label, error) {
			keys <- troupe.JobFrom(ctx).Key()
			if tries.Add(1) < 3 {
				return label{}, errors.New("paper jam")
			}
			return label{fmt.Sprint("No. ", p.Amount)}, nil
		})
		troupe.HandleFlow(e, "ship", func(f *durable.Flow, _ input) (string, error) {
			l, err := durable.Call[label](f, "print-label", payment{7}, durable.Over("local_func"), durable.Retry(2, time.Millisecond))
			return l.Text, err
		})
		id, err := e.Start(t.Context(), "ship", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, `"No. 7"`)
		key := <-keys
		require.Equal(t, []string{key, key}, []string{<-keys, <-keys}, "all attempts have one key")
		page, err := e.Steps(t.Context(), id, troupe.StepQuery{})
		require.NoError(t, err)
		require.Equal(t, "print-label", page.Items[1].Node)
		require.Equal(t, "completed", string(page.Items[1].State))
		require.JSONEq(t, `{"text":"No. 7"}`, string(page.Items[1].Output))
	})
}

func TestErrorOfACalledJobReachesTheFunction(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.Handle(e, "print-label", func(context.Context, payment) (label, error) {
			return label{}, troupe.Fatal(errors.New("no paper"))
		})
		troupe.HandleFlow(e, "ship", func(f *durable.Flow, _ input) (string, error) {
			_, err := durable.Call[label](f, "print-label", payment{7}, durable.Over("local_func"), durable.Named("print"))
			var failed *durable.Error
			if !errors.As(err, &failed) || errors.Is(err, durable.ErrTimeout) {
				return "", fmt.Errorf("got %w", err)
			}
			return failed.Step + ": " + failed.Text, nil
		})
		id, err := e.Start(t.Context(), "ship", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, `"print: no paper"`)
	})
}

func TestCallWithoutAWorkerEndsInTime(t *testing.T) {
	eachWarmth(t, func(t *testing.T, open func() *troupe.Engine) {
		e := open()
		troupe.HandleFlow(e, "ship", func(f *durable.Flow, _ input) (string, error) {
			_, err := durable.Call[label](f, "print-label", payment{7}, durable.Over("queue"), durable.Within(time.Millisecond))
			if !errors.Is(err, durable.ErrTimeout) {
				return "", fmt.Errorf("got %w", err)
			}
			return "late", nil
		})
		id, err := e.Start(t.Context(), "ship", input{"a"})
		require.NoError(t, err)
		requireResult(t, e, id, `"late"`)
	})
}

// runWorker runs a worker of an engine until the test ends.
func runWorker(t *testing.T, cfg worker.Config, service string, h worker.Handler) {
	t.Helper()
	cfg.ID = "w"
	w := worker.New(cfg)
	w.Handle(service, h)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	t.Cleanup(func() { stop(); <-over })
}

// TestWorkersCarryOutCalledJobs closes the engine while a job waits for a worker.
func TestWorkersCarryOutCalledJobs(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		for over, cfg := range map[string]worker.Config{"queue": {Pull: true}, "push": {Attach: true}, "remote": {Attach: true}} {
			t.Run(over, func(t *testing.T) {
				ship := func(f *durable.Flow, _ input) ([]label, error) {
					return durable.Each(f, "pack", []int{1, 2, 3}, 3, func(f *durable.Flow, n int) (label, error) {
						return durable.Call[label](f, "print-label", payment{n}, durable.Over(over), durable.Retry(5, 10*time.Millisecond))
					})
				}
				name := "ship-" + over
				e, err := troupe.Open(t.Context(), troupe.Config{Store: store})
				require.NoError(t, err)
				troupe.HandleFlow(e, name, ship)
				id, err := e.Start(t.Context(), name, input{"a"})
				require.NoError(t, err)
				require.NoError(t, e.Close())

				address, err := ports.FreeAddress()
				require.NoError(t, err)
				e, err = troupe.Open(t.Context(), troupe.Config{Store: store, Listen: address})
				require.NoError(t, err)
				troupe.HandleFlow(e, name, ship)
				_, err = e.Member(t.Context())
				require.NoError(t, err)
				ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
				served := make(chan error, 1)
				go func() { served <- e.Serve(ctx, nil) }()
				t.Cleanup(func() { stop(); <-served; require.NoError(t, e.Close()) })
				cfg.Server = "http://" + address
				runWorker(t, cfg, "print-label", func(_ context.Context, j worker.Job) (any, error) {
					var p payment
					err := json.Unmarshal(j.Input, &p)
					return label{fmt.Sprint("No. ", p.Amount)}, err
				})
				requireResult(t, e, id, `[{"text":"No. 1"},{"text":"No. 2"},{"text":"No. 3"}]`)
			})
		}
	})
}

func TestOptionsThatAStepDoesNotObeyPanic(t *testing.T) {
	t.Parallel()
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "x.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	for name, use := range map[string]func(f *durable.Flow){
		"Within has no effect on Do, which obeys Retry, Timeout, Input": func(f *durable.Flow) {
			_ = f.Do("a", func(context.Context) error { return nil }, durable.Within(time.Hour))
		},
		"Retry has no effect on Signal, which obeys Within": func(f *durable.Flow) {
			_, _ = durable.Signal[int](f, "a", durable.Retry(1, 0))
		},
		"Over has no effect on Approve": func(f *durable.Flow) { _, _ = durable.Approve(f, "a", durable.Over("push")) },
	} {
		flow := fmt.Sprint("flow", len(name))
		troupe.HandleFlow(e, flow, func(f *durable.Flow, _ input) (int, error) { use(f); return 0, nil })
		id, err := e.Start(t.Context(), flow, input{"a"})
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Contains(t, result.Error, name)
	}
}

// TestCalledJobsSurviveKills kills the program within a called job, and behind it.
func TestCalledJobsSurviveKills(t *testing.T) {
	eachStore(t, func(t *testing.T, store string) {
		s := setup{Store: store, Dir: t.TempDir(), Kills: []string{"a-in-1", "a-after-1", "a-in-2", "a-after-2"}}
		s.Tasks = []string{startTask(t, store, "deliver", "a")}
		programs, said := runUntilEnd(t, s)
		require.Equal(t, len(s.Kills)+1, programs)
		require.Contains(t, said, "completed 3")
		lines := readLedger(t, s.Dir)
		for k := 1; k <= 2; k++ {
			require.Equal(t, 2, countLines(lines, fmt.Sprint("carry", k)), "only a job that was cut off runs again")
		}
		keys := map[string]string{}
		for _, line := range lines {
			require.True(t, keys[line[0]] == "" || keys[line[0]] == line[2], "the key of %s", line[0])
			keys[line[0]] = line[2]
		}
		require.Len(t, slices.Compact([]string{keys["carry1"], keys["carry2"]}), 2)
	})
}
