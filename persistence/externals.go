package persistence

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Externals stores external work, which runs outside Troupe. The commits of the waiting tasks
// create and end the rows. The number of polls and the time of the next poll are kept outside the
// journals.
type Externals interface {
	// NextExternals returns the externals of the given shards to poll, the earliest first.
	NextExternals(ctx context.Context, shards ShardSet, limit int) ([]ExternalRow, error)
	// NoteExternals stores the results of polls. Externals that no longer exist stay deleted. It
	// returns ErrFenced if the incarnation may not write, because another member has taken over its
	// externals.
	NoteExternals(ctx context.Context, incarnation string, notes []ExternalNote) error
	// ExternalsOf returns the externals of a task in order of job and index.
	ExternalsOf(ctx context.Context, task string) ([]ExternalRow, error)
}

// ExternalRow is external work that an attempt waits for, or that must be canceled.
type ExternalRow struct {
	flow.External
	NextAt   int64 // time of the next poll
	Recalled bool  // no attempt waits for the work, so the outside system should stop it
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
	Pending         bool   // the work is not known to have started
	// value of the row when it was polled; the note has no effect if the row was recalled since
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
