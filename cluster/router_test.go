package cluster

import (
	"context"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnOrderGoesToTheMemberThatOwnsItsTask(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	for name, m := range s.members {
		_, err := s.members["a"].router.Do(soon(t), signal(s.taskOf(name)))
		require.NoError(t, err)
		require.Len(t, m.effects, 1, name)
		require.Equal(t, signal("").Command, m.effects[0].Command)
	}
}

func TestARefusalOfAnotherMemberIsTheAnswer(t *testing.T) {
	s := newStage(t, "a", "b")
	_, err := s.members["a"].router.Do(soon(t), engine.Order{Task: s.taskOf("b"), Command: flow.RetryTask{}})
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(err))
	require.EqualError(t, err, "it has not failed")
}

func TestATaskThatHasMovedIsAskedForAgainWithTheSameRequest(t *testing.T) {
	for _, from := range []string{"a", "b"} { // the receiver owned the task, or another member did
		s := newStage(t, "a", "b", "c")
		task := s.taskOf(from)
		s.move(task, "c")
		_, err := s.members["a"].router.Do(soon(t), signal(task))
		require.NoError(t, err)
		require.Empty(t, s.members[from].effects)
		require.Len(t, s.members["c"].effects, 1)
	}
}

func TestAnOrderWhoseAnswerWasLostHasOneEffect(t *testing.T) {
	s := newStage(t, "a", "b")
	b := s.members["b"]
	cut := 3
	b.after = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if cut--; cut >= 0 {
			b.server.CloseClientConnections()
		}
	}
	out, err := s.members["a"].router.Do(soon(t), signal(s.taskOf("b")))
	require.NoError(t, err)
	require.Equal(t, 1, out.First)
	require.Len(t, b.effects, 1)
	require.Equal(t, 4, b.asked)
	require.Equal(t, 1, s.log.count("connection to a member failed"), "told once")
}

func TestATaskIsStartedOnceWhenTheAnswerToItsStartIsLost(t *testing.T) {
	s := newStage(t, "a", "b")
	for _, m := range s.members {
		cut := 1
		m.after = func() {
			if cut--; cut >= 0 {
				m.server.CloseClientConnections()
			}
		}
	}
	for range 20 {
		_, err := s.members["a"].router.StartTask(soon(t), engine.NewTask{})
		require.NoError(t, err)
	}
	require.Len(t, s.journal.tasks, 20)
	require.NotEmpty(t, s.log.count("connection to a member failed"), "one of them began at the other member")
}

func TestATaskIsStartedAtTheMemberThatOwnsItsShard(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	began := map[string]bool{}
	for range 50 {
		started, err := s.members["a"].router.StartTask(soon(t), engine.NewTask{})
		require.NoError(t, err)
		require.True(t, started.Created)
		to, _ := s.truth.Load().OwnerOf(started.Task)
		began[to.Name] = true
	}
	require.Len(t, began, 3)
	first, err := s.members["a"].router.StartTask(soon(t), engine.NewTask{Key: "k"})
	require.NoError(t, err)
	again, err := s.members["b"].router.StartTask(soon(t), engine.NewTask{Key: "k"})
	require.NoError(t, err)
	require.Equal(t, engine.Started{Task: first.Task}, again, "asked for twice, at different members, it is one task")
}

func TestATaskWithoutAnIDStartsHereWhileOwnersAreUnreachable(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	r := s.members["a"].router
	for _, name := range []string{"b", "c"} {
		s.members[name].die()
		eventually(t, func() bool {
			_, err := askMember[*engine.Outcomes](soon(t), r, r.place.Load().views.Current().members[name], &engine.Orders{})
			return err != nil && r.unreachable.has(name)
		})
		limited, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := r.StartTask(limited, engine.NewTask{Task: s.taskOf(name)})
		cancel()
		require.Equal(t, flow.Busy, flow.ErrorKindOf(err), "an id that is given stays")
	}
	for range 50 {
		started, err := r.StartTask(soon(t), engine.NewTask{})
		require.NoError(t, err)
		require.True(t, started.Created)
		to, _ := s.truth.Load().OwnerOf(started.Task)
		require.Equal(t, "a", to.Name)
	}
}

func TestAMemberThatCanBeReachedAgainGetsTasksAgain(t *testing.T) {
	s := newStage(t, "a", "b")
	r := s.members["a"].router
	r.unreachable.recordReach("b", ErrAway)
	eventually(t, func() bool {
		started, err := r.StartTask(soon(t), engine.NewTask{})
		require.NoError(t, err)
		to, _ := s.truth.Load().OwnerOf(started.Task)
		return to.Name == "b"
	})
}

