// Package engine defines the requests to a member and their answers. It is the one interface
// between the callers (the HTTP API, a program that embeds a member) and the actors of a member.
//
// Promises: requests and answers are values without pointers to shared state, functions or
// channels, so they mean the same on another member. Marshal and Unmarshal keep values of users
// byte for byte, and the kinds of errors. A rejected request has changed nothing; the effects of an
// answered one are stored.
//
// Watch, Appears and Await last as long as the caller listens: between members they become a
// Follow, answered by any number of Rows, and a Wait. Now and Ready describe the member that is
// called. Offers, Keys and Credits are one-way messages. News goes to all other members.
//
// Read engine.go first, then values.go, asking.go and orders.go; the rest is the wire format.
package engine

import (
	"context"
	"iter"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Engine is the interface of a member or a cluster. Its errors are flow.Error if the caller can act
// on them, ErrUnavailable while the store does not answer, and the context's error if the caller
// stopped waiting.
type Engine interface {
	// StartTask starts a task. It returns when the task is stored.
	StartTask(ctx context.Context, t NewTask) (Started, error)
	// Do carries out an order. It returns when the effects of the order are stored.
	Do(ctx context.Context, o Order) (Outcome, error)
	// DoAll carries out orders that may be repeated, and returns the outcome of each in its place,
	// even if its member is away or busy. Its own error means that the caller stopped waiting.
	DoAll(ctx context.Context, orders Orders) (Outcomes, error)
	// Exchange carries out orders like DoAll, and claims jobs for a poller at the same time. It
	// does not wait for jobs.
	Exchange(ctx context.Context, x Exchange) (Exchanged, error)
	// Poll claims jobs of the queue. It returns none if none came within the wait time.
	Poll(ctx context.Context, p Poll) (Jobs, error)
	// Watch returns the rows of a task's journal after a row, as it grows, and ends with the task.
	// If the member leaves first, or the store cannot be read, it ends with an error; call it again
	// with the last row received to continue.
	Watch(ctx context.Context, task string, after int64) iter.Seq2[Row, error]
	// Appears waits until a task exists, for callers that know its id before it starts.
	Appears(ctx context.Context, task string) error
	// Await waits until a task has ended.
	Await(ctx context.Context, task string) (flow.TaskStatus, error)
	// Now returns the store's time.
	Now() time.Time
	// Ready reports whether the member can work: it exists, and its writes are stored.
	Ready() error
}
