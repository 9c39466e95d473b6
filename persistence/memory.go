package persistence

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// Room is the memory budget of one reading caller.
type Room interface {
	// Take raises the memory held by the caller to the given bytes, if the caller holds less. It
	// may wait, and it may return an error.
	Take(ctx context.Context, bytes int64) error
	// Keep gives back the memory that the caller holds above the given bytes.
	Keep(bytes int64)
}

type roomKey struct{}

// InRoom returns a context in which a Reader asks for room before it reads large tasks.
func InRoom(ctx context.Context, room Room) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// readCost is the factor from stored size to memory while a task is read: the driver holds a copy,
// and a unit in memory is ten times its stored size. keepCost is the factor while the task is in
// use. Tasks smaller than largeTask need no room.
const (
	readCost  = 6
	keepCost  = 2
	largeTask = 256 << 10
)

// wholeHistory is the size in bytes of the largest journal that is returned at once. historyCost is
// the factor from the size of a journal to memory.
const (
	wholeHistory = 256 << 20
	historyCost  = 2
)

// takeHistoryMemory reserves memory for a journal after the given bytes were read. It returns an
// error for a journal over wholeHistory.
func takeHistoryMemory(ctx context.Context, task string, bytes int64) error {
	room, ok := ctx.Value(roomKey{}).(Room)
	switch {
	case !ok || bytes < largeTask:
		return nil
	case bytes > wholeHistory:
		return flow.Errorf(flow.Limit, "the history of task %.200q is larger than the %d MiB "+
			"that are told at once: read it by the page, at /v1/tasks/{task}/runs", task, wholeHistory>>20)
	}
	return room.Take(ctx, bytes*historyCost)
}

// inRoom runs read for tasks of the given stored size, with room for them if the context has a
// Room.
func inRoom(ctx context.Context, bytes int64, read func() error) error {
	room, ok := ctx.Value(roomKey{}).(Room)
	if !ok || bytes < largeTask {
		return read()
	}
	if err := room.Take(ctx, bytes*readCost); err != nil {
		return err
	}
	defer room.Keep(bytes * keepCost)
	return read()
}

// readMeasured runs read for a task after reserving room for it.
func (r *Reader) readMeasured(ctx context.Context, task string, read func() error) error {
	if ctx.Value(roomKey{}) == nil {
		return read()
	}
	sizes, err := r.measureTasks(ctx, []string{task})
	if err != nil {
		return err
	}
	return inRoom(ctx, sizes[0], read)
}

func (r *Reader) measureTasks(ctx context.Context, tasks []string) ([]int64, error) {
	sizes, err := r.store.Sizes(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("measuring tasks: %w", err)
	}
	return sizes, nil
}

// Each reads batches of at most tasksAtOnce tasks and bytesAtOnce bytes; a larger task is a batch
// by itself.
const (
	tasksAtOnce = 100
	bytesAtOnce = 4 << 20
)

// Each calls visit for tasks in order, with the same views as View. It reserves room for each batch
// and skips unknown tasks. For an unreadable task, the view has Unreadable set.
func (r *Reader) Each(ctx context.Context, tasks []string, visit func(*View) error) error {
	sizes, err := r.measureTasks(ctx, tasks)
	for len(tasks) > 0 && err == nil {
		n, bytes := 1, sizes[0]
		for n < min(len(tasks), tasksAtOnce) && bytes+sizes[n] <= bytesAtOnce {
			bytes += sizes[n]
			n++
		}
		err = r.visitTogether(ctx, tasks[:n], bytes, visit)
		tasks, sizes = tasks[n:], sizes[n:]
	}
	return err
}

// visitTogether reads one batch of tasks and visits them. It gives all room back afterwards, so
// that no caller waits for room while holding some.
func (r *Reader) visitTogether(ctx context.Context, tasks []string, bytes int64, visit func(*View) error) error {
	var views []*View
	err := inRoom(ctx, bytes, func() (err error) {
		views, err = r.loadViews(ctx, tasks)
		return err
	})
	if room, ok := ctx.Value(roomKey{}).(Room); ok {
		defer room.Keep(0)
	}
	for i := 0; i < len(views) && err == nil; i++ {
		v := views[i]
		views[i] = nil // frees the memory of the view before the others
		if v != nil {
			err = visit(v)
		}
	}
	return err
}
