package worker

import "sync"

// hands are goroutines that carry out one job after the other: handlers need deep stacks, and growing a new one each time costs more
// than a short job. There are as many as there were jobs at once. Each rouses one more before it begins a job while others wait, so
// jobs that block do not hold up any, and short ones that came together are done by few hands, whose results leave together.
// Its fields belong to the lock of the attachment.
type hands struct {
	jobs  []*attached // that wait for one
	spare int         // hands that wait for a job and are not roused
	turn  sync.Cond
	over  bool
}

// rouse has a hand take what waits. The lock is held.
func (a *attachment) rouse() {
	h := &a.hands
	switch {
	case len(h.jobs) == 0:
	case h.spare > 0:
		h.spare--
		h.turn.Signal()
	default:
		go a.work()
	}
}

func (a *attachment) work() {
	for j := a.nextJob(); j != nil; j = a.nextJob() {
		a.carryOut(j)
		j.cancel(nil)
		a.worker.load.Add(-1)
	}
}

// nextJob waits for one; nil = the worker has ended.
func (a *attachment) nextJob() *attached {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &a.hands
	for len(h.jobs) == 0 && !h.over {
		h.spare++
		h.turn.Wait()
	}
	if len(h.jobs) == 0 {
		return nil
	}
	j := h.jobs[0]
	h.jobs[0] = nil
	h.jobs = h.jobs[1:]
	a.rouse()
	return j
}

// dismiss ends all hands.
func (a *attachment) dismiss() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hands.over = true
	a.hands.turn.Broadcast()
}
