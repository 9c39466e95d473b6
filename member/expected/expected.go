// Package expected looks for tasks that a program creates in a transaction of its own.
//
// Such tasks are at rest and due when the transaction commits. The engine gets no notice of the
// commit: the owners of the tasks find them within a second, by their regular search for due tasks.
// To save that second, the engine that created them polls the store for them, and then sends them a
// command, which makes their owners load them.
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
	// pollFor is how long a task is polled for. The owner finds the task if its
	// transaction takes longer.
	pollFor = 5 * time.Second
	// maxTasks is how many tasks are polled for at once. Their owners find any others.
	maxTasks = 1000
)

// Tasks holds tasks that may soon be committed.
type Tasks struct {
	Store  persistence.Store
	Engine func() engine.Engine // nil before there is a member
	Closed context.Context      // ends when the engine is closed
	Work   *sync.WaitGroup      // waits for the polling

	mu    sync.Mutex
	since map[string]time.Time
}

// Add starts polling for a task.
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

// pollTasks polls until no task is left, or the engine is closed.
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

// remainingTasks returns the tasks to poll for; nil if there are none: then the next Add starts
// a new goroutine.
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

// existingTasks returns the tasks that exist. If the store does not answer, the next poll asks
// again.
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

// wakeTasks makes the owners load the tasks: every command brings its task into memory. The command
// here asks about an attempt that does not exist.
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
	_, _ = asked.DoAll(ctx, orders) // an owner that was not reached finds the due task by itself
}
