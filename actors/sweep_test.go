package actors_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
)

// slowRests is a store that, when it is slow, writes the rests of tasks only after it is opened.
type slowRests struct {
	persistence.Store
	slow *atomic.Bool
	open chan struct{}
}

func (s slowRests) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	for _, c := range batch {
		if c.Rest != nil && c.Rest.Resting && s.slow.Load() {
			<-s.open
		}
	}
	return s.Store.Commit(ctx, incarnation, batch)
}

func TestManyRestingTasksLeaveRoomForNewOnes(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	slow := slowRests{store, new(atomic.Bool), make(chan struct{})}
	const tasks = 2500
	th := start(t, actors.Config{Store: slow, IdleAfter: time.Second, MaxUncommitted: 2000})
	opened := sync.OnceFunc(func() { close(slow.open) })
	t.Cleanup(opened) // before the member is killed
	// A task with a job in the queue is put to rest by a commit of its own.
	version := th.publish(t, `{"start":"q","nodes":{"q":{"exec_type":"queue","service":"nobody"}}}`)
	var starts sync.WaitGroup
	for range 50 {
		starts.Go(func() {
			for range tasks / 50 {
				_, _, err := th.StartTask(context.Background(), engine.NewTask{VersionID: version})
				require.NoError(t, err)
			}
		})
	}
	starts.Wait()
	slow.slow.Store(true) // all of them are idle in a moment
	last := int64(-1)
	require.Eventually(t, func() bool {
		now := th.Stats().Uncommitted
		settled := now > 0 && now == last
		last = now
		return settled || th.Stats().Actors["task"] == 0
	}, patience, 50*time.Millisecond)
	another := make(chan error, 1)
	go func() {
		_, _, err := th.StartTask(context.Background(), engine.NewTask{VersionID: version})
		another <- err
	}()
	require.Eventually(t, func() bool { return th.Stats().Messages > 0 || len(another) > 0 }, patience, time.Millisecond)
	opened()
	require.NoError(t, <-another)
	th.eventuallyEmpty(t)
}
