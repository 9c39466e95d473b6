package troupe

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/job"
	"github.com/troupe-engine/troupe/worker"
)

// runWorker runs a worker of the first member until the test ends. It returns when all members know
// it.
func runWorker(t *testing.T, members []*Engine, cfg worker.Config, service string, h worker.Handler) {
	t.Helper()
	cfg.Server, cfg.ID = "http://"+members[0].cfg.Listen, "w"
	w := worker.New(cfg)
	w.Handle(service, h)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-over
	})
	for _, e := range members {
		require.Eventually(t, func() bool {
			known, err := e.Workers(t.Context())
			online := slices.ContainsFunc(known, func(w KnownWorker) bool { return w.ID == "w" && w.State == "online" })
			return err == nil && online && (!cfg.Push || slices.Contains(e.workers.Pushed(), service))
		}, time.Minute, 10*time.Millisecond)
	}
}

// followed returns the values of a stream, each with its step, attempt and try. It calls read when
// it has the first two.
func followed(t *testing.T, e *Engine, id string, read func()) (values []string) {
	t.Helper()
	for v, err := range e.FollowStream(t.Context(), id, "rows", 0) {
		require.NoError(t, err)
		require.EqualValues(t, len(values), v.Offset)
		values = append(values, fmt.Sprintf("%s attempt %d try %d: %s", v.Step, v.Attempt, v.Try, v.Value))
		if len(values) == 2 {
			read()
		}
	}
	return values
}

func TestValuesOfJobsAreFollowedAtEveryMemberWhileTheJobsRun(t *testing.T) {
	for name, tt := range map[string]struct {
		exec string
		cfg  worker.Config
	}{
		"pull":   {"queue", worker.Config{Pull: true}},
		"push":   {"push", worker.Config{Push: true, URL: "http://127.0.0.1:0", Secret: "secret"}},
		"attach": {"remote", worker.Config{Attach: true}},
	} {
		t.Run(name, func(t *testing.T) {
			store := pgtest.DSN(t)
			a, b := serving(t, Config{Store: store, Name: "a"}), serving(t, Config{Store: store, Name: "b"})
			shared(t, a, b)
			read := make(chan struct{})
			runWorker(t, []*Engine{a, b}, tt.cfg, "list", func(ctx context.Context, _ worker.Job) (any, error) {
				for n := range 2 {
					if err := worker.Stream(ctx, "rows").Write(map[string]int{"row": n}); err != nil {
						return nil, err
					}
				}
				select {
				case <-read:
				case <-ctx.Done():
				}
				return nil, worker.Stream(ctx, "rows").Write("last")
			})
			require.NoError(t, a.Publish(t.Context(), "f", []byte("mode: dag\nnodes: {a: {exec_type: "+tt.exec+", service: list}}")))
			id, err := b.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			t.Cleanup(func() {
				if result, err := b.Wait(context.WithoutCancel(t.Context()), id); t.Failed() {
					t.Log(result, err)
				}
			})
			require.Equal(t, []string{`a attempt 1 try 0: {"row":0}`, `a attempt 1 try 0: {"row":1}`, `a attempt 1 try 0: "last"`},
				followed(t, b, id, func() { close(read) }))
			page, err := a.StreamPage(t.Context(), id, "rows", 2)
			require.NoError(t, err)
			require.Len(t, page.Values, 1)
			result, err := b.Wait(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, flow.TaskCompleted, result.Status, result.Error)
		})
	}
}

func TestJobsOfGraphsAndDagsInTheProgramWriteToStreams(t *testing.T) {
	for mode, definition := range map[string]string{
		"graph": `{"start":"list","nodes":{"list":{"func":"list","retry":{"max_attempts":2}}}}`,
		"dag":   `{"mode":"dag","nodes":{"list":{"func":"list","retry":{"max_attempts":2}}}}`,
	} {
		t.Run(mode, func(t *testing.T) {
			e := join(t, Config{Store: "sqlite:" + t.TempDir() + "/x.db"})
			var calls atomic.Int64
			read := make(chan struct{})
			e.Handle("list", func(ctx context.Context, _ Job) (any, error) {
				rows := job.Stream(ctx, "rows")
				for n := range 2 {
					if err := rows.Write(n); err != nil {
						return nil, err
					}
				}
				<-read
				if calls.Add(1) == 1 {
					return nil, fmt.Errorf("not yet")
				}
				return nil, rows.Close()
			})
			require.NoError(t, e.Publish(t.Context(), "f", []byte(definition)))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			require.Equal(t, []string{"list attempt 1 try 0: 0", "list attempt 1 try 0: 1",
				"list attempt 2 try 0: 0", "list attempt 2 try 0: 1"},
				followed(t, e, id, func() { close(read) }), "an attempt that is made again writes again")
		})
	}
}
