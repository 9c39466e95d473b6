package cluster

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// reading is a reader that watches a task.
type reading struct {
	rows chan int64
	err  chan error
}

func (s *stage) read(ctx context.Context, at, task string) *reading {
	r := &reading{make(chan int64, 100), make(chan error, 1)}
	go func() {
		var failed error
		for row, err := range s.members[at].router.Watch(ctx, task, 0) {
			if failed = err; err == nil {
				r.rows <- row.Seq
			}
		}
		close(r.rows)
		r.err <- failed
	}()
	return r
}

func TestTheEndOfATaskIsHeardOnAnyMember(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	for _, owner := range []string{"a", "b"} {
		task := s.taskOf(owner)
		s.journal.begin(task)
		ended := make(chan flow.TaskStatus, 3)
		for _, m := range s.members {
			go func() {
				status, err := m.router.Await(soon(t), task)
				if err == nil {
					ended <- status
				}
			}()
		}
		s.journal.add(task, true)
		for range s.members {
			require.Equal(t, flow.TaskCompleted, <-ended)
		}
	}
}

func TestAWaitGoesOnWhenItsTaskMoves(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	for _, from := range []string{"a", "b"} {
		task := s.taskOf(from)
		s.journal.begin(task)
		ended := make(chan error, 1)
		go func() {
			_, err := s.members["a"].router.Await(soon(t), task)
			ended <- err
		}()
		r := s.read(soon(t), "a", task)
		require.Equal(t, int64(1), <-r.rows)
		s.move(task, "c")
		s.members["a"].views.Look()
		s.journal.add(task, false)
		require.Equal(t, int64(2), <-r.rows)
		s.journal.add(task, true)
		require.Equal(t, int64(3), <-r.rows)
		require.NoError(t, <-ended)
		_, more := <-r.rows
		require.False(t, more, "the watch ends with the task, and tells no row twice")
		require.NoError(t, <-r.err)
	}
}

func TestAWaitWhoseMemberIsGoneIsAnsweredFromTheJournal(t *testing.T) {
	s := newStage(t, "a", "b")
	a, b, task := s.members["a"], s.members["b"], s.taskOf("b")
	a.views.stubborn = true
	s.journal.begin(task)
	ended, r := make(chan error, 1), s.read(soon(t), "a", task)
	go func() {
		_, err := a.router.Await(soon(t), task)
		ended <- err
	}()
	require.Equal(t, int64(1), <-r.rows)
	b.die()
	s.journal.add(task, false)
	require.Equal(t, int64(2), <-r.rows)
	s.journal.add(task, true)
	require.Equal(t, int64(3), <-r.rows)
	require.NoError(t, <-ended)
	require.NoError(t, <-r.err)
}

func TestTheBeginningOfATaskIsHeardOnAnyMember(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	task := s.taskOf("b")
	appeared := make(chan error, 3)
	for _, m := range s.members {
		go func() { appeared <- m.router.Appears(soon(t), task) }()
	}
	s.journal.begin(task)
	for range s.members {
		require.NoError(t, <-appeared)
	}
	unheard, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.members["a"].router.Appears(unheard, s.taskOf("c")), context.DeadlineExceeded)
}

func TestAWatchEndsWithItsReader(t *testing.T) {
	s := newStage(t, "a", "b")
	for _, owner := range []string{"a", "b"} {
		task := s.taskOf(owner)
		s.journal.begin(task)
		s.journal.add(task, false)
		for row, err := range s.members["a"].router.Watch(soon(t), task, 0) {
			require.NoError(t, err)
			require.Equal(t, engine.Row{Seq: 1, At: 7, Events: []byte("event")}, row)
			break
		}
		ctx, cancel := context.WithCancel(soon(t))
		r := s.read(ctx, "a", task)
		require.Equal(t, int64(1), <-r.rows)
		require.Equal(t, int64(2), <-r.rows)
		cancel()
		require.NoError(t, <-r.err)
	}
}

func TestAWatchEndsByAnErrorWhenTheMemberThatIsAskedGoes(t *testing.T) {
	for _, owner := range []string{"a", "b"} {
		s := newStage(t, "a", "b")
		task := s.taskOf(owner)
		s.journal.begin(task)
		r := s.read(soon(t), "a", task)
		require.Equal(t, int64(1), <-r.rows)
		s.members["a"].router.Close()
		require.Equal(t, flow.Busy, flow.ErrorKindOf(<-r.err), "it is not the end of the task")
	}
}

func TestAPollIsAnsweredWhereItIsAsked(t *testing.T) {
	s := newStage(t, "a", "b")
	jobs, err := s.members["b"].router.Poll(soon(t), engine.Poll{Worker: "w"})
	require.NoError(t, err)
	require.Equal(t, "b", jobs[0].Token)
	s.ahead = time.Hour
	require.WithinDuration(t, time.Now().Add(time.Hour), s.members["b"].router.Now(), time.Minute)
	require.NoError(t, s.members["b"].router.Ready())
}

func TestRetriesForAnOwnerBecomeLessFrequent(t *testing.T) {
	var p retryBackoff
	now := time.Unix(0, 0)
	asked := 0
	for ; now.Before(time.Unix(0, 0).Add(time.Hour)); asked++ {
		pause := p.nextDelay(now)
		if now.Before(time.Unix(0, 0).Add(time.Minute)) {
			require.LessOrEqual(t, pause, 500*time.Millisecond)
		}
		now = now.Add(pause)
	}
	require.Less(t, asked, 130+720)
}

// A member that has lost the store knows only old state of its tasks, and loses them when its lease
// ends.
func TestAMemberThatHasLostTheStoreDoesNotAnswerWaits(t *testing.T) {
	s := newStage(t, "a", "b", "c")
	a, b := s.members["a"].router, s.members["b"]
	first := s.taskOf("b")
	s.journal.begin(first)
	b.cut.Store(true)
	_, err := b.router.Do(soon(t), signal(first))
	require.ErrorIs(t, err, engine.ErrUnavailable, "whoever asked it is to ask another one")

	failed := make(chan error, 4)
	go func() { _, err := a.Do(soon(t), signal(first)); failed <- err }()
	go func() {
		outcomes, err := a.DoAll(soon(t), engine.Orders{signal(first)})
		failed <- cmp.Or(err, outcomes[0].Err)
	}()
	go func() { _, err := a.Await(soon(t), first); failed <- err }()
	watcher := s.read(soon(t), "a", first)
	eventually(t, func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.asked >= 8 })
	s.move(first, "c")
	s.journal.add(first, true)
	for range 3 {
		require.NoError(t, <-failed)
	}
	require.NoError(t, <-watcher.err)
}
