package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

const pushThenPull = `
start: push
result: out
nodes:
  push: {service: pushed, prep: {input_key: $params.n}, post: {output_key: half}}
  pull: {service: pulled, exec_type: queue, prep: {input_key: $shared.half}, post: {output_key: out}}
edges:
  - {from: push, action: default, to: pull}
`

// Workers and clients that know several members see no error when the one they use dies.
func TestWorkersAndClientsFailOverToAnotherMember(t *testing.T) {
	s := newStage(t, pgtest.DSN(t))
	s.visibility = shortVisibility
	m := s.together(3)
	var all []string
	for _, address := range m.addresses {
		all = append(all, "http://"+address)
	}
	servers := strings.Join(all, ",")
	hireHere(t, worker.Config{ID: "both", Server: servers, Push: true, Pull: true, URL: "http://127.0.0.1:0"})
	m.await("both")

	c, err := client.New(servers, client.Options{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Publish(t.Context(), "push-then-pull", []byte(pushThenPull))
	require.NoError(t, err)
	const callers, each = 4, 15
	var wg sync.WaitGroup
	ended := make(chan string, callers*each)
	for caller := range callers {
		wg.Go(func() {
			for n := range each {
				ended <- carriedOut(t.Context(), c, caller*each+n)
			}
		})
	}
	for n := range callers * each {
		if n == callers*each/4 {
			m.processes[0].Kill()
		}
		require.Empty(t, <-ended)
	}
	wg.Wait()
	for _, member := range m.processes[1:] {
		require.NoError(t, member.Stop(patience))
	}
}

// hireHere runs a worker in this process until the test ends.
func hireHere(t *testing.T, cfg worker.Config) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	w := worker.New(cfg)
	echo := func(_ context.Context, job worker.Job) (any, error) { return job.Input, nil }
	w.Handle("pushed", echo)
	w.Handle("pulled", echo)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// carriedOut starts a task, watches it and returns the error, if any.
func carriedOut(ctx context.Context, c *client.Client, n int) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started, err := c.Start(ctx, wire.StartRequest{Flow: "push-then-pull", Params: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))})
	if err != nil {
		return err.Error()
	}
	seen := map[string]bool{}
	for e, err := range c.Watch(ctx, started.ID, "") {
		switch {
		case err != nil:
			return err.Error()
		case seen[e.ID]:
			return "twice: " + e.ID
		}
		seen[e.ID] = true
	}
	task, err := c.Wait(ctx, started.ID)
	switch {
	case err != nil:
		return err.Error()
	case task.State != "completed" || string(task.Result) != fmt.Sprint(n):
		return fmt.Sprintf("task %d: %s, %s: %s", n, task.State, task.Result, task.Error)
	}
	return ""
}
