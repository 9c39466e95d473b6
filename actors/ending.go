package actors

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// backgroundGrace bounds how long a stopping member waits for its background work.
const backgroundGrace = 5 * time.Second

// awaitBackground waits for background work, which has been canceled. A carrier that ignores its
// context is abandoned and named in the log, because a process that cannot end is worse.
func (m *Member) awaitBackground() {
	timeUp := make(chan struct{})
	defer m.cfg.Host.Clock.AfterFunc(backgroundGrace, func() { close(timeUp) })()
	m.parkUntil(func() bool { return m.backgroundCount.Load() == 0 || isClosed(timeUp) })
	ended := make(chan struct{})
	go func() {
		m.backgroundWork.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-timeUp:
		m.log.Error("work in the background does not end although it was called off: it is left behind",
			"number", m.backgroundCount.Load(), "jobs", m.stragglingJobs())
	}
}

// maxNamedStragglers bounds how many jobs a log line names.
const maxNamedStragglers = 10

// stragglingJobs returns the ids of jobs whose carriers have not returned.
func (m *Member) stragglingJobs() []string {
	flights := m.stoppedJobs.Load()
	if flights == nil {
		return nil
	}
	var jobs []string
	for key, f := range *flights {
		if f.stage.Load() == stageRunning && len(jobs) < maxNamedStragglers {
			jobs = append(jobs, flow.JobID(key.task, key.at))
		}
	}
	return jobs
}
