package actors_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// company is a store that, once it is to, hands a task over only when all tasks were asked for.
type company struct {
	persistence.Store
	mu      sync.Mutex
	missing map[string]bool
	all     chan struct{}
}

func (s *company) expect(tasks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing, s.all = map[string]bool{}, make(chan struct{})
	for _, task := range tasks {
		s.missing[task] = true
	}
}

func (s *company) Load(ctx context.Context, tasks []string) ([]*persistence.Record, error) {
	s.mu.Lock()
	all := s.all
	for _, task := range tasks {
		if s.missing[task] {
			if delete(s.missing, task); len(s.missing) == 0 {
				close(all)
			}
		}
	}
	s.mu.Unlock()
	if all != nil {
		select {
		case <-all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Store.Load(ctx, tasks)
}

func TestAHeartbeatProlongsAllItsClaimsAtOnce(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	held := &company{Store: store}
	th := start(t, actors.Config{Store: held, IdleAfter: 20 * time.Millisecond})
	version := th.publish(t, queueOf("x"))
	tasks := []string{th.begin(t, version, `{}`), th.begin(t, version, `{}`), th.begin(t, version, `{}`)}
	var jobs []string
	for len(jobs) < len(tasks) {
		for _, got := range th.poll(t, patience, 3, "x") {
			jobs = append(jobs, got.Job.ID())
		}
	}
	require.NoError(t, th.Do(t.Context(), tasks[1], flow.Cancel{}, ""))
	th.eventuallyEmpty(t)
	held.expect(tasks...)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	canceled, err := th.Heartbeat(ctx, "w", jobs, "")
	require.NoError(t, err)
	require.Len(t, canceled, 1)
	require.Contains(t, canceled[0], tasks[1])

	canceled, err = th.Heartbeat(ctx, "w", append(jobs, "nope"), "")
	require.NoError(t, err)
	require.Len(t, canceled, 2)
	require.Contains(t, canceled, "nope")
}
