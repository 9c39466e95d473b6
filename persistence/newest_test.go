package persistence_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestTheNewestVersionIsKnownAsSoonAsItIsPublished(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
	require.NoError(t, err)
	defer store.Close()
	store = persistence.Newest(store, time.Now)
	require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f"}))
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 { // they read and fill the cache all the time
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = store.FindVersion(t.Context(), "f", 0) // at first there is none
				}
			}
		})
	}
	for i := 1; i <= 50; i++ {
		id := fmt.Sprint("v", i)
		require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: id, FlowID: "f",
			Number: i, Status: "published", Definition: []byte("{}")}))
		v, err := store.FindVersion(t.Context(), "f", 0)
		require.NoError(t, err)
		require.Equal(t, id, v.ID)
	}
	close(done)
	readers.Wait()
}

func TestADeletedFlowIsForgotten(t *testing.T) {
	inner := model.New(model.Options{})
	store := persistence.Newest(inner, time.Now)
	publish := func(flow string) {
		require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: flow, Slug: "slug"}))
		require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: flow + "-1", FlowID: flow, Status: "published"}))
	}
	newest := func() (string, error) {
		f, err := store.FlowBySlug(t.Context(), "slug")
		if err != nil {
			return "", err
		}
		v, err := store.FindVersion(t.Context(), f.ID, 0)
		if err != nil {
			return "", err
		}
		return v.ID, nil
	}
	for i := range 3 {
		flow := fmt.Sprint("flow", i)
		publish(flow)
		for range 2 { // the second time from the cache
			id, err := newest()
			require.NoError(t, err)
			require.Equal(t, flow+"-1", id)
		}
		_, err := store.DeleteFlow(t.Context(), flow, 9)
		require.NoError(t, err)
		_, err = newest()
		require.ErrorIs(t, err, persistence.ErrNotFound)
		_, err = store.FindVersion(t.Context(), flow, 0)
		require.ErrorIs(t, err, persistence.ErrNotFound)
	}
}

// deleter deletes the flow once, at the moment when its version is created.
type deleter struct {
	persistence.Store
	done bool
}

func (d *deleter) CreateVersion(ctx context.Context, v persistence.Version) error {
	if !d.done {
		d.done = true
		if _, err := d.DeleteFlow(ctx, v.FlowID, 9); err != nil {
			return err
		}
	}
	return d.Store.CreateVersion(ctx, v)
}

func TestPublishingWhileTheFlowIsDeletedSucceeds(t *testing.T) {
	store := persistence.Newest(&deleter{Store: model.New(model.Options{})}, time.Now)
	p := persistence.Publication{Slug: "f", Definition: []byte("start: a\nnodes: {a: {service: s}}\n")}
	published, err := persistence.Publish(t.Context(), store, p)
	require.NoError(t, err)
	require.True(t, published.Created)
	f, err := store.FlowBySlug(t.Context(), "f")
	require.NoError(t, err)
	require.Equal(t, f.ID, published.Version.FlowID)
}

// questioned counts the calls that reach a store.
type questioned struct {
	persistence.Store
	asked  int
	locked bool
}

func (c *questioned) FindVersion(ctx context.Context, flow string, number int) (*persistence.Version, error) {
	c.asked++
	return c.Store.FindVersion(ctx, flow, number)
}

func (c *questioned) Locked() bool { return c.locked }

func TestPublicationsOfOtherMembersAreKnownWithinASecond(t *testing.T) {
	for _, locked := range []bool{false, true} {
		t.Run(fmt.Sprint("locked ", locked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := model.New(model.Options{})
				counted := &questioned{Store: inner, locked: locked}
				store := persistence.Newest(counted, time.Now)
				publish := func(s persistence.Store, version string) {
					require.NoError(t, s.CreateVersion(t.Context(), persistence.Version{ID: version, FlowID: "f", Status: "published"}))
				}
				newest := func() string {
					v, err := store.FindVersion(t.Context(), "f", 0)
					require.NoError(t, err)
					return v.ID
				}
				require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f", Slug: "slug"}))
				publish(store, "own")
				require.Equal(t, "own", newest())
				publish(inner, "other's")
				require.Equal(t, "own", newest())
				time.Sleep(persistence.NewestAge)
				if locked {
					require.Equal(t, "own", newest(), "nobody else is there")
					require.Equal(t, 1, counted.asked)
					return
				}
				require.Equal(t, "other's", newest())
				_, err := inner.DeleteFlow(t.Context(), "f", 9)
				require.NoError(t, err)
				time.Sleep(persistence.NewestAge)
				_, err = store.FindVersion(t.Context(), "f", 0)
				require.ErrorIs(t, err, persistence.ErrNotFound)
				_, err = store.FlowBySlug(t.Context(), "slug")
				require.ErrorIs(t, err, persistence.ErrNotFound)
			})
		})
	}
}

func TestPublicationsOfOtherMembersAreKnownAtOnceAfterForget(t *testing.T) {
	inner := &questioned{Store: model.New(model.Options{})}
	here, there := persistence.Newest(inner, time.Now), persistence.Newest(inner, time.Now)
	there.Changed = func(_ context.Context, flow string) { here.Forget(flow) }
	require.NoError(t, there.CreateFlow(t.Context(), persistence.Flow{ID: "f", Slug: "slug"}))
	for _, version := range []string{"first", "second"} {
		require.NoError(t, there.CreateVersion(t.Context(), persistence.Version{ID: version, FlowID: "f", Status: "published"}))
		_, err := here.FlowBySlug(t.Context(), "slug")
		require.NoError(t, err)
		v, err := here.FindVersion(t.Context(), "f", 0)
		require.NoError(t, err)
		require.Equal(t, version, v.ID)
	}
	_, err := there.DeleteFlow(t.Context(), "f", 9)
	require.NoError(t, err)
	_, err = here.FlowBySlug(t.Context(), "slug")
	require.ErrorIs(t, err, persistence.ErrNotFound)
}

func TestAFlowInConstantUseIsReadTwiceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := &questioned{Store: model.New(model.Options{})}
		store := persistence.Newest(counted, time.Now)
		require.NoError(t, store.CreateFlow(t.Context(), persistence.Flow{ID: "f"}))
		require.NoError(t, store.CreateVersion(t.Context(), persistence.Version{ID: "v", FlowID: "f", Status: "published"}))
		for range 10_000 {
			_, err := store.FindVersion(t.Context(), "f", 0)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
		}
		require.InDelta(t, 20, counted.asked, 1)
	})
}
