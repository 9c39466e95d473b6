package attack

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/process"
)

// weight follows the memory of a process. One that takes far more than its budget is killed, before
// the machine is out of memory.
type weight struct {
	p    *process.Process
	work sync.WaitGroup
	end  func()

	mu        sync.Mutex
	now, peak float64 // MB
}

// deadlyMB ends a member.
const deadlyMB = 2 * memoryBudgetMB

func weigh(p *process.Process) *weight {
	w := &weight{p: p}
	stop := make(chan struct{})
	w.work.Go(func() { w.follow(stop) })
	w.end = sync.OnceFunc(func() {
		close(stop)
		w.work.Wait()
	})
	return w
}

func (w *weight) follow(stop <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if now, _ := w.read(); now > deadlyMB {
			w.p.Kill()
			return
		}
	}
}

// read tells the memory in MB, now and at most since forget. Of a process that is gone it is the
// last that was seen.
func (w *weight) read() (now, peak float64) {
	now, high, err := memory(w.p.Pid())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && now > 0 {
		w.now, w.peak = now, max(w.peak, now, high)
	}
	return w.now, w.peak
}

// forget begins anew.
func (w *weight) forget() {
	_ = forgetPeak(w.p.Pid()) // of a process that is gone, which others notice
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.peak = 0, 0
}
