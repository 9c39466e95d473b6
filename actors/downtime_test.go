package actors_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
)

// afterDowntime is a member that comes when a claim of another one's time has run out, and that claim.
func afterDowntime(t *testing.T, visibility time.Duration) (*theatre, actors.Claimed) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	before := start(t, actors.Config{Store: store, Visibility: 200 * time.Millisecond})
	before.begin(t, before.publish(t, queueOf("x")), `{}`)
	got := before.poll(t, time.Minute, 1, "x")
	require.Len(t, got, 1)
	require.NoError(t, before.Stop(t.Context()))
	require.Eventually(t, func() bool { return before.Now().UnixMilli() > got[0].Until }, 10*time.Second, time.Millisecond)
	return start(t, actors.Config{Store: store, Visibility: visibility}), got[0]
}

func TestAClaimOutlivesADowntimeThatWasLongerThanItsTime(t *testing.T) {
	th, claim := afterDowntime(t, time.Hour)
	require.Empty(t, th.poll(t, 500*time.Millisecond, 1, "x"))
	canceled, err := th.Heartbeat(t.Context(), "w", []string{claim.Job.ID()}, claim.Token)
	require.NoError(t, err)
	require.Empty(t, canceled)
}

func TestAClaimOfAWorkerThatDoesNotComeBackIsLostAfterADowntime(t *testing.T) {
	th, claim := afterDowntime(t, 100*time.Millisecond)
	got := th.poll(t, time.Minute, 1, "x")
	require.Len(t, got, 1)
	require.Equal(t, claim.Job.ID(), got[0].Job.ID())
	require.Equal(t, 1, got[0].Job.Deliveries)
}
