package journal

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors/background"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// held is a store that passes each batch to the test, and writes it when it is released.
type held struct {
	batches chan heldBatch
}

type heldBatch struct {
	tasks   []string
	release chan struct{}
}

func (held) Lanes() int { return 2 }

func (h held) Commit(_ context.Context, _ string, batch []persistence.Commit) ([]error, error) {
	b := heldBatch{make([]string, len(batch)), make(chan struct{})}
	for i := range batch {
		b.tasks[i] = batch[i].Task
	}
	h.batches <- b
	<-b.release
	return make([]error, len(batch)), nil
}

// patient never signals to the committer that a batch takes long, unless the test does.
type patient struct {
	background.RealClock
	over chan func()
}

func (p patient) AfterFunc(d time.Duration, f func()) func() bool {
	if d != maxLaneWait {
		return p.RealClock.AfterFunc(d, f)
	}
	p.over <- f
	return func() bool { return true }
}

// unobserved ignores how batches fare.
type unobserved struct{}

func (unobserved) StartBatch() int64                      { return 0 }
func (unobserved) FailBatch(error)                        {}
func (unobserved) EndBatch(int64, bool)                   {}
func (unobserved) CheckSlowBatch() func() bool            { return func() bool { return true } }
func (unobserved) RecordFailure(_, _ string, _ error) int { return 1 }
func (unobserved) RecordSuccess(_, _ string)              {}
func (unobserved) RecordCall(_, _ string, _ error)        {}

// committerOver returns a committer and the function that receives its next batch.
func committerOver(t *testing.T) (l *Committer, next func(tasks ...string) heldBatch) {
	store := held{make(chan heldBatch)}
	work := background.New(t.Context(), host.Host{Clock: patient{over: make(chan func(), 10)}})
	l = NewCommitter(CommitterConfig{Store: store, Work: work, Health: unobserved{}, Outages: unobserved{},
		Observe: func(int, time.Duration) {}, Send: func(*actor.PID, any) {}, Uncommitted: &atomic.Int64{}})
	return l, func(tasks ...string) heldBatch {
		b := <-store.batches
		require.Equal(t, tasks, b.tasks)
		return b
	}
}

func (l *Committer) addEach(tasks ...string) {
	for _, task := range tasks {
		l.Enqueue(&Pending{Commit: persistence.Commit{Task: task}})
	}
}

func TestASecondCommitOfATaskWaitsForTheFirst(t *testing.T) {
	l, next := committerOver(t)
	l.addEach("x")
	x := next("x")
	l.addEach("x", "y")
	y := next("y") // by the other lane, which writes what it can
	close(x.release)
	again := next("x")
	close(y.release)
	close(again.release)
}

// newBusyCommitter returns a committer with a batch in one lane; the other lane is free.
func newBusyCommitter(t *testing.T) (l *Committer, next func(tasks ...string) heldBatch, written heldBatch) {
	l, next = committerOver(t)
	l.addEach("a")
	a := next("a")
	l.addEach("b")
	b := next("b")
	l.addEach("c", "d", "e")
	close(a.release)
	written = next("c", "d", "e")
	close(b.release)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.runningLanes == 1
	}, time.Minute, time.Millisecond)
	return l, next, written
}

func TestALaneStartsWhenAsManyCommitsWaitAsAreInFlight(t *testing.T) {
	l, next, first := newBusyCommitter(t)
	l.addEach("f", "g")
	require.Equal(t, 1, l.runningLanes)
	l.addEach("h")
	second := next("f", "g", "h")
	l.addEach("i")
	close(first.release)
	close(second.release)
	close(next("i").release)
}

func TestCommitsDoNotWaitLongForALargerBatch(t *testing.T) {
	l, next, first := newBusyCommitter(t)
	l.addEach("f")
	require.Equal(t, 1, l.runningLanes)
	over := l.cfg.Work.Clock.(patient).over
	for range 3 { // the batches so far
		(<-over)()
	}
	close(next("f").release)
	close(first.release)
}
