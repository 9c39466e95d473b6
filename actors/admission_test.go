package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// gate is a store whose commits wait while it is shut, and fail while it is broken.
type gate struct {
	persistence.Store
	shut   sync.RWMutex
	broken atomic.Bool
}

func (g *gate) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	g.shut.RLock()
	defer g.shut.RUnlock()
	if g.broken.Load() {
		return nil, errors.New("the disk is full")
	}
	return g.Store.Commit(ctx, incarnation, batch)
}

func gated(t *testing.T) *gate {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	return &gate{Store: store}
}

func TestBeyondTheBoundOnlyCommandsThatFreeCapacityAreAccepted(t *testing.T) {
	store := gated(t)
	th := start(t, actors.Config{Store: store, MaxUncommitted: 5})
	version := th.publish(t, untilApproved)
	id, other := th.begin(t, version, `{}`), th.begin(t, version, `{}`)

	store.shut.Lock()
	var all sync.WaitGroup
	tell := func(cmd flow.Command) {
		before := th.Stats().Messages
		all.Go(func() { assert.NotEqual(t, flow.Busy, flow.ErrorKindOf(th.Do(t.Context(), id, cmd, ""))) })
		require.Eventually(t, func() bool { return th.Stats().Messages > before }, patience, time.Millisecond)
	}
	for range 6 {
		tell(flow.Signal{Key: "k", Value: json.RawMessage(`1`)})
	}
	for _, cmd := range []flow.Command{flow.Signal{Key: "k"}, flow.Resume{}, flow.RetryTask{}} {
		err := th.Do(t.Context(), id, cmd, "")
		require.Equal(t, flow.Busy, flow.ErrorKindOf(err), "%T: %v", cmd, err)
	}
	_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version})
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	tell(flow.Report{Address: flow.Address{Node: "wait", Visit: 1, Attempt: 1}})
	for range 14 {
		tell(flow.Extend{Address: flow.Address{Node: "wait", Visit: 1, Attempt: 1}})
	}
	store.shut.Unlock()
	all.Wait()
	require.NoError(t, th.Cancel(t.Context(), other, flow.Cancel{}))
	require.Zero(t, th.Stats().Messages)
}

func TestWaitingValuesAreBoundedInBytes(t *testing.T) {
	store := gated(t)
	th := start(t, actors.Config{Store: store, MaxWaiting: 2_000})
	version := th.publish(t, untilApproved)
	id := th.begin(t, version, `{}`)
	value := json.RawMessage(`"` + strings.Repeat("x", 998) + `"`)
	store.shut.Lock()
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() { assert.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "k", Value: value}, "")) })
		require.Eventually(t, func() bool { return th.Stats().Messages > int64(n) }, patience, time.Millisecond)
	}
	require.Equal(t, flow.Busy, flow.ErrorKindOf(th.Do(t.Context(), id, flow.Signal{Key: "k"}, "")))
	_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version})
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	store.shut.Unlock()
	all.Wait()
	require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "k"}, ""))
}

func TestAMemberThatCannotWriteIsNotReady(t *testing.T) {
	store := gated(t)
	th := start(t, actors.Config{Store: store})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	require.NoError(t, th.Ready())
	store.broken.Store(true)
	done := make(chan error, 1)
	go func() { done <- th.Do(t.Context(), id, flow.Signal{Key: "ok", Value: json.RawMessage(`true`)}, "") }()
	require.Eventually(t, func() bool { return th.Ready() != nil }, patience, time.Millisecond)
	why := th.Ready()
	require.ErrorContains(t, why, "the store is not available, because it does not answer")
	require.NotRegexp(t, `\d`, why.Error(), "who logs what is new would log each number")
	require.ErrorIs(t, why, engine.ErrUnavailable)
	waited := <-done
	require.ErrorIs(t, waited, engine.ErrUnavailable)
	require.Empty(t, flow.ErrorKindOf(waited), "a refusal would mean that nothing was done")
	_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: "any"})
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err), "new work is refused at once")
	store.broken.Store(false)
	require.Eventually(t, func() bool { return th.Ready() == nil }, patience, time.Millisecond)
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status, "what was under way is written when it can be")
}
