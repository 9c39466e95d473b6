package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// Repeats on a real store what the other tests of the keeper do in virtual time.
func TestMembersShareOnePostgres(t *testing.T) {
	store, err := postgres.Open(t.Context(), pgtest.DSN(t), postgres.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	w := &world{t: t, store: store, losing: func() time.Duration { return 5 * time.Millisecond }}
	defer w.stop()
	members := w.cluster("a", "b")
	w.gains, w.longest = 0, 0
	members = append(members, w.join("c"))
	w.within(time.Minute, "c has its share", w.settled)
	require.Equal(t, 340, w.gains)
	t.Logf("join: %v was the longest that a shard was nobody's", w.longest)
	require.Less(t, w.longest, 10*time.Second)

	w.longest = 0
	require.NoError(t, members[0].keeper.Leave(t.Context()))
	require.Empty(t, w.look().Shards(members[0].incarnation))
	w.within(time.Minute, "the others own all", w.settled)
	t.Logf("leave: %v", w.longest)
	require.Less(t, w.longest, 10*time.Second)
	require.NoError(t, store.Leave(t.Context(), members[0].incarnation))
	<-members[0].done

	members[1].kill()
	took := w.within(time.Minute, "c owns all", w.settled)
	t.Logf("kill: all was taken up after %v", took)
	require.GreaterOrEqual(t, took, DefaultTTL*3/5)
	require.NoError(t, members[2].ctx.Err())
}
