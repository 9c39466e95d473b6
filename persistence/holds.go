package persistence

import "context"

// Holds keeps which tasks refer to objects of others: values that are kept beside the store
// (package internal/payload), of a history or of params that tasks have in common.
type Holds interface {
	// Hold notes that a task which is about to begin refers to objects, and has that from another
	// task; what is noted already is so anew. ErrUnknown when that task is not there any more:
	// nothing is noted then.
	Hold(ctx context.Context, task, from string, at int64, objects []Object) error
	// Gone lists those of some tasks that are not there.
	Gone(ctx context.Context, tasks []string) ([]string, error)
	// Held lists the objects of a task that others hold, in order.
	Held(ctx context.Context, owner string) ([]string, error)
	// DropHolds forgets up to limit of those noted before a time whose task is not there, and tells
	// whose objects they were.
	DropHolds(ctx context.Context, before int64, limit int) (owners []string, err error)
}

// Object is one that the owner's values refer to.
type Object struct{ Owner, Name string }
