package actors_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnEndedTaskIsDeletedSoonAfterAShortRetention(t *testing.T) {
	cfg := withFunc(func(context.Context, flow.Job) flow.Report { return flow.Report{} })
	cfg.Retention = 100 * time.Millisecond
	th := start(t, cfg)
	id := th.begin(t, th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`), `{}`)
	require.Eventually(t, func() bool {
		_, err := th.store.Task(t.Context(), id)
		return errors.Is(err, persistence.ErrNotFound)
	}, patience/2, 10*time.Millisecond)
}

func TestChoresRunSoonAfterTheirShardIsGained(t *testing.T) {
	clock := newCatching(10 * time.Second)
	done := make(chan int64, 1)
	cfg := withFunc(increment)
	cfg.Host.Clock = clock
	cfg.Chores = []actors.Chore{{Name: "old things", Age: 30 * 24 * time.Hour, Do: func(_ context.Context, before int64) (bool, error) {
		done <- before
		return false, nil
	}}}
	c := newCircuit(nil)
	a := c.join(t, cfg)
	clock.next(t)() // it owns nothing yet
	require.Empty(t, done)
	c.give(a, persistence.AllShards()...)
	require.Eventually(t, func() bool {
		select {
		case look := <-clock.caught:
			look()
		default:
		}
		return len(done) > 0
	}, patience, time.Millisecond)
	require.InDelta(t, time.Now().Add(-30*24*time.Hour).UnixMilli(), <-done, 60_000)
}

// crowded is a store with unused keys.
type crowded struct {
	persistence.Store
	keys atomic.Int64
}

func (s *crowded) ForgetKeys(_ context.Context, limit int) (int, error) {
	n := min(s.keys.Load(), int64(limit))
	s.keys.Add(-n)
	return int(n), nil
}

func TestAllUnusedKeysAreDeleted(t *testing.T) {
	store := &crowded{Store: model.New(model.Options{})}
	store.keys.Store(2000)
	start(t, actors.Config{Store: store})
	require.Eventually(t, func() bool { return store.keys.Load() == 0 }, patience/2, 10*time.Millisecond)
}

func TestExpiredDeliveriesAreDeleted(t *testing.T) {
	store := model.New(model.Options{})
	old := persistence.Delivery{Hook: "h", ID: "a", Until: 1}
	_, err := store.BeginDelivery(t.Context(), old)
	require.NoError(t, err)
	lasting := persistence.Delivery{Hook: "h", ID: "b", Until: time.Now().Add(time.Hour).UnixMilli()}
	_, err = store.BeginDelivery(t.Context(), lasting)
	require.NoError(t, err)
	start(t, actors.Config{Store: store})
	require.Eventually(t, func() bool {
		known, err := store.BeginDelivery(t.Context(), persistence.Delivery{Hook: "h", ID: "a", Until: 2})
		return err == nil && known == nil
	}, patience/2, 10*time.Millisecond)
	known, err := store.BeginDelivery(t.Context(), lasting)
	require.NoError(t, err)
	require.NotNil(t, known)
}
