package actors_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// takings counts the tasks that were found unfinished and those that were loaded. No task is loaded
// before gate were found.
type takings struct {
	persistence.Store
	gate                int64
	pages               atomic.Int64
	found, loaded, most atomic.Int64
}

func (s *takings) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	ids, err := s.Store.Unfinished(ctx, shards, after, limit)
	s.pages.Add(1)
	s.most.Store(max(s.most.Load(), s.found.Add(int64(len(ids)))-s.loaded.Load()))
	return ids, err
}

func (s *takings) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	for s.found.Load() < s.gate && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // the store is slow
	}
	s.loaded.Add(int64(len(ids)))
	return s.Store.Load(ctx, ids)
}

func TestAMoveOfManyTasksDoesNotDelayOthers(t *testing.T) {
	const many = 6_000
	var most atomic.Int64
	var a *harness
	moving := make(chan struct{})
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(_ string, _ []persistence.Commit) faulty.Fault {
		select {
		case <-moving:
			for most.Load() == 0 && a.Stats().Uncommitted < 1_000 {
				time.Sleep(time.Millisecond) // the store is slow
			}
			most.Store(max(most.Load(), a.Stats().Uncommitted))
		default:
		}
		return faulty.Fault{}
	}})
	c := newCircuit(store)
	cfg := withFunc(newLedger().carrier("a"))
	cfg.Concurrency, cfg.IdleAfter = map[flow.ExecType]int{flow.ExecFunc: 1}, time.Hour
	a = c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	version := a.publish(t, oneJob)
	for range many {
		a.begin(t, version, `{}`)
	}
	close(moving)
	require.NoError(t, a.Lose(t.Context(), persistence.AllShards()))
	require.LessOrEqual(t, most.Load(), int64(1_100), "commits at once")

	counted := &takings{Store: store, gate: 2_000}
	c.store = counted
	b := c.join(t, cfg)
	c.give(b, persistence.AllShards()...)
	require.Eventually(t, func() bool { return counted.loaded.Load() == many }, patience, time.Millisecond)
	require.LessOrEqual(t, counted.most.Load(), int64(2_000), "tasks that are being taken up at once")
	require.Eventually(t, func() bool { return counted.pages.Load() == many/1000+1 }, patience, time.Millisecond)
	require.EqualValues(t, many, b.Stats().Actors["task"])
}

func TestAPermanentlyBusyMemberRecoversGainedTasks(t *testing.T) {
	release := make(chan struct{})
	var held atomic.Bool
	c := newCircuit(faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
		if held.Load() {
			return faulty.Hold(release)
		}
		return faulty.Fault{}
	}}))
	cfg := withFunc(newLedger().carrier("a"))
	cfg.IdleAfter = time.Hour
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	version := a.publish(t, oneJob)
	id := a.begin(t, version, `{}`)
	others := slices.Delete(persistence.AllShards(), persistence.ShardOf(id), persistence.ShardOf(id)+1)
	require.NoError(t, a.Lose(t.Context(), persistence.AllShards()))
	cfg.MaxUncommitted = 2
	counted := &takings{Store: c.store}
	c.store = counted
	b := c.join(t, cfg)
	c.give(b, others...)
	require.Eventually(t, func() bool { return counted.pages.Load() == 1 }, patience, time.Millisecond)
	held.Store(true)
	var starting sync.WaitGroup
	defer starting.Wait()
	defer close(release)
	for range 20 {
		starting.Go(func() { _, _, _ = b.StartTask(t.Context(), engine.NewTask{VersionID: version}) })
	}
	require.Eventually(t, func() bool { return b.Stats().Uncommitted > 1 }, patience, time.Millisecond)
	c.give(b, shardOf(id)...)
	require.Eventually(t, func() bool { return counted.loaded.Load() == 1 }, 10*time.Second, time.Millisecond)
	require.Greater(t, b.Stats().Uncommitted, int64(1), "it is as busy as before")
}
