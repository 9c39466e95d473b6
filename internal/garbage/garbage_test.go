package garbage

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLessGarbageGathersWhereMuchIsInUse(t *testing.T) {
	for live, percent := range map[uint64]int{0: 200, 10 << 20: 200, 64 << 20: 200, 128 << 20: 100,
		200 << 20: 64, 256 << 20: 50, 4 << 30: 50} {
		require.Equal(t, percent, percentFor(live), "%d MiB", live>>20)
	}
}

func TestWhatIsInUseIsFollowed(t *testing.T) {
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	Bound()
	held := make([]byte, 300<<20)
	require.Eventually(t, func() bool {
		runtime.GC()
		now := debug.SetGCPercent(least)
		if now != least {
			debug.SetGCPercent(now)
		}
		return now == least
	}, 30*time.Second, time.Millisecond)
	runtime.KeepAlive(held)
}

func TestTheEnvironmentGoesBefore(t *testing.T) {
	percent := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	t.Setenv("GOGC", "77")
	Bound()
	require.Equal(t, 77, debug.SetGCPercent(77))
}
