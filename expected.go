package troupe

import (
	"context"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Tasks that begin in transactions of the program are at rest and due when those are committed,
// which nobody tells us: their owners find them within a second, as they look for all that is due.
// So that they need not wait for that, the program that began them looks whether they are there,
// and asks for them, which has their owners take them up.

const (
	// expectedEvery is how often it looks.
	expectedEvery = 20 * time.Millisecond
	// expectedPatience is for how long: whose transaction takes longer is found by its owner.
	expectedPatience = 5 * time.Second
	// maxExpected is how many are looked for at once. Others are found by their owners.
	maxExpected = 1000
)

// expectedTasks are tasks that may be there soon.
type expectedTasks struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// addTask has a task looked for.
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

// pollTasks ends when there is nothing left to look for, or the engine is closed.
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

// remainingTasks are those that are still looked for; nil: there are none, and the next one is
// looked for anew.
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

// existingTasks are those of some tasks that are there. What the store does not answer is asked
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

// wakeTasks has the owners of tasks take them up: whatever is asked of a task brings it into
// memory. This asks for an attempt that there is not.
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
	_, _ = (*asked).DoAll(ctx, orders) // who was not reached finds what is due by himself
}
