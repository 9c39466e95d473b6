package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAMemberAloneTakesEverythingAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.join("a")
		require.Less(t, w.within(time.Second, "a owns all", w.settled), 10*time.Millisecond)
	})
}

func TestAJoinerGetsItsShareByHandover(t *testing.T) {
	for _, unheard := range []bool{false, true} {
		t.Run(fmt.Sprintf("unheard %v", unheard), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.unheard = unheard
				w.cluster("a", "b")
				w.gains, w.longest = 0, 0
				w.join("c")
				took := w.within(10*time.Second, "c has its share", w.settled)
				require.Equal(t, persistence.Shards/3-1, w.gains, "what moved is what c got")
				require.LessOrEqual(t, w.longest, 500*time.Millisecond, "that a shard was nobody's")
				if !unheard {
					require.Less(t, w.longest, 50*time.Millisecond)
					require.Less(t, took, time.Second)
				}
			})
		})
	}
}

func TestMembersThatJoinTogetherSettle(t *testing.T) {
	for seed := range uint64(20) {
		inWorld(t, func(_ *testing.T, w *world) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w.unheard = seed%2 == 0
			w.losing = func() time.Duration { return time.Duration(5+seed*10) * time.Millisecond }
			for i := range 2 + rng.IntN(5) {
				w.join(fmt.Sprintf("m%d", i))
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			w.within(20*time.Second, "all have their share", w.settled)
		})
	}
}

func TestALeaverHandsOverFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		w.gains, w.longest = 0, 0
		a := members[0]
		owned := len(w.look().Shards(a.incarnation))
		require.NoError(t, a.keeper.Leave(t.Context()))
		require.Empty(t, w.look().Shards(a.incarnation))
		require.True(t, w.look().Lives(a.incarnation), "it lives until it gives its lease back")
		w.within(time.Second, "the others own all", w.settled)
		require.Equal(t, owned, w.gains)
		require.Less(t, w.longest, 50*time.Millisecond)
		require.Zero(t, members[1].told(a.incarnation))

		require.NoError(t, w.store.Leave(t.Context(), a.incarnation))
		w.within(time.Second, "they know that it has gone", func() bool {
			return members[1].told(a.incarnation) == 1 && members[2].told(a.incarnation) == 1
		})
		time.Sleep(time.Minute)
		require.Equal(t, 1, members[1].told(a.incarnation), "told once")
		require.NoError(t, a.err, "it was asked to go")
	})
}

func TestADrainingMemberTakesNoShardsUntilDrainingEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		a := members[0]
		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, true), "anybody may say so")
		w.within(5*time.Second, "the others own all", func() bool { return len(w.look().Shards(a.incarnation)) == 0 && w.settled() })
		members[1].kill()
		w.within(5*time.Second, "c owns all", w.settled)
		require.Empty(t, w.look().Shards(a.incarnation))
		require.NoError(t, a.ctx.Err(), "it lives")

		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, false))
		w.within(5*time.Second, "it has its share again",
			func() bool { return len(w.look().Shards(a.incarnation)) == persistence.Shards/2 && w.settled() })
	})
}

func TestALeavingMemberLeavesEvenIfDrainingIsUndone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		a.refuse.Store(true)
		left := make(chan error)
		go func() { left <- a.keeper.Leave(t.Context()) }()
		w.within(5*time.Second, "it drains", func() bool { m, _ := w.look().Member(a.incarnation); return m.Draining })
		require.NoError(t, w.store.Drain(t.Context(), a.incarnation, false))
		time.Sleep(5 * time.Second)
		a.refuse.Store(false)
		require.NoError(t, <-left)
		require.Empty(t, w.look().Shards(a.incarnation))
	})
}

func TestTheLastMemberLeavesAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		begun := time.Now()
		require.NoError(t, a.keeper.Leave(t.Context()))
		require.Less(t, time.Since(begun), 50*time.Millisecond)
	})
}

func TestMembersThatAllLeaveDoNotWaitForEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var leaving sync.WaitGroup
		begun := time.Now()
		for _, m := range w.cluster("a", "b", "c") {
			leaving.Go(func() { require.NoError(t, m.keeper.Leave(t.Context())) })
		}
		leaving.Wait()
		require.Less(t, time.Since(begun), time.Minute)
	})
}

func TestALeaveThatTakesTooLongIsGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		a.refuse.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := a.keeper.Leave(ctx)
		require.ErrorContains(t, err, "512 shards were not handed over")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		a.refuse.Store(false)
		w.within(2*time.Second, "it is tried on", func() bool { return len(w.look().Shards(a.incarnation)) == 0 })
	})
}

func TestASuspicionMakesAKeeperLookAndTakesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		time.Sleep(10 * time.Second)
		before, gains := a.link.count("Cluster"), w.gains
		a.hint()
		time.Sleep(2 * breath)
		require.Equal(t, before+1, a.link.count("Cluster"), "it has looked")
		time.Sleep(5 * time.Second)
		require.Zero(t, a.link.count("Fence"))
		require.Equal(t, gains, w.gains)
	})
}

func TestManyHintsCauseOneRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		time.Sleep(10 * time.Second)
		before := a.link.count("Cluster")
		for range 1000 {
			a.hint()
			a.keeper.Look()
			time.Sleep(100 * time.Microsecond)
		}
		require.LessOrEqual(t, a.link.count("Cluster")-before, int64(12))
	})
}

