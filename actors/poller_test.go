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

func TestAPollThatIsOutrankedGetsNothing(t *testing.T) {
	m := new(Member)
	m.cfg.Outranked = func(worker, service string) bool { return worker == "standby" && service == "s" }
	q := newQueue(m)
	poll := func(worker string) *poller {
		p := newPoller(engine.Poll{Worker: worker, Services: []string{"s", "other"}, Max: 1, Wait: 1}, nil)
		q.await(p)
		return p
	}
	standby := poll("standby")
	require.Nil(t, q.waiter(&ref{service: "s"}))
	require.Same(t, standby, q.waiter(&ref{service: "other"}))
	require.Same(t, poll("own"), q.waiter(&ref{service: "s"}))

	for _, service := range []string{"s", "other"} {
		q.readyList(service, standby.kind).put(&ref{service: service})
	}
	lists := q.readyFor(standby)
	require.Len(t, lists, 1)
	require.Equal(t, "other", lists[0].service)
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