func TestAMemberThatCannotBeReachedIsTriedUntilTheDeadline(t *testing.T) {
	s := newStage(t, "a", "b")
	a, task := s.members["a"], s.taskOf("b")
	s.members["b"].die()
	limited, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := a.router.Do(limited, signal(task))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "task "+task+" cannot be reached for the moment")
	require.ErrorIs(t, err, engine.ErrUnavailable, "another member may reach it")
	require.ErrorContains(t, err, "try again in a moment")

	a.router.cfg.Patience = 50 * time.Millisecond // for callers without a deadline
	_, err = a.router.Do(t.Context(), signal(task))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	outcomes, err := a.router.DoAll(t.Context(), engine.Orders{signal(task), signal(s.taskOf("a"))})
	require.NoError(t, err)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(outcomes[0].Err))
	require.NoError(t, outcomes[1].Err)

	given, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err = a.router.Do(given, signal(task))
	require.ErrorIs(t, err, context.Canceled)
}

// breaking is an engine that has ended in the middle of a request.
type breaking struct{ engine.Engine }

func (breaking) Do(context.Context, engine.Order) (engine.Outcome, error) {
	return engine.Outcome{}, context.Canceled
}

func TestACallerThatStillWaitsGetsNoCanceledError(t *testing.T) {
	s := newStage(t, "a", "b")
	r, task := s.members["a"].router, s.taskOf("a")
	at := r.place.Load()
	r.place.Store(&localMember{me: at.me, local: breaking{at.local}, views: at.views, ttl: DefaultTTL})
	r.cfg.Patience = 50 * time.Millisecond
	_, err := r.Do(t.Context(), signal(task))
	require.NotErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "canceled")
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, "has not answered in time: try again in a moment")
	s.move(task, "b")
	_, err = r.Do(soon(t), signal(task))
	require.NoError(t, err, "another member has it now")
}

func TestATaskThatFindsANewOwnerInTimeIsReached(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	b, task := s.members["b"], s.taskOf("b")
	b.die()
	answered := make(chan error, 1)
	go func() {
		_, err := s.members["a"].router.Do(soon(t), signal(task))
		answered <- err
	}()
	eventually(t, func() bool { return s.log.count("connection to a member failed") > 0 })
	s.move(task, "c")
	require.NoError(t, <-answered)
	require.Len(t, s.members["c"].effects, 1)
}

func TestOrdersGoToTheirOwnersAndAreAnsweredInTheirPlaces(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	var orders engine.Orders
	for range mostOrders + 10 { // more than one request for each
		for _, name := range []string{"a", "b", "c"} {
			orders = append(orders, signal(s.taskOf(name)))
		}
	}
	orders[1].Command = flow.RetryTask{}
	outcomes, err := s.members["a"].router.DoAll(soon(t), orders)
	require.NoError(t, err)
	require.Equal(t, flow.Conflict, flow.ErrorKindOf(outcomes[1].Err))
	for i, out := range outcomes {
		if i == 1 {
			continue
		}
		require.NoError(t, out.Err)
		effect := s.members[[]string{"a", "b", "c"}[i%3]].effects[out.First-1]
		require.Equal(t, orders[i].Task, effect.Task)
	}
	require.Len(t, s.members["b"].effects, mostOrders+9)
}

func TestOutcomesBeforeATimeoutAreKept(t *testing.T) {
	s := newStage(t, "a", "b")
	b, orders := 0, engine.Orders{signal(s.taskOf("b")), signal(s.taskOf("b")), signal(s.taskOf("a"))}
	s.members["b"].before = func(ctx context.Context) {
		if b++; b > 1 {
			<-ctx.Done()
		}
	}
	limited, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	outcomes, err := s.members["a"].router.DoAll(limited, orders)
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err)
	require.ErrorIs(t, outcomes[1].Err, context.DeadlineExceeded)
	require.NoError(t, outcomes[2].Err)
}

func TestOnlyOrdersOfMovedTasksAreRetried(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	moved, stays := s.taskOf("b"), s.taskOf("a")
	s.move(moved, "c")
	outcomes, err := s.members["a"].router.DoAll(soon(t), engine.Orders{signal(moved), signal(stays)})
	require.NoError(t, err)
	require.NoError(t, outcomes[0].Err)
	require.NoError(t, outcomes[1].Err)
	require.Len(t, s.members["c"].effects, 1)
	require.Len(t, s.members["a"].effects, 1, "what was answered is not asked for again")
}

