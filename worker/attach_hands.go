package worker

import "sync"

// jobRunners are goroutines that carry out one job after the other: handlers need deep stacks, and
// growing a new one each time costs more than a short job. There are as many as there were jobs at
// once. Each rouses one more before it begins a job while others wait, so jobs that block do not
// hold up any, and short ones that came together are done by few hands, whose results leave
// together. Its fields belong to the lock of the attachment.
type jobRunners struct {
	jobs    []*attachedJob // that wait for one
	idle    int            // hands that wait for a job and are not roused
	hasWork sync.Cond
	closed  bool
}

// wakeRunner has a hand take what waits. The lock is held.
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

// nextJob waits for one; nil = the worker has ended.
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

// stopRunners ends all hands.
func (a *attachedWorker) stopRunners() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runners.closed = true
	a.runners.hasWork.Broadcast()
}
