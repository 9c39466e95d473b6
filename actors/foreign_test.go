package actors_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
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

func TestAPollerFindsJobsOfOthersOfWhichItsMemberWasNotTold(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	c.lines[a].mute = true
	b := c.join(t, actors.Config{})
	version := a.publish(t, queueOf("x"))
	require.Empty(t, b.poll(t, 0, 1, "x"))
	a.begin(t, version, `{}`)
	require.Len(t, b.poll(t, patience, 1, "x"), 1)
	a.begin(t, version, `{}`)
	require.Eventually(t, func() bool { return len(b.poll(t, 0, 1, "x")) == 1 }, patience, 10*time.Millisecond)
}

func TestPollersOfAllMembersGetEachJobOnce(t *testing.T) {
	c := newCircuit(nil)
	a := c.join(t, actors.Config{})
	c.give(a, persistence.AllShards()...)
	members := []*theatre{a, c.join(t, actors.Config{}), c.join(t, actors.Config{})}
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
