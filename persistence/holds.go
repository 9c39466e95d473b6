package persistence

import "context"

// Holds records which tasks refer to objects of other tasks. An object is a value outside the store
// (package internal/payload), such as a history or params that several tasks share.
type Holds interface {
	// Hold records that a task, which is about to start, refers to objects that it got from another
	// task. Recording an object twice only updates its time. It returns ErrUnknown and records
	// nothing if the other task no longer exists.
	Hold(ctx context.Context, task, from string, at int64, objects []Object) error
	// Gone returns those of the given tasks that do not exist.
	Gone(ctx context.Context, tasks []string) ([]string, error)
	// Held returns the names of a task's objects that other tasks hold, in order.
	Held(ctx context.Context, owner string) ([]string, error)
	// DropHolds deletes up to limit holds that were recorded before a time and belong to tasks that
	// do not exist. It returns the owners of their objects.
	DropHolds(ctx context.Context, before int64, limit int) (owners []string, err error)
}

// Object is a value outside the store, with the task that owns it.
type Object struct{ Owner, Name string }
