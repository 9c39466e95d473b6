package flowfuncs

import (
	"sync"
	"time"

	"github.com/troupe-engine/troupe/internal/conversation"
)

// maxWarm is the maximum number of functions that wait in memory. Beyond this number, the function
// with the longest wait is dropped.
const maxWarm = 1000

// warmFlows keeps functions that wait in memory for a while, so that they need no replay. A mutex
// guards it, because jobs end in goroutines of their own.
type warmFlows struct {
	keep time.Duration

	mu        sync.Mutex
	functions map[string]*warmFlow // waiting functions, by job
	oldest    []*warmFlow          // in the order of the waits; may have stale entries
}

type warmFlow struct {
	job  string
	c    *conversation.Conversation
	drop *time.Timer
}

// addFunction keeps a function that was given up.
func (w *warmFlows) addFunction(job string, c *conversation.Conversation) {
	if w.keep <= 0 {
		c.Drop()
		return
	}
	f := &warmFlow{job: job, c: c}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.functions[job] = f
	w.oldest = append(w.oldest, f)
	f.drop = time.AfterFunc(w.keep, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dropFunction(f)
	})
	for len(w.functions) > maxWarm {
		w.dropFunction(w.oldest[0])
	}
	w.trimOldest()
}

// takeFunction removes and returns the function of a job, or nil.
func (w *warmFlows) takeFunction(job string) *conversation.Conversation {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.functions[job]
	if f == nil {
		return nil
	}
	f.drop.Stop()
	delete(w.functions, job)
	w.trimOldest()
	return f.c
}

// dropFunction ends a function that is still kept. The caller holds the mutex.
func (w *warmFlows) dropFunction(f *warmFlow) {
	if w.functions[f.job] == f {
		f.drop.Stop()
		f.c.Drop()
		delete(w.functions, f.job)
	}
	w.trimOldest()
}

// trimOldest removes the leading entries of dropped functions. The caller holds the mutex.
func (w *warmFlows) trimOldest() {
	for len(w.oldest) > 0 && w.functions[w.oldest[0].job] != w.oldest[0] {
		w.oldest = w.oldest[1:]
	}
}

func (w *warmFlows) dropAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.functions {
		w.dropFunction(f)
	}
}
