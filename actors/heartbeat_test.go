package actors_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// groupedLoads is a store that, when it is armed, returns a task only after all tasks were
// requested.
type groupedLoads struct {
	persistence.Store
	mu      sync.Mutex
	missing map[string]bool
	all     chan struct{}
}

func (s *groupedLoads) expectLoads(tasks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing, s.all = map[string]bool{}, make(chan struct{})
	for _, task := range tasks {
		s.missing[task] = true
	}
}

func (s *groupedLoads) Load(ctx context.Context, tasks []string) ([]*persistence.Record, error) {
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

func TestAHeartbeatExtendsAllItsClaimsTogether(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	held := &groupedLoads{Store: store}
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
	held.expectLoads(tasks...)
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

func TestAHeartbeatExtendsTheJobsOfReachableTasks(t *testing.T) {
	s := &stuck{Store: model.New(model.Options{}), release: make(chan struct{})}
	s.task.Store("nobody's")
	th := start(t, actors.Config{Store: s, Visibility: time.Hour})
	version := th.publish(t, queueOf("x"))
	for range 2 {
		th.begin(t, version, `{}`)
	}
	got := th.poll(t, patience, 2, "x")
	require.Len(t, got, 2)
	require.NoError(t, th.Stop(t.Context()))
	away, well := got[0], got[1]
	s.task.Store(away.Job.Task)
	th = start(t, actors.Config{Store: s})
	extend := func(claims ...engine.Claim) (engine.Extended, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return engine.Extend(ctx, th.Member, "w", claims, 3*time.Hour)
	}
	claims := []engine.Claim{{Job: away.Job.ID(), Token: away.Token}, {Job: well.Job.ID(), Token: well.Token}}
	x, err := extend(claims[1]) // this loads its task
	require.NoError(t, err)
	require.Empty(t, x)
	x, err = extend(claims...)
	require.NoError(t, err)
	require.Equal(t, engine.Extended{Unheard: []string{away.Job.ID()}}, x)
	_, err = extend(claims[0])
	require.Error(t, err, "nothing was prolonged")
	s.task.Store("nobody's")
	close(s.release)
	view, err := th.reader.View(t.Context(), well.Job.Task)
	require.NoError(t, err)
	job, _ := view.State.Job(well.Job.Address)
	require.Greater(t, job.Until, well.Until)
}
