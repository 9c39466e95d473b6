package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMemberUnreachableOnlyByPeersKeepsItsShards(t *testing.T) {
	c := newTestCluster(t, theMembers)
	c.open(t.Context())
	tickers := c.startTickers(t.Context(), manyTickers)
	require.NoError(t, c.await(t.Context(), "every member owns tasks", func(ctx context.Context) error { return c.spread(ctx, tickers) }))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	moves := c.watchOwners(ctx)
	require.NoError(t, c.cut(0, peers))
	time.Sleep(longest) // gossip considers the member dead
	require.NoError(t, c.heal(0, peers))
	time.Sleep(shortest) // and finds it again
	stop()
	moved, twice := moves.count()
	c.figure(map[string]any{"figure": "gossip is split, the store can be reached", "shards_moved": moved, "moved_twice": twice})
	require.Zero(t, twice, "shards that changed hands twice")
	c.stopTickers(t.Context(), tickers)
	c.leave()
}

// moves counts how often each shard changed its owner.
type moves struct {
	watching sync.WaitGroup
	times    map[int]int
}

// watchOwners watches all owners until ctx ends.
func (c *testCluster) watchOwners(ctx context.Context) *moves {
	m := &moves{times: map[int]int{}}
	before, err := c.owners(ctx)
	require.NoError(c.t, err)
	m.watching.Go(func() {
		for ctx.Err() == nil {
			now, err := c.owners(ctx)
			for shard, owner := range now {
				if err == nil && before[shard] != owner && owner != "" {
					m.times[shard]++
					before[shard] = owner
				}
			}
			pause(ctx, 100*time.Millisecond)
		}
	})
	return m
}

// count ends the watch and returns how many shards changed their owner, and how many more than
// once.
func (m *moves) count() (moved, twice int) {
	m.watching.Wait()
	for _, times := range m.times {
		if times > 1 {
			twice++
		}
	}
	return len(m.times), twice
}
