package troupe

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/worker"
)

func TestWorkersGetValuesAndNoReferences(t *testing.T) {
	for name, tt := range map[string]struct {
		exec string
		cfg  worker.Config
	}{
		"pull":   {"queue", worker.Config{Pull: true}},
		"attach": {"remote", worker.Config{Attach: true}},
	} {
		t.Run(name, func(t *testing.T) {
			e := serving(t, Config{Store: pgtest.DSN(t), PayloadThreshold: 500, PayloadStore: "file://" + filepath.ToSlash(t.TempDir())})
			tt.cfg.Server, tt.cfg.ID = "http://"+e.cfg.Listen, "w"
			w := worker.New(tt.cfg)
			w.Handle("twice", func(_ context.Context, j worker.Job) (any, error) {
				var in struct{ Text string }
				if err := json.Unmarshal(j.Input, &in); err != nil {
					return nil, err
				}
				return map[string]string{"text": in.Text + in.Text}, nil
			})
			ctx, stop := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { over <- w.Run(ctx) }()
			t.Cleanup(func() {
				stop()
				<-over
			})
			require.NoError(t, e.Publish(t.Context(), "f",
				[]byte("nodes: {a: {exec_type: "+tt.exec+
					", service: twice, prep: {input_map: {text: $run.text}}}, b: {exec_type: "+
					tt.exec+", service: twice, depends_on: [a], prep: {input_key: $deps.a}}}")))
			require.Eventually(t, func() bool {
				known, err := e.Workers(t.Context())
				return err == nil && slices.ContainsFunc(known, func(w KnownWorker) bool { return w.ID == "w" && w.State == "online" })
			}, 20*time.Second, 10*time.Millisecond)
			id, err := e.Start(t.Context(), "f", map[string]string{"text": long})
			require.NoError(t, err)
			waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			result, err := e.Wait(waiting, id)
			require.NoError(t, err)
			require.EqualValues(t, flow.TaskCompleted, result.Status, result.Error)
			want := must(json.Marshal(map[string]any{"b": map[string]string{"text": long + long + long + long}}))
			require.JSONEq(t, string(want), string(result.Value))
			require.Len(t, objectsOf(t, e.cfg.PayloadStore[len("file://"):], id), 3)
		})
	}
}
