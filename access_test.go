package troupe

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/worker"
)

// A worker needs only the worker role, for every way to get jobs.
func TestAWorkerTokenIsSufficientToRunJobs(t *testing.T) {
	e := serving(t, Config{Store: "sqlite:" + t.TempDir() + "/troupe.db", Tokens: []string{"root"}})
	address := "http://" + e.cfg.Listen
	admin, err := client.New(address, client.Options{Token: "root"})
	require.NoError(t, err)
	defer admin.Close()
	made, err := admin.CreateToken(t.Context(), wire.TokenRequest{Name: "the-worker", Role: "worker"})
	require.NoError(t, err)
	for name, how := range map[string]worker.Config{"attached": {Attach: true}, "pull": {Pull: true}} {
		t.Run(name, func(t *testing.T) {
			kind := map[bool]string{true: "remote", false: "queue"}[how.Attach]
			_, err := admin.Publish(t.Context(), name,
				[]byte(`{"start":"a","nodes":{"a":{"service":"double","exec_type":"`+kind+
					`","prep":{"input_key":"$params.n"},"post":{"output_key":"doubled"}}}}`))
			require.NoError(t, err)
			how.Server, how.Token = address, made.Secret
			w := worker.New(how)
			worker.Handle(w, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			eventually(t, func() bool { // before that, a job for an attached worker has no receiver
				there, err := admin.WorkerPage(t.Context(), client.WorkerQuery{Service: "double", State: "online"})
				return err == nil && len(there.Items) > 0
			})
			started, err := admin.Start(t.Context(), wire.StartRequest{Flow: name, Params: json.RawMessage(`{"n":21}`)})
			require.NoError(t, err)
			var task *wire.Task
			eventually(t, func() bool {
				task, err = admin.Task(t.Context(), started.ID)
				return err == nil && !task.EndedAt.IsZero()
			})
			require.Equal(t, "completed", task.State, task.Error)
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				require.NoError(t, err)
			}
		})
	}
}
