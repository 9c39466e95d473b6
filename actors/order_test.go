package actors

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
)

// held is a store that passes each batch to the test, and writes it when it is released.
type held struct {
	persistence.Store
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
	realClock
	over chan func()
}

func (p patient) AfterFunc(d time.Duration, f func()) func() bool {
	if d != maxLaneWait {
		return p.realClock.AfterFunc(d, f)
	}
	p.over <- f
	return func() bool { return true }
}

// committerOver returns a member's committer and the function that receives its next batch.
func committerOver(t *testing.T) (l *committer, next func(tasks ...string) heldBatch) {
	store := held{model.New(model.Options{}), make(chan heldBatch)}
	m, err := Start(t.Context(), Config{Store: store, Host: Host{Clock: patient{over: make(chan func(), 10)}}})
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	return m.committer, func(tasks ...string) heldBatch {
		b := <-store.batches
		require.Equal(t, tasks, b.tasks)
		return b
	}
}

func (l *committer) addEach(tasks ...string) {
	for _, task := range tasks {
		l.enqueueCommit(&pendingCommit{commit: persistence.Commit{Task: task}, reply: l.m.tasks})
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

// three returns a committer with a batch in one lane; the other lane is free.
func three(t *testing.T) (l *committer, next func(tasks ...string) heldBatch, written heldBatch) {
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
	l, next, first := three(t)
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
	l, next, first := three(t)
	l.addEach("f")
	require.Equal(t, 1, l.runningLanes)
	over := l.m.cfg.Host.Clock.(*endingClock).Clock.(patient).over
	for range 3 { // the batches so far
		(<-over)()
	}
	close(next("f").release)
	close(first.release)
}
