package journal

import (
	"sync"
	"sync/atomic"
)

// Notifier notifies the watchers of a task that its journal has grown. A notice carries no content,
// because watchers read the journal. So slow watchers miss nothing.
type Notifier struct {
	count atomic.Int64 // number of watchers
	mu    sync.Mutex
	tasks map[string]map[chan struct{}]bool
	Done  chan struct{}
	once  sync.Once
}

// NewNotifier creates a notifier without watchers.
func NewNotifier() *Notifier {
	return &Notifier{tasks: map[string]map[chan struct{}]bool{}, Done: make(chan struct{})}
}

// WatchTask returns a channel that holds a token whenever the journal has grown.
func (h *Notifier) WatchTask(task string) (grown <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks[task] == nil {
		h.tasks[task] = map[chan struct{}]bool{}
	}
	h.tasks[task][c] = true
	h.count.Add(1)
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.tasks[task], c)
		if len(h.tasks[task]) == 0 {
			delete(h.tasks, task)
		}
		h.count.Add(-1)
	}
}

// NotifyWatchers notifies the watchers of a task.
func (h *Notifier) NotifyWatchers(task string) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.tasks[task] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Close ends all watches.
func (h *Notifier) Close() { h.once.Do(func() { close(h.Done) }) }
