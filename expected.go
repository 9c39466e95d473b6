package troupe

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Tasks that StartTx creates are at rest and due when the program's transaction commits. The engine
// gets no notice of the commit: the owners of the tasks find them within a second, by their regular
// search for due tasks. To save that second, the engine that created them polls the store for them,
// and then sends them a command, which makes their owners load them.

const (
	// expectedEvery is the polling interval.
	expectedEvery = 20 * time.Millisecond
	// expectedPatience is how long a task is polled for. The owner finds the task if its
	// transaction takes longer.
	expectedPatience = 5 * time.Second
	// maxExpected is how many tasks are polled for at once. Their owners find any others.
	maxExpected = 1000
)

// expectedTasks holds tasks that may soon be committed.
type expectedTasks struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// addTask starts polling for a task.
func (b *expectedTasks) addTask(e *Engine, task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.since) >= maxExpected {
		return
	}
	if b.since == nil {
		b.since = map[string]time.Time{}
		e.work.Go(func() { b.pollTasks(e) })
	}
	b.since[task] = time.Now()
}

// pollTasks polls until no task is left, or the engine is closed.
func (b *expectedTasks) pollTasks(e *Engine) {
	tick := time.NewTicker(expectedEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
		tasks := b.remainingTasks()
		if tasks == nil {
			return
		}
		there := e.existingTasks(tasks)
		b.removeTasks(there)
		e.wakeTasks(there)
	}
}

// remainingTasks returns the tasks to poll for; nil if there are none: then the next addTask starts
// a new goroutine.
func (b *expectedTasks) remainingTasks() (tasks []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for task, since := range b.since {
		if time.Since(since) > expectedPatience {
			delete(b.since, task)
			continue
		}
		tasks = append(tasks, task)
	}
	if tasks == nil {
		b.since = nil
	}
	return tasks
}

func (b *expectedTasks) removeTasks(tasks []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, task := range tasks {
		delete(b.since, task)
	}
}

// existingTasks returns the tasks that exist. If the store does not answer, the next poll asks
// again.
func (e *Engine) existingTasks(tasks []string) (there []string) {
	ctx, cancel := context.WithTimeout(e.ctx, expectedPatience)
	defer cancel()
	sizes, err := e.store.Sizes(ctx, tasks)
	if err != nil {
		return nil
	}
	for i, size := range sizes {
		if size > 0 {
			there = append(there, tasks[i])
		}
	}
	return there
}

// wakeTasks makes the owners load the tasks: every command brings its task into memory. The command
// here asks about an attempt that does not exist.
func (e *Engine) wakeTasks(tasks []string) {
	asked := e.currentEngine.Load()
	if len(tasks) == 0 || asked == nil {
		return
	}
	orders := make(engine.Orders, len(tasks))
	for i, task := range tasks {
		orders[i] = engine.Order{Task: task, Command: flow.Inquire{}}
	}
	ctx, cancel := context.WithTimeout(e.ctx, expectedPatience)
	defer cancel()
	_, _ = (*asked).DoAll(ctx, orders) // an owner that was not reached finds the due task by itself
}
