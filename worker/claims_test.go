package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClaimThatHoldsForAgesIsNotProlongedAllTheTime(t *testing.T) {
	w := New(Config{Server: "http://127.0.0.1:1", Heartbeat: time.Hour})
	for _, ms := range []int64{100_000_000_000_000, 10_000_000_000_000, 4 * time.Hour.Milliseconds()} {
		c := w.claims.addJob(t.Context(), pulledJob{Job: Job{ID: "q"}, lease: toLease(ms)})
		require.Equal(t, time.Hour, c.every, "a claim of %d ms", ms)
		w.claims.removeJob(c)
	}
	require.Equal(t, defaultLease, toLease(0))
}
