package flows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/examples/flows"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

func examples(t *testing.T) []string {
	files, err := fs.Glob(flows.Files, "*")
	require.NoError(t, err)
	require.Len(t, files, 18)
	return files
}

func TestExamplesHaveNoProblems(t *testing.T) {
	for _, file := range examples(t) {
		text, err := flows.Files.ReadFile(file)
		require.NoError(t, err)
		_, problems := flow.CompileText(text, flow.Limits{})
		require.Empty(t, problems, file)
	}
}

func TestExamplesEndAsExpected(t *testing.T) {
	engine, address := open(t)
	work(t, address, worker.Config{Push: true, URL: "http://127.0.0.1:0"}, demo.Push)
	work(t, address, worker.Config{Pull: true}, func(w *worker.Worker) { demo.Pull(w, demo.Options{}) })
	require.Eventually(t, func() bool {
		var workers []struct{ Type string }
		get(t, address+"/workers/list?service=transform", &workers)
		return len(workers) > 0
	}, 10*time.Second, 10*time.Millisecond, "no worker for transform")

	for _, file := range examples(t) {
		text, err := flows.Files.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, engine.Publish(t.Context(), slug(file), text))
	}
	all, err := flows.Expectations()
	require.NoError(t, err)
	seen := map[string]bool{}
	t.Run("all", func(t *testing.T) {
		for i, want := range all {
			seen[want.File] = true
			t.Run(fmt.Sprintf("%s %d", want.File, i), func(t *testing.T) {
				t.Parallel()
				check(t, engine, address, want)
			})
		}
	})
	require.Len(t, seen, 18, "every example is expected to end somehow")
}

func check(t *testing.T, engine *troupe.Engine, address string, want flows.Expectation) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var params any
	if want.Params != nil {
		params = want.Params
	}
	id, err := engine.Start(ctx, slug(want.File), params)
	require.NoError(t, err)
	for _, s := range want.Signals {
		time.AfterFunc(time.Duration(s.AfterMS)*time.Millisecond, func() {
			if err := engine.Signal(ctx, id, s.Key, s.Value); err != nil {
				t.Errorf("signal %s: %v", s.Key, err)
			}
		})
	}
	result, err := engine.Wait(ctx, id)
	require.NoError(t, err)
	var task struct {
		SharedJSON string `json:"shared_json"`
	}
	get(t, address+"/tasks/get?id="+id, &task)
	require.Equal(t, want.State, string(result.Status), "error %q, shared %s", result.Error, task.SharedJSON)
	require.JSONEq(t, string(want.Shared), task.SharedJSON)
}

func slug(file string) string { return file[:len(file)-len(filepath.Ext(file))] }

// open serves a member on a database of its own.
func open(t *testing.T) (engine *troupe.Engine, address string) {
	engine, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "examples.db"), AllowScripts: true})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return engine.Serve(ctx, l) }, engine.Close)
	return engine, "http://" + l.Addr().String() + "/api"
}

func work(t *testing.T, address string, cfg worker.Config, handle func(*worker.Worker)) {
	cfg.Server, cfg.Grace, cfg.Logger = address, -1, slog.New(slog.DiscardHandler)
	w := worker.New(cfg)
	handle(w)
	background(t, w.Run, func() error { return nil })
}

// background runs until the test ends, and then what must come after it.
func background(t *testing.T, run func(context.Context) error, after func() error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
		require.NoError(t, after())
	})
}

func get(t *testing.T, url string, into any) {
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.NoError(t, json.NewDecoder(answer.Body).Decode(into))
}
