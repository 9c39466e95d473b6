package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAJobIsClaimedByAPollerAtAnotherMember(t *testing.T) {
	type poll func(time.Duration) []engine.Claimed
	for name, take := range map[string]func(begin func(), poll poll) []engine.Claimed{
		"that waits": func(begin func(), poll poll) []engine.Claimed {
			got := make(chan []engine.Claimed, 1)
			go func() { got <- poll(patience) }()
			begin()
			return <-got
		},
		"that comes later, and waits": func(begin func(), poll poll) []engine.Claimed {
			begin()
			return poll(patience)
		},
		"that does not wait": func(begin func(), poll poll) []engine.Claimed {
			begin()
			return poll(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCircuit(nil)
			a := c.join(t, actors.Config{})
			c.give(a, persistence.AllShards()...)
			b := c.join(t, actors.Config{})
			version := a.publish(t, queueOf("x"))
			got := take(func() { a.begin(t, version, `{}`) }, func(wait time.Duration) []engine.Claimed { return b.poll(t, wait, 1, "x") })
			require.Len(t, got, 1)
			order, err := engine.Completing(got[0].Job.ID(), flow.Report{Token: got[0].Token})
			require.NoError(t, err)
			require.NoError(t, c.lines[b].Do(t.Context(), engine.Orders{order})[0].Err)
			require.Equal(t, flow.TaskCompleted, c.ended(t, got[0].Job.Task).State.Status)
		})
	}
}

// foundUntold lets a poller at b get a job of a task of a that was not announced to b.
func foundUntold(t *testing.T, clock actors.Clock) (a, b *harness, version string) {
	c := newCircuit(model.New(model.Options{Now: clock.Now}))
	cfg := actors.Config{Host: actors.Host{Clock: clock}}
	a = c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	c.lines[a].mute = true
	b = c.join(t, cfg)
	version = a.publish(t, queueOf("x"))
	require.Empty(t, b.poll(t, 0, 1, "x"))
	a.insist(t, engine.NewTask{VersionID: version, Params: json.RawMessage(`{}`), Key: "found"})
	require.Len(t, b.poll(t, 100*patience, 1, "x"), 1)
	return a, b, version
}

func TestAPollerFindsUnannouncedJobsOfOtherMembers(t *testing.T) {
	a, b, version := foundUntold(t, quick{time.Now()})
	a.insist(t, engine.NewTask{VersionID: version, Params: json.RawMessage(`{}`), Key: "next"})
	require.Eventually(t, func() bool { return len(b.poll(t, 0, 1, "x")) == 1 }, patience, 10*time.Millisecond)
}

// hasty is a clock whose timers fire too early, by its own time.
type hasty struct{ quick }

func (h hasty) AfterFunc(d time.Duration, f func()) func() bool { return h.quick.AfterFunc(d*9/10, f) }

func TestAPollerFindsJobsOfOthersIfTheTimerIsTooEarly(t *testing.T) {
	foundUntold(t, hasty{quick{time.Now()}})
}

func TestPollersOfAllMembersGetEachJobOnce(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	members := []*harness{a, c.join(t, actors.Config{}), c.join(t, actors.Config{})}
	a.begin(t, a.publish(t, queueOverAList), listOf(200))
	got := make(chan engine.Claimed, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 9 {
		go func() {
			for ctx.Err() == nil {
				jobs, _ := members[i%3].Poll(ctx, engine.Poll{Worker: fmt.Sprint(i), Services: []string{"x"}, Max: 3, Wait: patience})
				for _, j := range jobs {
					got <- j
				}
			}
		}()
	}
	seen := map[string]bool{}
	for range 200 {
		select {
		case j := <-got:
			require.False(t, seen[j.Job.ID()])
			seen[j.Job.ID()] = true
		case <-time.After(patience):
			require.Fail(t, "jobs were not handed out", "%d were", len(seen))
		}
	}
	require.Empty(t, got)
}

func TestReadsForAnnouncedJobsDoNotDelayTheRescan(t *testing.T) {
	store := newLeaping()
	c := newCircuit(store)
	told, silent := c.join(t, actors.Config{}), c.join(t, actors.Config{})
	one, other := halves()
	c.give(told, one...)
	c.give(silent, other...)
	c.lines[silent].mute = true
	b := c.join(t, actors.Config{})
	version := told.publish(t, queueOf("x"))
	gets := func() bool { return len(b.poll(t, 0, 1, "x")) == 1 }
	require.False(t, gets())
	for range 200 {
		beginIn(t, told, version, `{}`, 1)
		require.Eventually(t, gets, patience, time.Millisecond)
	}
	beginIn(t, silent, version, `{}`, 1)
	store.leap(5 * time.Second)
	require.Eventually(t, gets, 20*time.Second, 10*time.Millisecond)
}

// counting is a store that counts its calls.
type counting struct {
	persistence.Store
	loads, commits, pages, services atomic.Int64
}

func (s *counting) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	s.loads.Add(int64(len(ids)))
	return s.Store.Load(ctx, ids)
}

