// Package expected polls for tasks that a program creates in a transaction of its own.
//
// Such tasks are at rest and due when the transaction commits. The engine gets no notice of the
// commit. The owners of the tasks find them within a second, by their regular search for due tasks.
// To save that second, the engine that created the tasks polls the store for them. Then it sends
// them a command, which makes their owners load them.
package expected

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	// pollEvery is the polling interval.
	pollEvery = 20 * time.Millisecond
	// pollFor is how long a task is polled for. If its transaction takes longer, the regular search
	// of its owner finds the task.
	pollFor = 5 * time.Second
	// maxTasks is the maximum number of tasks that are polled for at once. The regular search finds
	// all others.
	maxTasks = 1000
)

// Tasks holds tasks that may soon be committed.
type Tasks struct {
	Store  persistence.Store
	Engine func() engine.Engine // returns nil before there is a member
	Closed context.Context      // ends when the engine is closed
	Work   *sync.WaitGroup      // counts the polling goroutine

	mu    sync.Mutex
	since map[string]time.Time
}

// Add starts polling for a task. If there are too many tasks, it does nothing.
func (b *Tasks) Add(task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.since) >= maxTasks {
		return
	}
	if b.since == nil {
		b.since = map[string]time.Time{}
		b.Work.Go(b.pollTasks)
	}
	b.since[task] = time.Now()
}

// pollTasks polls the store until no task is left, or the engine is closed.
func (b *Tasks) pollTasks() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-b.Closed.Done():
			return
		}
		tasks := b.remainingTasks()
		if tasks == nil {
			return
		}
		there := b.existingTasks(tasks)
		b.removeTasks(there)
		b.wakeTasks(there)
	}
}

// remainingTasks returns the tasks to poll for. It returns nil if there are none; then the next Add
// starts a new goroutine.
func (b *Tasks) remainingTasks() (tasks []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for task, since := range b.since {
		if time.Since(since) > pollFor {
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

func (b *Tasks) removeTasks(tasks []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, task := range tasks {
		delete(b.since, task)
	}
}

// existingTasks returns the given tasks that exist. If the store does not answer, it returns none,
// and the next poll tries again.
func (b *Tasks) existingTasks(tasks []string) (there []string) {
	ctx, cancel := context.WithTimeout(b.Closed, pollFor)
	defer cancel()
	sizes, err := b.Store.Sizes(ctx, tasks)
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

// wakeTasks makes the owners load the tasks, because every command brings its task into memory. The
// command that it sends asks about an attempt that does not exist.
func (b *Tasks) wakeTasks(tasks []string) {
	asked := b.Engine()
	if len(tasks) == 0 || asked == nil {
		return
	}
	orders := make(engine.Orders, len(tasks))
	for i, task := range tasks {
		orders[i] = engine.Order{Task: task, Command: flow.Inquire{}}
	}
	ctx, cancel := context.WithTimeout(b.Closed, pollFor)
	defer cancel()
	_, _ = asked.DoAll(ctx, orders) // an owner that was not reached finds it later
}
