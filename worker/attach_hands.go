package worker

import "sync"

// jobRunners are goroutines that carry out jobs one after another. Handlers need deep stacks, and
// growing a new stack each time costs more than a short job. The number of runners grows to the
// largest number of concurrent jobs.
//
// Each runner wakes another runner before it starts a job while others wait, so a blocking job
// delays no other. Short jobs that arrive together are done by few runners, so their results are
// sent together. The lock of attachedWorker guards the fields.
type jobRunners struct {
	jobs    []*attachedJob // jobs that wait for a runner
	idle    int            // runners that wait and were not woken
	hasWork sync.Cond
	closed  bool
}

// wakeRunner wakes or starts a runner if a job waits. The lock is held.
func (a *attachedWorker) wakeRunner() {
	h := &a.runners
	switch {
	case len(h.jobs) == 0:
	case h.idle > 0:
		h.idle--
		h.hasWork.Signal()
	default:
		go a.runJobs()
	}
}

func (a *attachedWorker) runJobs() {
	for j := a.nextJob(); j != nil; j = a.nextJob() {
		a.carryOut(j)
		j.cancel(nil)
		a.worker.load.Add(-1)
	}
}

// nextJob waits for a job and returns it, or nil after the worker has ended.
func (a *attachedWorker) nextJob() *attachedJob {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &a.runners
	for len(h.jobs) == 0 && !h.closed {
		h.idle++
		h.hasWork.Wait()
	}
	if len(h.jobs) == 0 {
		return nil
	}
	j := h.jobs[0]
	h.jobs[0] = nil
	h.jobs = h.jobs[1:]
	a.wakeRunner()
	return j
}

// stopRunners ends all runners.
func (a *attachedWorker) stopRunners() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runners.closed = true
	a.runners.hasWork.Broadcast()
}
