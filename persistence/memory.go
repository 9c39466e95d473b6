package persistence

import (
	"context"
	"fmt"

	"github.com/troupe-engine/troupe/flow"
)

// Room is the memory in which one caller reads.
type Room interface {
	// Take has the caller hold so many bytes, if it does not hold more. It may wait, and it may
	// refuse.
	Take(ctx context.Context, bytes int64) error
	// Keep gives back what the caller holds beyond so many bytes.
	Keep(bytes int64)
}

type roomKey struct{}

// InRoom has a Reader ask for room before it reads large tasks.
func InRoom(ctx context.Context, room Room) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// What tasks take by what the store holds of them: while they are read, since the driver has it,
// too, and a unit is ten times as large as what is stored of it; and as long as they are looked at.
// Of less than largeTask nobody is asked.
const (
	readCost  = 6
	keepCost  = 2
	largeTask = 256 << 10
)

// How large a journal is at most of which all is told at once, and what that takes.
const (
	wholeHistory = 256 << 20
	historyCost  = 2
)

// takeHistoryMemory asks for what a journal takes of which so many bytes have been read.
func takeHistoryMemory(ctx context.Context, task string, bytes int64) error {
	room, ok := ctx.Value(roomKey{}).(Room)
	switch {
	case !ok || bytes < largeTask:
		return nil
	case bytes > wholeHistory:
		return flow.Errorf(flow.Limit, "the history of task %.200q is larger than the %d MiB that are told at once: read it by the page, at /v1/tasks/{task}/runs", task, wholeHistory>>20)
	}
	return room.Take(ctx, bytes*historyCost)
}

// inRoom reads tasks of so many bytes.
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

// readMeasured reads a task when there is room for it.
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

// Of a list as many tasks are in memory at once as have so many bytes together, or one that has
// more.
const (
	tasksAtOnce = 100
	bytesAtOnce = 4 << 20
)

// Each visits tasks in order, when there is room for them, and tells of each what View would tell.
// Unknown ones are left out. One that cannot be read is visited, too: it says so.
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

// visitTogether visits some tasks that are read at once. What they have taken is given back, so
// that nobody who has some waits for more.
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
		views[i] = nil // it need not wait for the others
		if v != nil {
			err = visit(v)
		}
	}
	return err
}
