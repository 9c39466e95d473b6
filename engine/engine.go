// Package engine says what a member is asked, and what it answers: the one interface between those
// who ask (the HTTP API, a program that embeds a member) and those who see to it (the actors of a
// member).
//
// Promises: questions and answers are values without pointers into anybody's state, functions or
// channels, so they mean the same on another member; Marshal and Unmarshal take them there and
// back, values of users byte for byte, errors with their kind. What was refused has changed
// nothing; what was answered is stored.
//
// Watch, Appears and Await last as long as somebody listens: between members they are a Follow with
// as many Rows as there are, and a Wait. Now and Ready are about the member that is asked. Offers,
// Keys and Credits are told and not answered. News goes to all other members.
//
// Read engine.go first, then values.go, asking.go and orders.go; the rest is how they travel.
package engine

import (
	"context"
	"iter"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Engine is what a member is asked. Its errors are flow.Error where the caller can do something
// about them, ErrUnavailable while the store does not answer, and the context's own when the caller
// did not wait.
type Engine interface {
	// StartTask begins a task. It answers when the task is stored.
	StartTask(ctx context.Context, t NewTask) (Started, error)
	// Do carries out an order. It answers when what the order did is stored.
	Do(ctx context.Context, o Order) (Outcome, error)
	// DoAll carries out orders that may be repeated, and answers each of them in its place, also
	// those whose member is away or busy. Its own error is that the caller did not wait.
	DoAll(ctx context.Context, orders Orders) (Outcomes, error)
	// Exchange carries out orders as DoAll does, and claims jobs for a poller meanwhile. It waits
	// for none.
	Exchange(ctx context.Context, x Exchange) (Exchanged, error)
	// Poll claims queue jobs. It answers with none when none came within the time to wait.
	Poll(ctx context.Context, p Poll) (Jobs, error)
	// Watch reads a task's journal from a row on, as it grows; it ends with the task. When the
	// member goes before, or the store cannot be read, it ends by an error, and goes on when it is
	// asked for what is behind the last row.
	Watch(ctx context.Context, task string, after int64) iter.Seq2[Row, error]
	// Appears waits until there is a task, for those who know its id before it has been started.
	Appears(ctx context.Context, task string) error
	// Await answers when a task has ended.
	Await(ctx context.Context, task string) (flow.TaskStatus, error)
	// Now is the store's time.
	Now() time.Time
	// Ready reports whether the member can do its work: it is there, and what it writes is stored.
	Ready() error
}
