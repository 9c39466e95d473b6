package troupe_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// slow is another system that is slow to start jobs, and that does not notice a cancellation
// meanwhile.
type slow struct {
	asked, begins chan struct{}
	canceled      chan troupe.External
}

func (s *slow) Start(context.Context, flow.Job, bool) flow.Report {
	close(s.asked)
	<-s.begins
	return flow.Report{Deferred: []troupe.External{{Service: "slow", ID: "j-1"}}}
}

func (s *slow) Poll(context.Context, troupe.External) (troupe.ExternalStatus, error) {
	return troupe.ExternalStatus{}, nil
}

func (s *slow) Cancel(_ context.Context, x troupe.External) error {
	s.canceled <- x
	return nil
}

func TestExternalJobsThatStartDuringACancellationAreCanceled(t *testing.T) {
	for name, store := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "x.db"), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			s := &slow{make(chan struct{}), make(chan struct{}), make(chan troupe.External, 1)}
			e, err := troupe.Open(t.Context(), troupe.Config{Store: store,
				Starters: map[string]troupe.Starter{"slow": s},
				Trackers: map[string]troupe.Tracker{"slow": s}})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			require.NoError(t, e.Publish(t.Context(), "f", []byte("nodes: {a: {exec_type: external, service: slow}}")))
			id, err := e.Start(t.Context(), "f", nil)
			require.NoError(t, err)
			<-s.asked
			require.NoError(t, e.Cancel(t.Context(), id))
			close(s.begins)
			select {
			case x := <-s.canceled:
				require.Equal(t, "j-1", x.ID)
				require.Equal(t, id, x.Task)
				require.NotEmpty(t, x.Job)
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on, and nobody knows of it")
			}
		})
	}
}
