package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
)

// heldJobs tests a job held by a worker when something dies.
func heldJobs(t *testing.T) {
	t.Run("a pull worker's goes to the next one when its claim has run out", func(t *testing.T) {
		t.Parallel()
		s := newHeldStage(t)
		s.hireFor("first", errands.Worker{Services: []string{"hold"}, Hang: true})
		task := s.hold("pull")
		time.Sleep(2 * heldVisibility) // heartbeats keep it beyond its visibility
		s.hireFor("second", errands.Worker{Services: []string{"hold"}})
		s.await("second")
		require.Equal(t, []string{"first"}, s.workersOf(task))
		s.workers["first"].Kill()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first", "second")
	})
	t.Run("a push worker's goes to the next one at once", func(t *testing.T) {
		t.Parallel()
		s := newHeldStage(t)
		s.hireFor("first", errands.Worker{Push: true, Services: []string{"hold"}, Hang: true})
		s.await("first")
		s.hireFor("second", errands.Worker{Push: true, Services: []string{"hold"}})
		s.await("second")
		task := s.hold("push")
		s.workers["first"].Kill()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first", "second")
	})
	t.Run("the only push worker's fails", func(t *testing.T) {
		t.Parallel()
		s := newHeldStage(t)
		s.hireFor("first", errands.Worker{Push: true, Services: []string{"hold"}, Hang: true})
		s.await("first")
		task := s.hold("push")
		s.workers["first"].Kill()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"lost":"NOBODY DID IT"}`}, "first")
	})
	t.Run("a pull worker finishes it while the member is away", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "")
		s.visibility = patience / 4 // even if the member starts slowly
		s.openAlone(t.Context())
		s.hireFor("first", errands.Worker{Services: []string{"hold"}})
		task := s.hold("pull")
		s.member.Kill()
		time.Sleep(300 * time.Millisecond) // less than the claim's time
		s.launch()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first")
	})
	t.Run("a push worker has it again when the member was away for long", func(t *testing.T) {
		t.Parallel()
		s := newHeldStage(t, 3*time.Second)
		s.hireFor("first", errands.Worker{Push: true, Services: []string{"hold"}})
		s.await("first")
		task := s.hold("push")
		s.member.Kill()
		time.Sleep(6 * time.Second) // its heartbeats have no receiver
		s.launch()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first", "first")
	})
	t.Run("an attached worker's goes to the next one as soon as it is dead", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "")
		s.grace = 0
		s.openAlone(t.Context())
		s.hireFor("first", errands.Worker{Attach: true, Services: []string{"hold"}, Hang: true})
		s.await("first")
		task := s.hold("push")
		s.hireFor("second", errands.Worker{Attach: true, Services: []string{"hold"}})
		s.await("second")
		killed := time.Now()
		s.workers["first"].Kill()
		require.Eventually(t, func() bool { return len(s.workersOf(task)) == 2 }, patience, time.Millisecond)
		took := time.Since(killed)
		t.Logf("another worker had the job %s after the first one was killed", took)
		require.Less(t, took, s.workerTTL-5*time.Second, "nobody waits until it has been silent for so long")
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first", "second")
	})
	t.Run("an attached worker's goes to the next one after the grace", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "")
		s.grace = time.Second
		s.openAlone(t.Context())
		s.hireFor("first", errands.Worker{Attach: true, Services: []string{"hold"}, Hang: true})
		s.await("first")
		task := s.hold("push")
		s.hireFor("second", errands.Worker{Attach: true, Services: []string{"hold"}})
		s.await("second")
		s.workers["first"].Kill()
		s.ends(task, errands.Outcome{State: "completed", Shared: `{"held":14}`}, "first", "second")
	})
	t.Run("an attached worker comes back to a member that was killed", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "")
		s.openAlone(t.Context())
		s.hireFor("first", errands.Worker{Attach: true, Services: []string{"hold"}})
		s.await("first")
		task := s.hold("push")
		s.member.Kill()
		s.launch()
		s.over(task, errands.Outcome{State: "completed", Shared: `{"held":14}`})
		// The new member knows the worker's session only after the worker has returned, which may
		// be too late for the job.
		require.Contains(t, [][]string{{"first"}, {"first", "first"}}, s.workersOf(task), "workers that began the job")
	})
}

const heldVisibility = 5 * time.Second

func newHeldStage(t *testing.T, workerTTL ...time.Duration) *stage {
	s := newStage(t, "")
	for _, ttl := range workerTTL {
		s.workerTTL = ttl
	}
	s.visibility = heldVisibility
	s.openAlone(t.Context())
	return s
}

// hold starts a task and waits until a worker has begun its job.
func (s *stage) hold(by string) (task string) {
	started, err := s.client.Start(s.t.Context(), "", "held", map[string]any{"by": by, "n": 7})
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool { return len(s.workersOf(started.ID)) > 0 }, patience, 10*time.Millisecond,
		"nobody has begun the job of task %s", started.ID)
	return started.ID
}

// workersOf returns the workers that began the only job of a task.
func (s *stage) workersOf(task string) (began []string) {
	for job, workers := range s.executions() {
		if len(job) > len(task) && job[:len(task)] == task {
			began = append(began, workers...)
		}
	}
	return began
}

// over waits for a task's end, stops the member and checks the task.
func (s *stage) over(task string, want errands.Outcome) {
	s.t.Helper()
	_, err := s.client.End(s.t.Context(), task)
	require.NoError(s.t, err)
	s.leave()
	errands.Audit(s.t, s.store, map[string]errands.Outcome{task: want})
}

// ends waits for a task's end, stops the member and checks everything.
func (s *stage) ends(task string, want errands.Outcome, began ...string) {
	s.t.Helper()
	s.over(task, want)
	require.Equal(s.t, began, s.workersOf(task), "workers that began the job")
}
