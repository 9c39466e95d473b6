package actors_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
)

// afterDowntime returns a member that starts after the claim of another member's time has expired,
// and that claim.
func afterDowntime(t *testing.T, visibility time.Duration) (*harness, engine.Claimed) {
	store := newLeaping()
	before := start(t, actors.Config{Store: store, Visibility: time.Hour})
	before.begin(t, before.publish(t, queueOf("x")), `{}`)
	got := before.poll(t, patience, 1, "x")
	require.Len(t, got, 1)
	require.NoError(t, before.Stop(t.Context()))
	store.leap(2 * time.Hour)
	return start(t, actors.Config{Store: store, Visibility: visibility}), got[0]
}

func TestAClaimSurvivesADowntimeLongerThanItsTimeout(t *testing.T) {
	th, claim := afterDowntime(t, time.Hour)
	require.Empty(t, th.poll(t, 500*time.Millisecond, 1, "x"))
	canceled, err := th.Heartbeat(t.Context(), "w", []string{claim.Job.ID()}, claim.Token)
	require.NoError(t, err)
	require.Empty(t, canceled)
}

func TestAClaimIsLostIfItsWorkerIsNotBackAfterADowntime(t *testing.T) {
	th, claim := afterDowntime(t, 100*time.Millisecond)
	got := th.poll(t, patience, 1, "x")
	require.Len(t, got, 1)
	require.Equal(t, claim.Job.ID(), got[0].Job.ID())
	require.Equal(t, 1, got[0].Job.Deliveries)
}
