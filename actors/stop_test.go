package actors_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAJobThatOutlastsTheGraceKeepsNoOtherTaskFromItsRest(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	cfg := withFunc(func(ctx context.Context, _ flow.Job) flow.Report {
		<-ctx.Done()
		return flow.Report{Error: "stopped"}
	})
	cfg.Store = store
	th := start(t, cfg)
	busy := th.begin(t, th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`), `{}`)
	waiting := th.begin(t, th.publish(t, untilApproved), `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, th.Stop(ctx))
	unfinished, err := store.Unfinished(t.Context(), nil, "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{busy}, unfinished, "task %s waits in the store", waiting)
}

// unreachable is a store that does not answer a member that leaves.
type unreachable struct{ persistence.Store }

func (unreachable) Leave(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestLeavingAStoreThatDoesNotAnswerEnds(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	th := start(t, actors.Config{Store: unreachable{store}, Lease: 100 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- th.Stop(context.Background()) }()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(patience):
		require.Fail(t, "the member never ends")
	}
}
