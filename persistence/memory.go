package persistence

import (
	"context"
	"fmt"
)

// Memory gives whoever reads for a caller room in memory, or refuses. It may wait.
type Memory func(ctx context.Context, bytes int64) error

type memoryKey struct{}

// WithMemory has a Reader ask before it reads a large task.
func WithMemory(ctx context.Context, m Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// What reading a task takes: its snapshot as the driver has it and as we do, and an answer that is made of it. Of less
// than largeState nobody is asked.
const (
	stateCost  = 6
	largeState = 1 << 20
)

// takeMemory asks for what reading a task will take.
func (r *Reader) takeMemory(ctx context.Context, task string) error {
	take, ok := ctx.Value(memoryKey{}).(Memory)
	if !ok {
		return nil
	}
	size, err := r.store.SnapshotSize(ctx, task)
	if err != nil {
		return fmt.Errorf("measuring task %s: %w", task, err)
	}
	if size < largeState {
		return nil
	}
	return take(ctx, size*stateCost)
}
