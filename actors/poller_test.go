package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
)

func TestAJobGoesToAPollThatHasNoneYet(t *testing.T) {
	q := newQueue(new(Member))
	wait := func(most, got int) *poller {
		p := newPoller(engine.Poll{Services: []string{"s"}, Max: most, Wait: 1}, nil)
		p.got, p.claiming = make(engine.Jobs, got), 1
		q.await(p)
		return p
	}
	job := &ref{service: "s"}
	require.Nil(t, q.waiter(job))

	served := wait(10, 1)
	require.Same(t, served, q.waiter(job), "while there is no other one")
	wait(10, 1)
	require.Same(t, served, q.waiter(job), "who has waited for longer goes first")
	fresh := wait(10, 0)
	require.Same(t, fresh, q.waiter(job))
	wait(10, 0)
	require.Same(t, fresh, q.waiter(job))
	q.dismiss(fresh)
	served.Max = 1
	require.NotSame(t, served, q.waiter(job), "it has no room")
}

func TestAPollIsAnsweredWithTheLongestWaitingFirst(t *testing.T) {
	q := newQueue(new(Member))
	var got []int64
	p := newPoller(engine.Poll{Services: []string{"s"}, Max: 3}, func(jobs engine.Jobs) {
		for _, j := range jobs {
			got = append(got, j.Job.EnqueuedAt)
		}
	})
	q.await(p)
	for _, at := range []int64{7, 9, 8} { // as their claims are stored
		q.got(p, &engine.Claimed{Job: engine.Job{EnqueuedAt: at}})
	}
	q.finish(p, false)
	require.Equal(t, []int64{7, 8, 9}, got)
}
