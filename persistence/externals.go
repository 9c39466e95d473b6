package persistence

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Externals stores pieces of work that run outside Troupe. The commits of the tasks that wait for
// them create and end the rows. The number of polls and the time of the next one are kept outside
// the journals.
type Externals interface {
	// NextExternals returns the externals of the given shards to poll, the earliest first.
	NextExternals(ctx context.Context, shards ShardSet, limit int) ([]ExternalRow, error)
	// NoteExternals stores the results of polls. Externals that no longer exist stay deleted.
	// ErrFenced means that the incarnation may not write any more, because another member has taken
	// over its externals.
	NoteExternals(ctx context.Context, incarnation string, notes []ExternalNote) error
	// ExternalsOf returns the externals of a task in order of job and index.
	ExternalsOf(ctx context.Context, task string) ([]ExternalRow, error)
}

// ExternalRow is a piece of work outside that an attempt waits for, or that is to be canceled.
type ExternalRow struct {
	flow.External
	NextAt   int64 // time of the next poll
	Recalled bool  // no attempt waits for it any more, so the outside system should stop the work
}

// Key returns the key of the row.
func (r *ExternalRow) Key() ExternalID { return ExternalID{r.Task, r.Job, r.Index} }

// ExternalID identifies an external.
type ExternalID struct {
	Task, Job string
	Index     int
}

// ExternalNote is the result of a poll of an external.
type ExternalNote struct {
	ExternalID
	NextAt          int64
	Polls, Failures int
	FailingAt       int64
	Memo            []byte // JSON, or nil
	Pending         bool   // whether the work runs there is not known yet
	// the row's value when it was polled; the note changes nothing if the row was recalled since
	Recalled bool
	Gone     bool // no more polls are needed
}

// ExternalChanges are the changes of a commit to externals. An external that one commit both tracks
// and untracks is not tracked.
type ExternalChanges struct {
	Track   []ExternalRow
	Untrack []ExternalID
	Recall  []ExternalID
}

// Tracked returns the rows to insert for a task. A row that the same commit recalls is inserted as
// recalled and due at once.
func (c *ExternalChanges) Tracked(task string) []ExternalRow {
	rows := make([]ExternalRow, 0, len(c.Track))
	for _, r := range c.Track {
		r.Task = task
		if slices.Contains(c.Untrack, r.Key()) {
			continue
		}
		if slices.Contains(c.Recall, r.Key()) {
			r.Recalled, r.NextAt = true, 0
		}
		rows = append(rows, r)
	}
	return rows
}
