package actors_test

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

func TestLargeTasksThatEndAtOnceHaveFewSnapshotsInMemory(t *testing.T) {
	const n, size = 100, 256 << 10
	var armed atomic.Bool
	var written sync.Map
	release := make(chan struct{})
	th := start(t, actors.Config{IdleAfter: time.Hour, Store: faulty.Wrap(newLeaping(),
		faulty.Hooks{Commit: func(_ string, batch []persistence.Commit) faulty.Fault {
			for _, c := range batch {
				if c.Snapshot != nil && armed.Load() {
					written.Store(c.Task, true)
				}
			}
			if armed.Load() {
				return faulty.Hold(release)
			}
			return faulty.Fault{}
		}})})
	version := th.publish(t, untilApproved)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = th.begin(t, version, `{"a":"`+strings.Repeat("x", size)+`"}`)
		// enough for a snapshot at the end
		said := flow.Signal{Key: "k", Value: json.RawMessage(`"` + strings.Repeat("y", 20<<10) + `"`)}
		require.NoError(t, th.Do(t.Context(), ids[i], said, ""))
	}

	armed.Store(true)
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() { _ = th.Do(t.Context(), id, flow.Cancel{}, "") })
	}
	require.Eventually(t, func() bool {
		_, waiting := th.Snapshots()
		return th.Stats().Uncommitted+int64(waiting) == n
	}, patience, 10*time.Millisecond, "all have ended")
	bytes, waiting := th.Snapshots()
	require.Less(t, bytes, 2*actors.SnapshotsAtOnce, "some actors may have looked at the same time")
	require.NotZero(t, waiting)

	close(release)
	all.Wait()
	for _, id := range ids {
		require.Equal(t, flow.TaskCanceled, th.ended(t, id).State.Status)
		_, ok := written.Load(id)
		require.True(t, ok, "it has its snapshot")
	}
	bytes, waiting = th.Snapshots()
	require.Zero(t, bytes)
	require.Zero(t, waiting)
}