func TestCallersThatNeedAnOwnerShareReads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		time.Sleep(10*time.Second + time.Millisecond)
		before := a.link.count("Cluster")
		for range 10_000 {
			a.keeper.Look()
			time.Sleep(time.Millisecond)
		}
		looks := a.link.count("Cluster") - before
		require.LessOrEqual(t, looks, int64(101))
		require.GreaterOrEqual(t, looks, int64(95))
		time.Sleep(50 * time.Millisecond)
		before = a.link.count("Cluster")
		a.keeper.Look()
		a.hint()
		time.Sleep(time.Millisecond)
		require.Equal(t, before+1, a.link.count("Cluster"), "who has heard something does not wait for that")
	})
}

func TestAHandoverThatFailsIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		a.refuse.Store(true)
		w.join("b")
		time.Sleep(5 * time.Second)
		require.Len(t, w.look().Shards(a.incarnation), persistence.Shards)
		a.refuse.Store(false)
		w.within(5*time.Second, "b has its share", w.settled)
	})
}

func TestAMemberGoesOnWithWhatItCouldNotHandOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		a.refuse.Store(true)
		b := w.join("b")
		w.within(5*time.Second, "a has tried", func() bool { return a.refused.Load() > 0 })
		require.NoError(t, w.store.Leave(t.Context(), b.incarnation))
		w.within(5*time.Second, "nobody else is there to take it", w.settled)
		require.Len(t, w.look().Shards(a.incarnation), persistence.Shards)
	})
}

func TestAMemberLeavesInOrderDespiteAShortOutageOfTheStore(t *testing.T) {
	for name, silent := range map[string]bool{"with an error": false, "with silence": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.cluster("a", "b")[0]
				a.link.silent.Store(silent)
				a.link.down.Store(true)
				time.AfterFunc(700*time.Millisecond, func() { a.link.down.Store(false) })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				require.NoError(t, a.keeper.Leave(ctx))
				require.Empty(t, w.look().Shards(a.incarnation))
				w.within(time.Second, "b has everything", w.settled)
			})
		})
	}
}

func TestAMemberThatWasFencedDoesNotWaitToLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a", "b")[0]
		a.link.down.Store(true)
		w.within(10*time.Second, "it was fenced", func() bool { return !w.look().Lives(a.incarnation) })
		a.link.down.Store(false)
		begun := time.Now()
		_ = a.keeper.Leave(t.Context()) // it has nothing left to hand over
		require.Less(t, time.Since(begun), time.Second)
	})
}

func TestShardsTakenAwayByTheStoreAreGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b")
		a, b := members[0], members[1]
		taken := w.look().Shards(a.incarnation)[:5]
		b.link.down.Store(true)
		var transfers []persistence.Transfer
		for _, shard := range taken {
			transfers = append(transfers, persistence.Transfer{Shard: shard, To: b.incarnation})
		}
		require.NoError(t, w.store.Release(t.Context(), a.incarnation, transfers))
		w.within(time.Second, "a has given them up", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.holder[taken[0]] == nil
		})
		b.link.down.Store(false)
		w.within(5*time.Second, "all is in its place again", w.settled)
	})
}

func TestAnIdleClusterAsksTheStoreRarely(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		members := w.cluster("a", "b", "c")
		time.Sleep(10 * time.Second)
		count := func() (n int64) {
			for _, m := range members {
				n += m.link.count()
			}
			return n
		}
		before := count()
		time.Sleep(100 * time.Second)
		require.LessOrEqual(t, float64(count()-before)/100, 9.1, "7.5 of which are renewals")
	})
}

func TestAGenerationThatGoesBackIsANewOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.cluster("a")[0]
		time.Sleep(10 * time.Second)
		v := a.keeper.Current()
		changed := a.keeper.Changed(v.Generation)
		a.link.back.Store(2)
		w.within(time.Second, "those who wait are told", func() bool { return host.Closed(changed) })
		require.Less(t, a.keeper.Current().Generation, v.Generation)
		require.True(t, host.Closed(a.keeper.Changed(v.Generation)))
	})
}

func TestTheViewIsThereForOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		require.NotNil(t, a.keeper.Current())
		<-a.keeper.Changed(0)
		w.within(time.Second, "a owns all", w.settled)
		synctest.Wait()
		v := a.keeper.Current()
		changed := a.keeper.Changed(v.Generation)
		time.Sleep(10 * time.Second)
		select {
		case <-changed:
			require.Fail(t, "nothing has changed")
		default:
		}
		w.join("b")
		<-changed
		require.Greater(t, a.keeper.Current().Generation, v.Generation)
		<-a.keeper.Changed(v.Generation)
	})
}

func TestAPortionIsAsLargeAsItsTasksComeToRestQuickly(t *testing.T) {
	quick, neither, slow := 10*time.Millisecond, 100*time.Millisecond, time.Second
	portion := leastPortion
	for _, step := range []struct {
		took time.Duration
		next int
	}{{slow, 16}, {quick, 32}, {neither, 32}, {quick, 64}, {quick, 128}, {quick, 128}, {slow, 64}, {slow, 32}} {
		portion = nextPortion(portion, step.took)
		require.Equal(t, step.next, portion)
	}
}
