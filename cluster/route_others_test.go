package cluster

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

func TestOrdersToBusyMembersAreRetried(t *testing.T) {
	s := newStage(t, "a", "b")
	b := s.members["b"]
	b.busy = 3
	outcomes := s.members["a"].router.Others().Do(soon(t), engine.Orders{signal(s.taskOf("b")), signal(s.taskOf("a"))})
	require.NoError(t, outcomes[0].Err)
	require.NoError(t, outcomes[1].Err)
	require.Len(t, s.members["a"].effects, 1, "what was answered is not asked for again")

	b.busy = 1
	claim := engine.Order{Task: s.taskOf("b"), Command: flow.Claim{}}
	outcomes = s.members["a"].router.Others().Do(soon(t), engine.Orders{claim})
	require.Equal(t, flow.Busy, flow.ErrorKindOf(outcomes[0].Err), "whoever claims may have another job")
	require.Equal(t, "b", s.members["a"].router.Others().Owner(claim.Task))

	b.die()
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	outcomes = s.members["a"].router.Others().Do(ended, engine.Orders{signal(s.taskOf("b"))})
	require.Error(t, outcomes[0].Err)
}

func TestOtherMembersGetOffersOfJobs(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	others := s.members["a"].router.Others()
	require.ElementsMatch(t, []string{"b", "c"}, others.Alive())
	offer := engine.Offer{Job: "j", Service: "resize", Labels: []string{"gpu"}, At: 3, Turn: "x", Size: 9}
	others.Wanted([]engine.Offer{offer})
	credits := engine.Credits{Member: "a", Turn: 1, List: []engine.Credit{{Services: []string{"resize"}, Workers: 2, Free: 7}}}
	others.Credits(&credits)
	for _, name := range []string{"b", "c"} {
		m := s.members[name]
		eventually(t, func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.offered) == 1 && len(m.credits) == 1 })
		require.Equal(t, offer, m.offered[0])
		require.Equal(t, credits, m.credits[0])
	}
	b := s.members["b"]
	key := s.taskOf("b")
	others.Stir(engine.Keys{Names: []string{s.taskOf("a"), key, s.taskOf("c")}, Anew: true})
	eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.stirred) == 1 })
	require.Equal(t, []engine.Keys{{Names: []string{key}, Anew: true}}, b.stirred, "a key is where a task of its name would be")
	require.Empty(t, s.members["a"].offered)
	require.Empty(t, s.members["a"].credits)
}

func TestAJobIsGivenToAnotherMember(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	others := s.members["a"].router.Others()
	errands := engine.Errands{{Job: engine.Job{Task: "t", Service: "resize"},
		Type: flow.ExecRemote}, {Job: engine.Job{Task: "u"}, Withdrawn: true}}
	require.NoError(t, others.Carry(soon(t), "b", errands))
	require.Equal(t, errands, s.members["b"].errands)
	require.Empty(t, s.members["c"].errands)
	require.ErrorIs(t, others.Carry(soon(t), "nobody", errands), ErrAway)
	s.members["b"].die()
	require.Error(t, others.Carry(soon(t), "b", errands))
}

func TestAnnounceWaitsUntilOtherMembersHaveRecordedNews(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	others, b, c := s.members["a"].router.Others(), s.members["b"], s.members["c"]
	news := engine.News{Flows: []string{"f"}, Workers: []engine.Worker{{ID: "w", Load: 3}}}
	require.True(t, others.Announce(soon(t), news))
	for _, m := range []*actorless{b, c} {
		m.with(func() { require.Equal(t, []engine.News{news}, m.heard) })
	}
	require.Empty(t, s.members["a"].heard)
	b.die()
	ended, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	require.False(t, others.Announce(ended, news), "somebody may not know")
	c.with(func() { require.Len(t, c.heard, 2, "once each time") })
}

func TestUnresponsiveMembersAreSkippedForAWhile(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	a, c := s.members["a"].router, s.members["c"]
	others := a.Others()
	var clock atomic.Int64
	a.cfg.Host.Clock = stopped{&clock}
	s.members["b"].die()
	waits := func() (waited bool) {
		before := len(c.told())
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		others.Inform(ctx, engine.News{Workers: []engine.Worker{{ID: "w"}}})
		require.Len(t, c.told(), before+1, "who takes note is told each time, once")
		return ctx.Err() != nil
	}
	require.True(t, waits())
	require.False(t, waits())
	clock.Add(int64(leftOutTime))
	require.True(t, waits())
	require.False(t, waits())
	clock.Add(int64(leftOutTime))
	require.False(t, a.unresponsive.isLeftOut("b", a.cfg.Host.Now()), "somebody tries again")
	require.False(t, waits(), "who is not alone")
	a.unresponsive.recordResponse("b", false, a.cfg.Host.Now())
	require.True(t, waits())
}

// stopped is a clock that moves only on command. Everything that waits for it waits for something
// else, too.
type stopped struct{ at *atomic.Int64 }

func (s stopped) Now() time.Time { return time.Unix(0, s.at.Load()) }

func (s stopped) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func TestMentionDoesNotWait(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	others, b, c := s.members["a"].router.Others(), s.members["b"], s.members["c"]
	again := make(chan struct{})
	b.with(func() { b.deaf = again })
	var all []engine.News
	for at := range int64(1000) {
		all = append(all, engine.News{Beats: []engine.Beat{{ID: "w", HeardAt: at}}})
		others.Mention(all[at])
	}
	eventually(t, func() bool { return len(c.told()) == len(all) })
	require.Equal(t, all, c.told())
	eventually(t, func() bool { return len(b.told()) == 1 })
	close(again)
	eventually(t, func() bool { return len(b.told()) == len(all) })
	require.Empty(t, s.members["a"].told())
}

func TestNewlyMetMembersGetNewsToo(t *testing.T) {
	s := newStage(t, "a", "b")
	a, b := s.members["a"], s.members["b"]
	early := *s.truth.Load()
	early.members = maps.Clone(early.members)
	row := early.members["b"]
	row.JoinedAt, row.Until = 500, 2900 // its lease has not been renewed since a joined
	early.members["b"] = row
	a.views.show(&early)
	time.AfterFunc(50*time.Millisecond, func() { a.views.show(s.truth.Load()) })
	require.True(t, a.router.Others().Announce(soon(t), engine.News{Flows: []string{"f"}}))
	b.with(func() { require.Len(t, b.heard, 1) })
}
