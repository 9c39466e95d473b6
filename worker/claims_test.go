package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClaimThatHoldsForAgesIsNotProlongedAllTheTime(t *testing.T) {
	w := New(Config{Server: "http://127.0.0.1:1", Heartbeat: time.Hour})
	for _, ms := range []int64{100_000_000_000_000, 10_000_000_000_000, 4 * time.Hour.Milliseconds()} {
		c := w.claims.add(t.Context(), pulled{Job: Job{ID: "q"}, lease: lease(ms)})
		require.Equal(t, time.Hour, c.every, "a claim of %d ms", ms)
		w.claims.remove(c)
	}
	require.Equal(t, defaultLease, lease(0))
}