func (s *counting) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	s.commits.Add(int64(len(batch)))
	return s.Store.Commit(ctx, incarnation, batch)
}

func (s *counting) QueueFor(ctx context.Context, f persistence.QueueFilter, at int64, turn string,
	limit int) ([]persistence.QueueRow, error) {
	s.pages.Add(1)
	return s.Store.QueueFor(ctx, f, at, turn, limit)
}

func (s *counting) QueueServices(ctx context.Context) ([]string, error) {
	s.services.Add(1)
	return s.Store.QueueServices(ctx)
}

// TestHeldJobsAreNotClaimedRepeatedly lets one poll wait for a minute while 2,000 jobs are held
// for an hour.
func TestHeldJobsAreNotClaimedRepeatedly(t *testing.T) {
	for name, alone := range map[string]bool{"in a cluster of one": true, "by those who asked another member": false} {
		t.Run(name, func(t *testing.T) {
			clock := quick{time.Now()}
			store := &counting{Store: model.New(model.Options{Now: clock.Now})}
			c := newCircuit(store)
			cfg := actors.Config{Visibility: time.Hour, Host: actors.Host{Clock: clock}}
			a := c.join(t, cfg)
			c.give(a, persistence.AllShards()...)
			b := a
			if !alone {
				b = c.join(t, cfg)
			}
			version := a.publish(t, queueOverAList)
			for _, key := range []string{"first", "second"} {
				a.insist(t, engine.NewTask{VersionID: version, Params: json.RawMessage(listOf(1000)), Key: key})
			}
			for held := 0; held < 2000; { // a slow poll is answered with the available jobs
				got := len(a.poll(t, patience, 1000, "x"))
				require.NotZero(t, got)
				held += got
			}
			a.eventuallyEmpty(t)
			quiet := 0
			// it has tried to claim each of them; a slow machine may try none within one poll
			require.Eventually(t, func() bool {
				before := store.loads.Load()
				if quiet++; len(b.poll(t, 20*time.Second, 1, "x")) > 0 || store.loads.Load() != before {
					quiet = 0
				}
				return quiet == 6
			}, patience, time.Millisecond)
			a.eventuallyEmpty(t)
			store.loads.Store(0)
			store.commits.Store(0)
			store.pages.Store(0)
			store.services.Store(0)
			require.Empty(t, b.poll(t, time.Minute, 1, "x"))
			require.LessOrEqual(t, store.loads.Load(), int64(1), "what was asked before may still have been on its way")
			require.Zero(t, store.commits.Load())
			require.LessOrEqual(t, store.pages.Load(), int64(5*14))
			require.LessOrEqual(t, store.services.Load(), int64(14))
		})
	}
}

func TestAReturnedJobIsFoundBeforeItsClaimWouldEnd(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{Visibility: time.Hour})
	c.give(a, persistence.AllShards()...)
	b := c.join(t, actors.Config{Visibility: time.Hour})
	a.begin(t, a.publish(t, queueOf("x")), `{}`)
	held := a.poll(t, patience, 1, "x")
	require.Len(t, held, 1)
	require.Empty(t, b.poll(t, 0, 1, "x"))
	require.NoError(t, engine.GiveBack(t.Context(), a.Member, []engine.Claim{{Job: held[0].Job.ID(), Token: held[0].Token}}))
	require.Len(t, b.poll(t, patience, 1, "x"), 1)
}

func TestAnAnnouncedJobIsFoundWithoutReadingAllHeldOnes(t *testing.T) {
	store := &counting{Store: model.New(model.Options{})}
	c := newCircuit(store)
	cfg := actors.Config{Visibility: time.Hour, Host: actors.Host{Clock: lazy{}}}
	a := c.join(t, cfg)
	c.give(a, persistence.AllShards()...)
	b := c.join(t, cfg)
	for range 2 {
		a.begin(t, a.publish(t, queueOverAList), listOf(1000))
		require.Len(t, a.poll(t, patience, 1000, "x"), 1000)
	}
	require.Empty(t, b.poll(t, 0, 1, "x"))
	id := a.begin(t, a.publish(t, queueOf("x")), `{}`)
	store.pages.Store(0)
	got := b.poll(t, patience, 1, "x")
	require.Len(t, got, 1)
	require.Equal(t, id, got[0].Job.Task)
	require.LessOrEqual(t, store.pages.Load(), int64(2))
}
