package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
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

// halves returns the shards in two halves.
func halves() (one, other []int) {
	all := persistence.AllShards()
	return all[:len(all)/2], all[len(all)/2:]
}

// beginIn starts tasks at a member until it owns the given number of them.
func beginIn(t *testing.T, th *harness, version, params string, n int) {
	t.Helper()
	for n > 0 {
		if _, _, err := th.StartTask(t.Context(), engine.NewTask{VersionID: version, Params: json.RawMessage(params)}); err == nil {
			n--
		}
	}
}

func TestPollersDoNotWaitForAnUnreachableOwner(t *testing.T) {
	c := newCircuit(nil)
	away, well, b := c.join(t, actors.Config{}), c.join(t, actors.Config{}), c.join(t, actors.Config{})
	one, other := halves()
	c.give(away, one...)
	c.give(well, other...)
	version := away.publish(t, queueOf("x"))
	beginIn(t, away, version, `{}`, 50)
	beginIn(t, well, version, `{}`, 20)
	var tries atomic.Int64
	c.lines[b].cut = func(o engine.Order) bool {
		if c.at(persistence.ShardOf(o.Task)) != away {
			return false
		}
		if _, claim := o.Command.(flow.Claim); claim {
			tries.Add(1)
		}
		return true
	}
	for range 20 {
		require.Len(t, b.poll(t, patience, 1, "x"), 1)
	}
	require.LessOrEqual(t, tries.Load(), int64(5), "one claim every now and then")
}

