package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestTheShardsOfAMemberThatDiesAreTakenWhenItsLeaseHasRunOut(t *testing.T) {
	for _, unheard := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.unheard = unheard
			members := w.cluster("a", "b", "c")
			time.Sleep(10*time.Second + 150*time.Millisecond)
			w.gains = 0
			dead := members[0]
			dead.kill()
			row, _ := w.look().Member(dead.incarnation)
			owned := len(w.look().Shards(dead.incarnation))
			left := time.Until(time.UnixMilli(row.Until))
			if !unheard { // gossip notices the end some time before the lease expires
				time.AfterFunc(left/2, members[1].hint)
			}
			took := w.within(5*time.Second, "the others own all", w.settled)
			require.GreaterOrEqual(t, took, left)
			require.LessOrEqual(t, took, 2800*time.Millisecond)
			if !unheard {
				require.LessOrEqual(t, took, left+20*time.Millisecond)
			}
			require.Equal(t, owned, w.gains)
			for _, m := range members[1:] {
				w.within(time.Second, "it is told", func() bool { return m.told(dead.incarnation) == 1 })
			}
		})
	}
}

func TestAMemberThatCannotBeFencedBlocksNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c", "d")
		time.Sleep(10 * time.Second)
		stuck, dead := members[0], members[1]
		for _, m := range members[1:] {
			m.link.fails.Store("Fence " + stuck.incarnation)
		}
		stuck.kill()
		time.Sleep(3 * time.Second)
		joiner := w.join("joiner")
		joiner.link.fails.Store("Fence " + stuck.incarnation)
		w.within(5*time.Second, "somebody else gets his share of those who live",
			func() bool { return len(w.look().Shards(joiner.incarnation)) >= 150 })
		dead.kill()
		w.within(10*time.Second, "somebody else is fenced, and his shards claimed", func() bool {
			v := w.look()
			return !v.Lives(dead.incarnation) && v.countShards()[""] == 0
		})
		require.True(t, w.look().Lives(stuck.incarnation))
		for _, m := range w.members {
			m.link.fails.Store("")
		}
		w.within(5*time.Second, "it is tried on", w.settled)
	})
}

func TestAMemberThatIsStartedAgainTakesOverFromItselfWithoutWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.cluster("a")[0]
		first.kill()
		time.Sleep(time.Hour)
		w.join("a")
		require.Less(t, w.within(time.Second, "it owns all", w.settled), 20*time.Millisecond)
	})
}

func TestAMemberCutOffFromTheStoreLosesItsShards(t *testing.T) {
	for _, silent := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			members := w.cluster("a", "b", "c")
			time.Sleep(10 * time.Second)
			cut := members[1]
			cut.link.silent.Store(silent)
			cut.link.down.Store(true)
			w.within(3*time.Second, "the others own all", func() bool { return !w.look().Lives(cut.incarnation) && w.settled() })
			require.NoError(t, cut.ctx.Err())
			cut.link.down.Store(false)
			<-cut.done
			require.ErrorIs(t, cut.err, persistence.ErrFenced)
			require.ErrorContains(t, cut.err, cut.incarnation)
		})
	}
}

func TestAfterAnOutageOfTheStoreNoShardsMove(t *testing.T) {
	for seed := range uint64(30) {
		inWorld(t, func(t *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 0))
			members := w.cluster("a", "b", "c", "d")
			time.Sleep(5*time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
			w.gains = 0
			for _, m := range members {
				m.link.silent.Store(rng.IntN(2) == 0)
				m.link.down.Store(true)
			}
			time.Sleep(time.Duration(rng.IntN(15_000)) * time.Millisecond)
			// They reach the store again one after the other, the last one well within the lease of
			// the first.
			for _, i := range rng.Perm(len(members)) {
				members[i].link.down.Store(false)
				members[i].hint()
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			time.Sleep(10 * time.Second)
			require.Zero(t, w.gains, "seed %d", seed)
			require.Len(t, w.look().Living(), 4)
		})
	}
}

func TestMembersMissingAfterAnOutageAreFencedAfterAFullTTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		time.Sleep(5 * time.Second)
		for _, m := range members {
			m.link.down.Store(true)
		}
		time.Sleep(5 * time.Second)
		for _, m := range members[1:] {
			m.link.down.Store(false)
		}
		took := w.within(5*time.Second, "the others own all", w.settled)
		require.GreaterOrEqual(t, took, DefaultTTL)
		require.LessOrEqual(t, took, DefaultTTL+time.Second)
	})
}

func TestHalvesThatDoNotHearEachOtherDoNotFight(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.unheard = true
		members := w.cluster("a", "b", "c", "d")
		w.gains = 0
		rng := rand.New(rand.NewPCG(1, 1))
		// each half believes that the other one is dead, and gets hints about it repeatedly
		for range 300 {
			members[rng.IntN(len(members))].hint()
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		}
		require.Zero(t, w.gains)
		for _, m := range members {
			require.Zero(t, m.link.count("Fence"))
		}
	})
}

func TestALostAnswerOfTheStoreIsRecovered(t *testing.T) {
	for _, call := range []string{"Claim", "Release", "Fence", "Cluster"} {
		t.Run(call, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				members := w.cluster("a", "b", "c")
				time.Sleep(5 * time.Second)
				for _, m := range members {
					m.link.lose.Store(call)
				}
				members[0].kill()
				d := w.join("d")
				d.link.lose.Store(call)
				w.within(15*time.Second, "all have their share", w.settled)
				time.Sleep(5 * time.Second)
				require.True(t, w.settled())
			})
		})
	}
}

// Whatever happens to the members, no shard has two owners, and in the end every shard has one.
func TestRandomHistoriesOfAClusterSettle(t *testing.T) {
	for seed := range uint64(25) {
		inWorld(t, func(_ *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 2))
			w.losing = func() time.Duration { return time.Duration(rand.IntN(50)) * time.Millisecond }
			w.unheard = rng.IntN(2) == 0
			w.cluster("m0", "m1", "m2")
			for i := range 12 {
				m := w.members[rng.IntN(len(w.members))]
				switch rng.IntN(6) {
				case 0:
					w.join(fmt.Sprintf("m%d", i+3))
				case 1:
					m.kill()
				case 2:
					go func() {
						if m.keeper.Leave(m.ctx) == nil {
							m.kill()
						}
					}()
				case 3:
					m.link.silent.Store(rng.IntN(2) == 0)
					m.link.down.Store(true)
				case 4:
					m.link.down.Store(false)
				case 5:
					m.link.lose.Store([]string{"Claim", "Release", "Fence", "Cluster", "Renew"}[rng.IntN(5)])
				}
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			for _, m := range w.members {
				m.link.down.Store(false)
			}
			w.join("last")
			w.within(30*time.Second, fmt.Sprint("all is owned, seed ", seed), w.settled)
		})
	}
}
