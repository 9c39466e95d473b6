package actors_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

const twoInARow = `{"start":"a","nodes":{
	"a":{"exec_type":"queue","service":"x","post":{"action_static":"next"}},
	"b":{"exec_type":"queue","service":"x"}},
	"edges":[{"from":"a","action":"next","to":"b"}]}`

// exchange reports the end of a job, and asks for up to limit others.
func (th *harness) exchange(ctx context.Context, done engine.Claimed, limit int, services ...string) (engine.Exchanged, error) {
	order, err := engine.Completing(done.Job.ID(), flow.Report{Output: json.RawMessage(`1`), Token: done.Token})
	if err != nil {
		return engine.Exchanged{}, err
	}
	return th.Member.Exchange(ctx, engine.Exchange{Orders: engine.Orders{order},
		Next: engine.Poll{Worker: "w", Services: services, Max: limit, Unlisted: true}})
}

// firstOf returns the only job, taken by a poll that waited until the queue knows of no other job
// in the store. Only then does a report's sender get the job that the report starts.
func (th *harness) firstOf(t *testing.T, service string) engine.Claimed {
	t.Helper()
	got := th.poll(t, 0, 2, service)
	require.Len(t, got, 1)
	return got[0]
}

// awaitReady waits until the queue has the given number of jobs in memory.
func (th *harness) awaitReady(t *testing.T, jobs int64) {
	t.Helper()
	require.Eventually(t, func() bool { return th.Stats().Ready == jobs }, patience, time.Millisecond)
}

func TestAReportReturnsTheJobThatItStarts(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.begin(t, th.publish(t, twoInARow), `{}`)
	first := th.firstOf(t, "x")
	before := th.rows(t, id)
	done, err := th.exchange(t.Context(), first, 5, "y", "x")
	require.NoError(t, err)
	require.Equal(t, engine.Outcomes{{Changed: done.Outcomes[0].Changed}}, done.Outcomes)
	require.NotZero(t, done.Outcomes[0].Changed)
	require.Len(t, done.Jobs, 1)
	require.Equal(t, "b", done.Jobs[0].Job.Node)
	require.Equal(t, before+1, th.rows(t, id), "it is claimed in the row of the report")
	require.Empty(t, th.poll(t, 0, 1, "x"))

	last, err := th.exchange(t.Context(), done.Jobs[0], 5, "x")
	require.NoError(t, err)
	require.Empty(t, last.Jobs, "nobody waits for others")
	require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
}

func TestAReportReturnsRequestedJobsOnly(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.begin(t, th.publish(t, twoInARow), `{}`)
	done, err := th.exchange(t.Context(), th.firstOf(t, "x"), 5, "y")
	require.NoError(t, err)
	require.Empty(t, done.Jobs)
	require.Equal(t, id, th.poll(t, 0, 1, "x")[0].Job.Task)
}

func TestAReportReturnsWaitingJobs(t *testing.T) {
	th := start(t, actors.Config{})
	version := th.publish(t, twoInARow)
	th.begin(t, version, `{}`)
	first := th.firstOf(t, "x")
	other := th.begin(t, version, `{}`)
	th.awaitReady(t, 1)
	older, err := th.exchange(t.Context(), first, 1, "x")
	require.NoError(t, err)
	require.Len(t, older.Jobs, 1)
	require.Equal(t, other, older.Jobs[0].Job.Task, "it waited when the report came")
	th.awaitReady(t, 1)
	both, err := th.exchange(t.Context(), older.Jobs[0], 2, "x")
	require.NoError(t, err)
	require.Len(t, both.Jobs, 2)
	require.ElementsMatch(t, []string{first.Job.Task, other}, []string{both.Jobs[0].Job.Task, both.Jobs[1].Job.Task})
}

// A job may be queued between the report and the job that it starts.
func TestAReportReturnsTheLongestWaitingJob(t *testing.T) {
	var hold atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Call: func(_ context.Context, name string) error {
		if (name == "Load" || name == "Rows") && hold.Swap(false) {
			held <- struct{}{}
			<-release
		}
		return nil
	}})
	th := start(t, actors.Config{Store: store, IdleAfter: time.Millisecond})
	version := th.publish(t, twoInARow)
	th.begin(t, version, `{}`)
	first := th.firstOf(t, "x")
	th.eventuallyEmpty(t)
	hold.Store(true)
	done := make(chan engine.Jobs, 1)
	go func() {
		got, err := th.exchange(t.Context(), first, 1, "x")
		assert.NoError(t, err)
		done <- got.Jobs
	}()
	<-held
	older := th.begin(t, version, `{}`)
	th.awaitReady(t, 1)
	close(release)
	jobs := <-done
	require.Len(t, jobs, 1)
	require.Equal(t, older, jobs[0].Job.Task)
}

// A caller that has gone before its report is stored gets neither the answer nor the job.
func TestTheJobOfADepartedCallerGoesToTheNextPoller(t *testing.T) {
	store := openStore(t, t.TempDir()+"/troupe.db")
	t.Cleanup(func() { store.Close() })
	var hold atomic.Bool
	held, release := make(chan struct{}, 1), make(chan struct{})
	th := start(t, actors.Config{Store: faulty.Wrap(store, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
		if !hold.Swap(false) {
			return faulty.Fault{}
		}
		held <- struct{}{}
		return faulty.Hold(release)
	}})})
	th.begin(t, th.publish(t, twoInARow), `{}`)
	first := th.firstOf(t, "x")
	hold.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := th.exchange(ctx, first, 1, "x")
		ended <- err
	}()
	<-held
	leave()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(release)
	got := th.poll(t, patience, 1, "x")
	require.Len(t, got, 1)
	require.Equal(t, "b", got[0].Job.Node)
	require.Zero(t, got[0].Job.Deliveries)
}

func TestAnExchangeBeyondTheLimitsIsRefused(t *testing.T) {
	th := start(t, actors.Config{})
	th.begin(t, th.publish(t, twoInARow), `{}`)
	first := th.firstOf(t, "x")
	_, err := th.exchange(t.Context(), first, 1, names(1001)...)
	require.Equal(t, flow.Invalid, flow.ErrorKindOf(err))
	require.NoError(t, th.Complete(t.Context(), first.Job.ID(), flow.Report{Token: first.Token}), "the report was not carried out")
	require.Len(t, th.poll(t, 0, 1, "x"), 1)
}
