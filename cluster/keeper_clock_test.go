package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// All leases seem to have expired at once, or to last long.
func TestAnAdjustedStoreClockCostsNoMemberItsShards(t *testing.T) {
	for seed := range uint64(60) {
		inWorld(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 3))
			members := w.cluster("a", "b", "c")
			time.Sleep(5*time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
			w.gains = 0
			by := []time.Duration{time.Second, 3 * time.Second, time.Hour, -time.Second, -3 * time.Second, -time.Hour}[seed%6]
			w.step.Store(int64(by))
			if rng.IntN(2) == 0 {
				members[rng.IntN(3)].hint()
			}
			time.Sleep(time.Duration(rng.IntN(10_000)) * time.Millisecond)
			require.Len(t, w.look().Living(), 3, "seed %d, by %v", seed, by)
			require.Zero(t, w.gains)
		})
	}
}

func TestAMemberThatDiesAsTheStoresClockIsPutBackIsFenced(t *testing.T) {
	for _, by := range []time.Duration{-time.Second, -3 * time.Second, -time.Hour} {
		inWorld(t, func(t *testing.T, w *world) {
			dead := w.cluster("a", "b", "c")[0]
			time.Sleep(10 * time.Second)
			dead.kill()
			w.step.Store(int64(by))
			took := w.within(10*time.Second, "the others own all", func() bool { return !w.look().Lives(dead.incarnation) && w.settled() })
			require.LessOrEqual(t, took, 2*DefaultTTL+time.Second)
		})
	}
}

func TestMetMembersStayMetAfterTheStoresClockWasSetBack(t *testing.T) {
	v := func(until int64) *View {
		return NewView(&persistence.Cluster{Owners: make([]string, persistence.Shards), Members: []persistence.MemberRow{
			{Incarnation: "first", JoinedAt: 1_000, Until: until}, {Incarnation: "me", JoinedAt: 10_000_000, Until: 10_002_000}}})
	}
	row := func(v *View) persistence.MemberRow { m, _ := v.Member("first"); return m }
	p := &localMember{me: "me", ttl: DefaultTTL}
	before := v(5_000)
	require.False(t, p.hasMet(before, row(before)), "a store that was restored from a copy names members that live on the original")
	require.False(t, p.hasMet(before, row(before)))
	after := v(5_400)
	require.True(t, p.hasMet(after, row(after)), "it has renewed its lease here")
	require.True(t, p.hasMet(after, row(after)))
}
