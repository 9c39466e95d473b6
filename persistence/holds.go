package persistence

import "context"

// Holds records which tasks refer to objects of other tasks. Objects are values kept beside the
// store (package internal/payload) that belong to a history or to params shared by several tasks.
type Holds interface {
	// Hold records that a task about to start refers to objects and received them from the task
	// from. Recording an object twice only updates its time. It returns ErrUnknown and records
	// nothing if from no longer exists.
	Hold(ctx context.Context, task, from string, at int64, objects []Object) error
	// Gone returns those of the given tasks that do not exist.
	Gone(ctx context.Context, tasks []string) ([]string, error)
	// Held returns the objects of a task that other tasks hold, in order.
	Held(ctx context.Context, owner string) ([]string, error)
	// DropHolds deletes up to limit holds that were recorded before a time and belong to tasks that
	// do not exist. It returns the owners of their objects.
	DropHolds(ctx context.Context, before int64, limit int) (owners []string, err error)
}

// Object is a value kept beside the store, with the task that owns it.
type Object struct{ Owner, Name string }
