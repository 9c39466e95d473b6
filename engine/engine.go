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

// Engine is the interface of a member or a cluster. An error is a flow.Error if the caller can act
// on it, and ErrUnavailable while the store does not answer. If the caller stopped waiting, it is
// the context's error.
type Engine interface {
	// StartTask starts a task. It returns when the task is stored.
	StartTask(ctx context.Context, t NewTask) (Started, error)
	// Do carries out an order. It returns when the effects of the order are stored.
	Do(ctx context.Context, o Order) (Outcome, error)
	// DoAll carries out orders that may be repeated. The outcomes have the order of the orders,
	// also if a member is absent or busy. An error of DoAll itself means that the caller stopped
	// waiting.
	DoAll(ctx context.Context, orders Orders) (Outcomes, error)
	// Exchange carries out orders like DoAll, and claims jobs for a poller at the same time. It
	// does not wait for jobs to arrive.
	Exchange(ctx context.Context, x Exchange) (Exchanged, error)
	// Poll claims jobs of the queue. It returns no jobs if none arrived within the wait time.
	Poll(ctx context.Context, p Poll) (Jobs, error)
	// Watch returns the rows of a task's journal that follow the given row, as they are stored. The
	// sequence ends with the task. It ends with an error if the member leaves first, or if the
	// store cannot be read. To continue, call Watch again with the last row received.
	Watch(ctx context.Context, task string, after int64) iter.Seq2[Row, error]
	// Appears waits until a task exists, for callers that know the id of the task before its start.
	Appears(ctx context.Context, task string) error
	// Await waits until a task has ended.
	Await(ctx context.Context, task string) (flow.TaskStatus, error)
	// Now returns the store's time.
	Now() time.Time
	// Ready returns an error if the member cannot work, because it has not started or cannot store
	// writes.
	Ready() error
}
