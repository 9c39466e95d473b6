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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/examples/flows"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/worker"
	"github.com/troupe-engine/troupe/worker/demo"
)

func examples(t *testing.T) []string {
	files, err := fs.Glob(flows.Files, "*")
	require.NoError(t, err)
	require.Len(t, files, 25)
	return files
}

func TestExamplesHaveNoProblems(t *testing.T) {
	for _, file := range examples(t) {
		text, err := flows.Files.ReadFile(file)
		require.NoError(t, err)
		_, problems := compile.Text(text, flow.Limits{})
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
	}, time.Minute, 10*time.Millisecond, "no worker for transform")

	for _, file := range examples(t) {
		text, err := flows.Files.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, engine.Publish(t.Context(), slug(file), text))
	}
	server, err := client.New(strings.TrimSuffix(address, "/api"), client.Options{})
	require.NoError(t, err)
	all, err := flows.Expectations()
	require.NoError(t, err)
	seen := map[string]bool{}
	t.Run("all", func(t *testing.T) {
		for i, want := range all {
			seen[want.File] = true
			t.Run(fmt.Sprintf("%s %d", want.File, i), func(t *testing.T) {
				t.Parallel()
				check(t, server, &want)
			})
		}
	})
	require.Len(t, seen, 25, "every example is expected to end somehow")
}

func check(t *testing.T, server *client.Client, want *flows.Expectation) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := want.Play(ctx, server, slug(want.File), func(*wire.Event) {})
	require.NoError(t, err)
	require.Empty(t, want.Judge(out))
}

func TestAnUnexpectedEndIsReported(t *testing.T) {
	out := &flows.Outcome{State: "failed", Error: "no luck", Shared: []byte(`{"a":1}`), Result: []byte(`null`),
		Steps: map[string]string{"a": "failed"}, Closing: []string{"x", "y"}}
	for want, e := range map[string]flows.Expectation{
		"": {State: "failed", Error: "luck",
			Shared: []byte(`{ "a": 1 }`), Steps: map[string]string{"a": "failed", "b": ""},
			Closing: []string{"x", "y"}},
		"ended failed, not completed: no luck":    {State: "completed"},
		`the error is "no luck", without "x"`:     {State: "failed", Error: "x"},
		`shared is {"a":1}, not {}`:               {State: "failed", Shared: []byte(`{}`)},
		"the result is null, not 1":               {State: "failed", Result: []byte(`1`)},
		"what ran at the end is [x y], not [y x]": {State: "failed", Closing: []string{"y", "x"}},
		`step a ended "failed", not "skipped"`:    {State: "failed", Steps: map[string]string{"a": "skipped"}},
	} {
		require.Equal(t, want, e.Judge(out))
	}
}

func slug(file string) string { return file[:len(file)-len(filepath.Ext(file))] }

// open serves a member with a database of its own.
func open(t *testing.T) (engine *troupe.Engine, address string) {
	engine, err := troupe.Open(t.Context(),
		troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(), "examples.db"),
			AllowScripts: true, AllowMock: true})
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

// background runs a function until the test ends, and then calls after.
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