func TestPendingClaimsAreAnsweredIfTheirOwnerIsUnreachable(t *testing.T) {
	c := newCircuit(nil)
	away, b := c.join(t, actors.Config{}), c.join(t, actors.Config{})
	c.give(away, persistence.AllShards()...)
	beginIn(t, away, away.publish(t, queueOf("x")), `{}`, 100)
	c.lines[b].cut = func(engine.Order) bool { return true }
	var polls sync.WaitGroup
	for i := range 20 {
		polls.Go(func() {
			got, err := b.Poll(t.Context(), engine.Poll{Worker: fmt.Sprint(i), Services: []string{"x"}, Wait: time.Second})
			if err != nil || len(got) > 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	polls.Wait()
}

// A member may learn of a job from its new owner before it learns that the previous owner has
// departed.
func TestAJobOfADepartedMemberIsFoundAtItsNewOwner(t *testing.T) {
	c := newCircuit(nil)
	late := actors.Config{Host: actors.Host{Clock: lazy{}}}
	gone, heir, b := c.join(t, actors.Config{}), c.join(t, actors.Config{}), c.join(t, late)
	c.give(gone, persistence.AllShards()...)
	var old atomic.Bool
	asked := make(chan struct{}, 1000)
	old.Store(true)
	c.lines[b].cut = func(engine.Order) bool { return old.Load() }
	c.lines[b].late = func() string {
		if !old.Load() {
			return ""
		}
		asked <- struct{}{}
		return gone.Incarnation()
	}
	begun := beginAt(t, gone, queueOf("x"), 2)
	require.Empty(t, b.poll(t, 0, 1, "x"), "its owner does not answer")
	c.die(t, gone)
	drainChannel(asked)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	got := make(chan engine.Jobs)
	go func() {
		defer close(got)
		for ctx.Err() == nil {
			jobs, _ := b.Poll(ctx, engine.Poll{Worker: "w", Services: []string{"x"}, Max: 2, Wait: patience})
			got <- jobs
		}
	}()
	c.give(heir, persistence.AllShards()...)
	<-asked // the job was announced, and its owner is assumed to be the previous one
	old.Store(false)
	heir.Gone(gone.Incarnation(), false)
	b.Gone(gone.Incarnation(), false)
	var have []string
	for jobs := range got {
		for _, j := range jobs {
			have = append(have, j.Job.Task)
		}
		if len(have) == len(begun) {
			stop()
		}
	}
	require.ElementsMatch(t, begun, have)
}

func beginAt(t *testing.T, th *harness, flow string, n int) (ids []string) {
	version := th.publish(t, flow)
	for range n {
		ids = append(ids, th.begin(t, version, `{}`))
	}
	return ids
}

func drainChannel[T any](c chan T) {
	for len(c) > 0 {
		<-c
	}
}

// stuck is a store that does not return one task until it is released.
type stuck struct {
	persistence.Store
	task    atomic.Value
	release chan struct{}
}

func (s *stuck) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	if slices.Contains(ids, s.task.Load().(string)) {
		<-s.release
	}
	return s.Store.Load(ctx, ids)
}

// withOneStuck returns a member with a resting task of a version, which the store does not return.
func withOneStuck(t *testing.T, definition string) (th *harness, version, id string, s *stuck) {
	t.Helper()
	s = &stuck{Store: model.New(model.Options{}), release: make(chan struct{})}
	s.task.Store("nobody's")
	before := start(t, actors.Config{Store: s})
	version = before.publish(t, definition)
	id = before.begin(t, version, `{}`)
	require.NoError(t, before.Stop(t.Context()))
	s.task.Store(id)
	return start(t, actors.Config{Store: s}), version, id, s
}

func TestAPollWithAJobDoesNotWaitLongForOthers(t *testing.T) {
	th, version, late, store := withOneStuck(t, queueOf("x"))
	id := th.begin(t, version, `{}`)
	got := th.poll(t, patience, 2, "x")
	require.Len(t, got, 1)
	require.Equal(t, id, got[0].Job.Task)
	close(store.release)
	again := th.poll(t, patience, 1, "x")
	require.Len(t, again, 1, "what came too late was given back")
	require.Equal(t, late, again[0].Job.Task)
	require.Zero(t, again[0].Job.Deliveries)
}

// TestTheAnswerToManyClaimsIsBounded lets many pollers claim large jobs of one owner at once.
func TestTheAnswerToManyClaimsIsBounded(t *testing.T) {
	const jobs = 40
	c := newCircuit(nil)
	a, b := c.join(t, actors.Config{}), c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	large, err := json.Marshal(map[string]string{"text": string(bytes.Repeat([]byte("x"), 500_000))})
	require.NoError(t, err)
	version := a.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"x","prep":{"input_key":"$params.text"}}}}`)
	beginIn(t, a, version, string(large), jobs)
	polling, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.lines[b].hold = func(engine.Order) {
		once.Do(func() {
			close(polling)
			<-release
		})
	}
	got := make(chan int, jobs)
	for i := range jobs {
		go func() {
			jobs, _ := b.Poll(t.Context(), engine.Poll{Worker: fmt.Sprint(i), Services: []string{"x"}, Wait: patience})
			got <- len(jobs)
		}()
	}
	<-polling
	// This passes the sessions actor's mailbox after all of them: they have claimed.
	require.Empty(t, b.poll(t, 0, 1, "y"))
	close(release)
	for range jobs {
		require.Equal(t, 1, <-got)
	}
	require.LessOrEqual(t, c.lines[b].largest.Load(), int64(9<<20))
}

func TestTimelyOutcomesAreKeptWhenAnotherOrderTimesOut(t *testing.T) {
	th, version, late, store := withOneStuck(t, untilApproved)
	id := th.begin(t, version, `{}`)
	said := flow.Signal{Key: "k", Value: []byte(`1`)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	outcomes, err := th.DoAll(ctx, engine.Orders{{Task: late, Command: said, Request: "r1"}, {Task: id, Command: said, Request: "r2"}})
	close(store.release)
	require.NoError(t, err)
	require.ErrorIs(t, outcomes[0].Err, context.DeadlineExceeded)
	require.NoError(t, outcomes[1].Err)
	require.NotZero(t, outcomes[1].Changed)
}

func TestEachOrderOfABatchIsAdmittedSeparately(t *testing.T) {
	store := gated(t)
	th := start(t, actors.Config{Store: store, MaxUncommitted: 1})
	version := th.publish(t, untilApproved)
	id, other := th.begin(t, version, `{}`), th.begin(t, version, `{}`)
	store.shut.Lock()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _ = th.Do(t.Context(), other, flow.Signal{Key: "k", Value: []byte(`1`)}, "") })
	}
	require.Eventually(t, func() bool { return th.Stats().Messages == 2 }, patience, time.Millisecond)
	answered := make(chan engine.Outcomes, 1)
	all.Go(func() {
		outcomes, _ := th.DoAll(t.Context(), engine.Orders{{Task: id, Command: flow.Cancel{}},
			{Task: id, Command: flow.Signal{Key: "k", Value: []byte(`1`)}, Request: "r"}})
		answered <- outcomes
	})
	require.Eventually(t, func() bool { return th.Stats().Messages == 3 }, patience, time.Millisecond)
	store.shut.Unlock()
	outcomes := <-answered
	require.NoError(t, outcomes[0].Err)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(outcomes[1].Err), "%v", outcomes[1].Err)
	all.Wait()
}
