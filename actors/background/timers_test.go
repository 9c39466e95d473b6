package background

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waits is a clock that records durations of timers, which never fire by themselves.
type waits struct {
	asked []time.Duration
	ring  func()
}

func (w *waits) Now() time.Time { return time.UnixMilli(0) }

func (w *waits) AfterFunc(d time.Duration, f func()) func() bool {
	w.asked, w.ring = append(w.asked, d), f
	return func() bool { return true }
}

func TestADistantDeadlineNeedsOneTimer(t *testing.T) {
	clock := &waits{}
	now := int64(1_700_000_000_000)
	rang := 0
	timers := NewTimers(func() int64 { return now }, clock)
	timers.Set(NewTimer(func() { rang++ }), now+10_000_000_000_000)
	require.Len(t, clock.asked, 1)
	require.Greater(t, clock.asked[0], 99*365*24*time.Hour)

	now += clock.asked[0].Milliseconds()
	clock.ring() // too early: it checks again
	require.Zero(t, rang)
	require.Len(t, clock.asked, 2)
	require.Positive(t, clock.asked[1])
}

func TestAPastTimeFiresAtOnce(t *testing.T) {
	clock := &waits{}
	timers := NewTimers(func() int64 { return 1_000 }, clock)
	timers.Set(NewTimer(func() {}), 1)
	require.Equal(t, []time.Duration{0}, clock.asked)
}
