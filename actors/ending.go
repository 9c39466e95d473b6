package actors

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// backgroundGrace is how long a stopping member waits for its background work.
const backgroundGrace = 5 * time.Second

// awaitBackground waits for the canceled background work. It logs and abandons a carrier that
// ignores its context, so that the process can end.
func (m memberEnding) awaitBackground() {
	if left := m.work.AwaitEnd(backgroundGrace); left > 0 {
		m.log.Error("background work does not stop after cancellation: it is abandoned",
			"number", left, "jobs", m.stragglingJobs())
	}
}

// maxNamedStragglers bounds how many jobs a log line names.
const maxNamedStragglers = 10

// stragglingJobs returns the ids of jobs whose carriers have not returned.
func (m memberEnding) stragglingJobs() []string {
	flights := m.stoppedJobs.Load()
	if flights == nil {
		return nil
	}
	var jobs []string
	for key, f := range *flights {
		if f.stage.Load() == stageRunning && len(jobs) < maxNamedStragglers {
			jobs = append(jobs, flow.JobID(key.Task, key.At))
		}
	}
	return jobs
}
