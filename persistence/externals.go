package persistence

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/flow"
)

// Externals is the store's side of work outside: rows made and ended by the commits of the tasks
// that wait for it. How often it was looked at, and when it will be the next time, is kept beside
// the journals.
type Externals interface {
	// NextExternals lists what is to be looked at of tasks of shards, the earliest first.
	NextExternals(ctx context.Context, shards ShardSet, limit int) ([]ExternalRow, error)
	// NoteExternals notes what looking at some came to. Those that are not there any more stay so.
	// ErrFenced: whoever looked may not write any more, since others have what he knew.
	NoteExternals(ctx context.Context, incarnation string, notes []ExternalNote) error
	// ExternalsOf lists those of a task, in order of job and index.
	ExternalsOf(ctx context.Context, task string) ([]ExternalRow, error)
}

// ExternalRow is work outside that somebody waits for, or that is to be called off.
type ExternalRow struct {
	flow.External
	NextAt   int64 // when it is to be looked at
	Recalled bool  // nobody waits for it any longer: whoever carries it out there should stop
}

// Key names the row.
func (r *ExternalRow) Key() ExternalID { return ExternalID{r.Task, r.Job, r.Index} }

// ExternalID names work outside.
type ExternalID struct {
	Task, Job string
	Index     int
}

// ExternalNote is what looking at work outside came to.
type ExternalNote struct {
	ExternalID
	NextAt          int64
	Polls, Failures int
	FailingAt       int64
	Memo            []byte // JSON, or nil
	Pending         bool   // nobody knows yet that it is under way there
	Recalled        bool   // as it was when it was looked at: of one that was recalled meanwhile nothing changes
	Gone            bool   // it need not be looked at any more
}

// ExternalChanges are what a commit changes. What is tracked and untracked at once is not tracked.
type ExternalChanges struct {
	Track   []ExternalRow
	Untrack []ExternalID
	Recall  []ExternalID
}

// Tracked are the rows that are new: what nobody waits for any longer by the same commit is called
// off.
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
