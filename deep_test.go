package troupe

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

// deep returns a flow with many nested subflows, whose path is too long for an index.
func deep(inside map[string]any) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 14 {
		name := make([]byte, 220)
		for i := range name {
			name[i] = byte('a' + rng.IntN(26))
		}
		inside = map[string]any{"start": string(name),
			"nodes": map[string]any{string(name): map[string]any{"kind": "subflow", "subflow": inside}}}
	}
	return must(json.Marshal(inside))
}

// quay is another system whose jobs end at once. It reports the ids of the jobs that it started.
type quay struct{ jobs chan<- string }

func (q quay) Start(_ context.Context, job flow.Job, _ bool) flow.Report {
	q.jobs <- job.ID()
	return flow.Report{Deferred: []External{{Service: "yard", ID: "1"}}}
}

func (q quay) Poll(context.Context, External) (ExternalStatus, error) {
	return ExternalStatus{Ended: true, Output: json.RawMessage(`1`)}, nil
}

func (q quay) Cancel(context.Context, External) error { return nil }

func edge(from, to string) map[string]string {
	return map[string]string{"from": from, "action": "default", "to": to}
}

func TestJobsOfDeeplyNestedScopesRun(t *testing.T) {
	for name, store := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "t.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) {
			jobs := make(chan string, 10)
			q := quay{jobs}
			e := serving(t, Config{Store: store(t), Starters: map[string]Starter{"yard": q}, Trackers: map[string]Tracker{"yard": q}})
			w := worker.New(worker.Config{Pull: true, Server: "http://" + e.cfg.Listen, ID: "w"})
			w.Handle("s", func(_ context.Context, j worker.Job) (any, error) {
				jobs <- j.ID
				_, err := j.Log.Write([]byte("said of it\n"))
				return 1, err
			})
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- w.Run(ctx) }()
			t.Cleanup(func() {
				stop()
				<-over
			})
			require.NoError(t, e.Publish(t.Context(), "f",
				deep(map[string]any{"start": "pulled", "edges": []any{edge("pulled", "limited"),
					edge("limited", "outside")}, "nodes": map[string]any{
					"pulled":  map[string]any{"exec_type": "queue", "service": "s"},
					"limited": map[string]any{"exec_type": "queue", "service": "s", "concurrency": map[string]any{"limit": 1, "name": "k"}},
					"outside": map[string]any{"exec_type": "external", "service": "yard"},
				}})))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			result, err := e.Wait(waiting, id)
			require.NoError(t, err)
			require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
			require.Len(t, jobs, 3)
			for range 2 {
				log, err := e.Log(t.Context(), <-jobs)
				require.NoError(t, err)
				require.Equal(t, "said of it\n", log)
			}
			require.Greater(t, len(<-jobs), 3000)
		})
	}
}
