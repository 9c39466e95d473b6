package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
)

func TestAJobGoesToAPollWithoutOne(t *testing.T) {
	q := newQueue(new(Member))
	wait := func(most, got int) *poller {
		p := newPoller(engine.Poll{Services: []string{"s"}, Max: most, Wait: 1}, nil)
		p.granted, p.claiming = make([]grantedJob, got), 1
		q.addWaiter(p)
		return p
	}
	job := &queuedJob{service: "s"}
	require.Nil(t, q.findWaiter(job))

	served := wait(10, 1)
	require.Same(t, served, q.findWaiter(job), "while there is no other one")
	wait(10, 1)
	require.Same(t, served, q.findWaiter(job), "who has waited for longer goes first")
	fresh := wait(10, 0)
	require.Same(t, fresh, q.findWaiter(job))
	wait(10, 0)
	require.Same(t, fresh, q.findWaiter(job))
	q.removeWaiter(fresh)
	served.Max = 1
	require.NotSame(t, served, q.findWaiter(job), "it has no room")
}

func TestAnOutrankedPollGetsNothing(t *testing.T) {
	m := new(Member)
	m.cfg.Outranked = func(worker, service string) bool { return worker == "standby" && service == "s" }
	q := newQueue(m)
	poll := func(worker string) *poller {
		p := newPoller(engine.Poll{Worker: worker, Services: []string{"s", "other"}, Max: 1, Wait: 1}, nil)
		q.addWaiter(p)
		return p
	}
	standby := poll("standby")
	require.Nil(t, q.findWaiter(&queuedJob{service: "s"}))
	require.Same(t, standby, q.findWaiter(&queuedJob{service: "other"}))
	require.Same(t, poll("own"), q.findWaiter(&queuedJob{service: "s"}))

	for _, service := range []string{"s", "other"} {
		q.readyList(service, standby.jobFilter).insertJob(&queuedJob{service: service})
	}
	lists := q.readyFor(standby)
	require.Len(t, lists, 1)
	require.Equal(t, "other", lists[0].service)
}

func TestAPollIsAnsweredWithTheLongestWaitingFirst(t *testing.T) {
	q := newQueue(new(Member))
	var got []string
	p := newPoller(engine.Poll{Services: []string{"s"}, Max: 4}, func(jobs engine.Jobs) {
		for _, j := range jobs {
			got = append(got, j.Job.Node)
		}
	})
	q.addWaiter(p)
	grant := func(node string, at int64, turn string) { // as its claim is stored
		job := engine.Claimed{Job: engine.Job{EnqueuedAt: at}}
		job.Job.Node = node
		q.addGranted(p, grantedJob{job, turn})
	}
	grant("first", 7, "9")
	grant("fourth", 9, "1")
	grant("third", 8, "2")
	grant("second", 8, "1")
	q.answerIfReady(p, false)
	require.Equal(t, []string{"first", "second", "third", "fourth"}, got)
}

func TestAPollGetsNothingDuringTheFirstReadOfItsLists(t *testing.T) {
	q := newQueue(new(Member))
	q.servicesKnown = true
	p := newPoller(engine.Poll{Services: []string{"early", "late"}, Max: 2, Wait: 1}, nil)
	q.addWaiter(p)
	late := &queuedJob{service: "late", at: 2}
	q.addReady(q.readyList("late", p.jobFilter), late)
	early := q.readyList("early", p.jobFilter)
	early.spilled, early.fetching, q.firstReads = true, true, 1
	q.grantJobs(p)
	require.Zero(t, p.claiming, "the store may have an earlier one")
	require.Nil(t, q.findWaiter(&queuedJob{service: "late", at: 3}))

	early.read, early.fetching, q.firstReads = true, false, 0
	require.Same(t, p, q.findWaiter(&queuedJob{service: "late", at: 3}))
	require.False(t, q.awaitsFirstRead(p))
	q.servicesKnown, q.readingServices = false, true
	require.True(t, q.awaitsFirstRead(p), "other services may have jobs, too")
}
