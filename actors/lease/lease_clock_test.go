package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// drifting is a host's clock that the test advances.
type drifting struct{ now time.Time }

func (d *drifting) Now() time.Time { return d.now }

func (d *drifting) AfterFunc(time.Duration, func()) func() bool { return func() bool { return false } }

// driven renews a lease every 400 ms of the store's time, with a round trip of trip. The host's
// clock runs at the given rate. It returns by how much the lease's time was at most ahead of the
// store's, and behind it.
func driven(t *testing.T, rate float64, trip, lasting time.Duration) (ahead, behind time.Duration) {
	local := &drifting{now: time.Unix(5, 0)}
	store := time.Unix(1_000_000, 0)
	l := New(Config{TTL: 2 * time.Second})
	l.SetWork(background.New(t.Context(), host.Host{Clock: local}))
	var last time.Time
	pass := func(d time.Duration) {
		store, local.now = store.Add(d), local.now.Add(time.Duration(float64(d)*rate))
		if l.storeTime.IsZero() {
			return
		}
		now := l.Now()
		require.True(t, now.After(last), "time goes on")
		last = now
		ahead, behind = max(ahead, now.Sub(store)), max(behind, store.Sub(now))
	}
	for begun := store; store.Sub(begun) < lasting; {
		before := local.now
		pass(trip / 2)
		pulse := persistence.Pulse{Now: store}
		pass(trip / 2)
		_, err := l.recordRenewal(before, pulse, nil)
		require.NoError(t, err)
		for range 20 {
			pass(20 * time.Millisecond)
		}
	}
	return ahead, behind
}

func TestTimeFollowsTheStoreWithAnyHostClock(t *testing.T) {
	for _, rate := range []float64{0.9, 0.99, 0.9999, 1, 1.0001, 1.01, 1.1} {
		ahead, behind := driven(t, rate, 10*time.Millisecond, time.Hour)
		require.LessOrEqual(t, ahead, 60*time.Millisecond, "rate %v", rate)
		require.LessOrEqual(t, behind, 60*time.Millisecond, "rate %v", rate)
	}
}
