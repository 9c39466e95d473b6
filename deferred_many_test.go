package troupe_test

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// TestManyTasksWaitForExternalJobsOutsideMemoryAndEndAfterRestart lets TROUPE_DEFERRED tasks wait
// at once: a thousand by default.
func TestManyTasksWaitForExternalJobsOutsideMemoryAndEndAfterRestart(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { tasksThatWaitOutside(t, "sqlite:"+filepath.Join(t.TempDir(), "x.db")) })
	t.Run("postgres", func(t *testing.T) { tasksThatWaitOutside(t, pgtest.DSN(t)) })
}

func tasksThatWaitOutside(t *testing.T, store string) {
	many, err := strconv.Atoi(cmp.Or(os.Getenv("TROUPE_DEFERRED"), "1000"))
	require.NoError(t, err)
	before := heap()
	closed := newGate()
	closed.again = time.Second
	e, begun := deferring(t, store, closed, gated)
	ids := make([]string, many)
	var starting sync.WaitGroup
	for from := range 20 {
		starting.Go(func() {
			for i := from; i < many; i += 20 {
				id, err := e.Start(t.Context(), "work", nil)
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = id
			}
		})
	}
	starting.Wait()
	require.Eventually(t, func() bool { return begun.Load() == int64(many) && e.InMemory() == 0 }, 5*time.Minute, 10*time.Millisecond)
	added := heap() - before
	require.Less(t, added, int64(200<<20))
	t.Logf("%d tasks wait, they add %d MB", many, added>>20)
	require.NoError(t, e.Close())

	open := newGate()
	open.open.Store(true)
	e, again := deferring(t, store, open, gated)
	for _, id := range ids {
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.JSONEq(t, `{"work": "of the work"}`, string(result.Value), result.Error)
	}
	require.Zero(t, again.Load())
	require.NoError(t, e.Close())
}

// heap returns the bytes of the heap in use, including the leftovers of other tests.
func heap() int64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
