package actors_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

func TestABatchIsBoundedByItsBytesToo(t *testing.T) {
	const n = 20
	var largest atomic.Int64
	release := make(chan struct{})
	th := start(t, actors.Config{Store: faulty.Wrap(newLeaping(),
		faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
			size := 0
			for _, c := range batch {
				size += len(c.Events)
			}
			largest.Store(max(largest.Load(), int64(size)))
			return faulty.Hold(release)
		}})})
	version := th.publish(t, untilApproved)
	params := json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20-100) + `"}`)
	errs := make(chan error, n)
	for range n {
		go func() {
			_, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: params})
			errs <- err
		}()
	}
	require.Eventually(t, func() bool { return th.Stats().Uncommitted == n }, patience, 10*time.Millisecond)
	close(release)
	for range n {
		require.NoError(t, <-errs)
	}
	require.Less(t, largest.Load(), int64(5<<20))
}

func TestAWatcherGetsARowWhoseAnswerWasLost(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var armed atomic.Bool
	clock := newNoting(10 * time.Second) // like a watcher that got no notice
	th := start(t, actors.Config{Host: actors.Host{Clock: clock},
		Store: faulty.Wrap(store, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
			if armed.Swap(false) {
				return faulty.Lose()
			}
			return faulty.Fault{}
		}})})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for row, err := range th.Watch(ctx, id, 0) {
		require.NoError(t, err)
		if row.Seq == 1 {
			armed.Store(true)
			go func() {
				<-clock.begun
				_ = th.Do(ctx, id, flow.Signal{Key: "k", Value: json.RawMessage(`1`)}, "")
			}()
			continue
		}
		return
	}
	require.Fail(t, "the watcher was not told")
}
