package attack

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/testing/process"
)

// weight watches the memory of a process. A process far above its limit is killed before the
// machine runs out of memory.
type weight struct {
	p    *process.Process
	work sync.WaitGroup
	end  func()

	mu        sync.Mutex
	now, peak float64 // MB
}

// deadlyMB is the limit above which a member is killed.
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

// read returns the memory in MB: the current value, and the peak since forget. After the end of the
// process it returns the last values.
func (w *weight) read() (now, peak float64) {
	now, high, err := memory(w.p.Pid())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && now > 0 {
		w.now, w.peak = now, max(w.peak, now, high)
	}
	return w.now, w.peak
}

// forget resets the peak.
func (w *weight) forget() {
	_ = forgetPeak(w.p.Pid()) // fails if the process has ended, which is detected elsewhere
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now, w.peak = 0, 0
}