func TestAMemberThatHangsBlocksNoOtherRequests(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	a, b := s.members["a"], s.members["b"]
	hung := make(chan struct{}, 1)
	b.before = func(ctx context.Context) {
		hung <- struct{}{}
		<-ctx.Done()
	}
	limited, cancel := context.WithCancel(soon(t))
	held := make(chan error, 1)
	go func() {
		_, err := a.router.Do(limited, signal(s.taskOf("b")))
		held <- err
	}()
	<-hung
	b.with(func() { b.before = nil })
	for _, name := range []string{"a", "b", "c"} { // nor the rest of that member's orders
		_, err := a.router.Do(soon(t), signal(s.taskOf(name)))
		require.NoError(t, err)
	}
	cancel()
	require.ErrorIs(t, <-held, context.Canceled)
}

func TestAMemberThatDoesNotAnswerInTimeIsBusy(t *testing.T) {
	s := newStage(t, "a", "b")
	s.members["b"].before = func(ctx context.Context) { <-ctx.Done() }
	s.members["a"].router.cfg.Patience = 100 * time.Millisecond
	_, err := s.members["a"].router.Do(soon(t), signal(s.taskOf("b")))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	require.ErrorContains(t, err, "has not answered in time")
}

func TestAHostThatHangsIsNoticed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	peers := NewPeers(ours, nil, newStage(t, "a").logger())
	defer peers.Close()
	_, err = peers.Ask(soon(t), persistence.MemberRow{Incarnation: "x", URL: "http://" + silent.Addr().String()}, &engine.Wait{Task: "t"})
	require.ErrorIs(t, err, ErrAway)
}

func TestNothingIsAskedBeforeTheMemberIsThere(t *testing.T) {
	router := NewRouter(RouterConfig{Peers: NewPeers(ours, nil, newStage(t, "a").logger())})
	require.Equal(t, flow.Busy, flow.ErrorKindOf(router.Ready()))
	limited, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := router.Do(limited, signal("t"))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, router.Others().Alive())
	router.Close()
	_, err = router.Do(t.Context(), signal("t"))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
}

func TestAMemberThatHasJoinedIsReadyWhenTheClusterWasWholeOnce(t *testing.T) {
	s := newStage(t, "a", "b")
	b := s.members["b"]
	owners := slices.Clone(s.truth.Load().Owners)
	owners[7] = ""
	b.views.show(s.view(2, owners))
	require.ErrorContains(t, b.router.Ready(), "has just joined")
	b.views.show(s.truth.Load())
	require.NoError(t, b.router.Ready())
	b.views.show(s.view(3, owners))
	require.NoError(t, b.router.Ready(), "the death of another member does not make it unready")
}

func TestAMemberNotMetOnThisStoreGetsNoRequests(t *testing.T) {
	s := newStage(t, "a", "b")
	a, b, task := s.members["a"], s.members["b"], s.taskOf("b")
	copied := *s.truth.Load()
	copied.members = maps.Clone(copied.members)
	row := copied.members["b"]
	row.JoinedAt, row.Until = 500, 2900 // its lease ran when the copy was made
	copied.members["b"] = row
	a.views.show(&copied)
	a.router.cfg.Patience = 50 * time.Millisecond
	_, err := a.router.Do(t.Context(), signal(task))
	require.Equal(t, flow.Busy, flow.ErrorKindOf(err))
	require.Empty(t, b.effects)

	a.views.show(s.truth.Load()) // it has renewed its lease since
	_, err = a.router.Do(soon(t), signal(task))
	require.NoError(t, err)
	require.Len(t, b.effects, 1)
}

func TestAStartWithAnUnreadablePlanFailsOnAnyMember(t *testing.T) {
	s := newStage(t, "a", "b")
	gone := flow.Errorf(flow.NotFound, "there is no such version")
	for failed, want := range map[error]error{persistence.ErrUnavailable: engine.ErrUnavailable, gone: gone} {
		r := s.members["a"].router
		r.cfg.Plans = plans{failed}
		for range 20 { // a task without a key may belong to either
			_, err := r.StartTask(soon(t), engine.NewTask{})
			require.ErrorIs(t, err, want)
		}
	}
}
