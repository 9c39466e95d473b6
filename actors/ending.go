package actors

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// workGrace bounds how long a member that ends waits for what it does in the background.
const workGrace = 5 * time.Second

// awaitWork waits for work in the background, which was called off. A carrier that does not listen to its
// context is left behind, and named: a process that cannot end is worse.
func (m *Member) awaitWork() {
	timeUp := make(chan struct{})
	defer m.cfg.Host.Clock.AfterFunc(workGrace, func() { close(timeUp) })()
	m.park(func() bool { return m.working.Load() == 0 || closed(timeUp) })
	ended := make(chan struct{})
	go func() {
		m.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-timeUp:
		m.log.Error("work in the background does not end although it was called off: it is left behind",
			"number", m.working.Load(), "jobs", m.stragglers())
	}
}

// namedStragglers bounds how many jobs a log line names.
const namedStragglers = 10

// stragglers are jobs whose carriers have not returned.
func (m *Member) stragglers() []string {
	flights := m.carried.Load()
	if flights == nil {
		return nil
	}
	var jobs []string
	for key, f := range *flights {
		if f.stage.Load() == underWay && len(jobs) < namedStragglers {
			jobs = append(jobs, flow.JobID(key.task, key.at))
		}
	}
	return jobs
}
