package layers

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/persistence"
)

// openFiles opens the member's object store, if one is configured.
func (o *Options) openFiles(ctx context.Context) (objects.Bucket, error) {
	switch {
	case o.FilesKeep < 0:
		return nil, errors.New("--object-store-retention must not be negative")
	case o.FileStore == "" && o.FilesKeep > 0:
		return nil, errors.New("--object-store-retention needs an object store: set --object-store")
	case o.FileStore == "":
		return nil, nil
	}
	return objects.Open(ctx, o.FileStore, o.Buckets)
}

// Files is a layer of the store that also deletes the files of deleted tasks from a bucket.
type Files struct {
	persistence.Store
	bucket objects.Bucket
	log    *slog.Logger
}

// deleteFiles deletes the files of a task. Files that the member has no permission to delete stay,
// such as those in a directory of another user. They do not block the deletion of other files.
func (s Files) deleteFiles(ctx context.Context, task string) error {
	err := objects.Forget(ctx, s.bucket, task)
	if errors.Is(err, fs.ErrPermission) {
		s.log.Warn("deleting the files of a task is not permitted; they are kept", "files", s.bucket.Address(objects.RunFolder(task)), "error", err)
		return nil
	}
	return err
}

// DeleteEnded deletes ended tasks and their files. It never deletes files of a task that was
// resumed meanwhile.
func (s Files) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	if err := s.finishDeletions(ctx); err != nil {
		return 0, err
	}
	ends, more, err := s.nextEnded(ctx, 0, before, limit)
	if err != nil || len(ends) == 0 {
		return 0, err
	}
	if more { // only the tasks that ended before the last millisecond are known completely
		before = ends[len(ends)-1].EndedAt
		ends = slices.DeleteFunc(ends, func(end persistence.TaskEnd) bool { return end.EndedAt == before })
	}
	ids := make([]string, len(ends))
	for i := range ends {
		ids[i] = ends[i].ID
	}
	n, err := s.deleteWithFiles(ctx, ids, func() (int, error) { return s.Store.DeleteEnded(ctx, before, len(ends)) })
	if err == nil && more {
		n = limit // shows the caller that there are more
	}
	return n, err
}

// DeleteFlow deletes tasks of a flow and their files. The tasks may run until they are deleted.
func (s Files) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	if err := s.finishDeletions(ctx); err != nil {
		return 0, err
	}
	tasks, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: id, Limit: limit})
	if err != nil {
		return 0, err
	}
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	return s.deleteWithFiles(ctx, ids, func() (int, error) { return s.Store.DeleteFlow(ctx, id, limit) })
}

// deleteWithFiles deletes tasks, then the files of tasks that no longer exist. It writes a note
// first, so that an interrupted deletion can be finished later.
func (s Files) deleteWithFiles(ctx context.Context, ids []string, do func() (int, error)) (int, error) {
	if len(ids) == 0 {
		return do()
	}
	note, err := objects.NoteGoing(ctx, s.bucket, ids)
	if err != nil {
		return 0, err
	}
	n, err := do()
	if err != nil {
		return n, err
	}
	return n, s.forgetGone(ctx, note, ids)
}

// forgetGone deletes the files of those tasks that no longer exist, and then the note.
func (s Files) forgetGone(ctx context.Context, note string, ids []string) error {
	for _, id := range ids {
		gone, err := s.Gone(ctx, []string{id}) // checked late: a task with the same key may start
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		if err := s.deleteFiles(ctx, id); err != nil {
			return err
		}
	}
	return s.bucket.Remove(ctx, note)
}

// finishDeletions finishes interrupted deletions of files.
func (s Files) finishDeletions(ctx context.Context) error {
	notes, err := objects.NotesOfGoing(ctx, s.bucket, time.Now().Add(-cutShort))
	if err != nil {
		return err
	}
	for note, ids := range notes {
		if err := s.forgetGone(ctx, note, ids); err != nil {
			return err
		}
	}
	return nil
}

// cutShort is the age after which a note counts as left over from an interrupted deletion.
var cutShort = time.Hour

// sweptAtOnce is the number of tasks whose files are deleted in one sweep. writtenLate is the
// maximum delay between the end of a task and its record in the store.
const (
	sweptAtOnce = 500
	writtenLate = time.Minute
)

// Sweep deletes the files of tasks that ended before a time. The tasks themselves stay. more means
// that another sweep is needed.
func (s Files) Sweep(ctx context.Context, before int64) (more bool, err error) {
	from, err := objects.Swept(ctx, s.bucket)
	if err != nil {
		return false, err
	}
	ends, more, err := s.nextEnded(ctx, from, before, sweptAtOnce)
	if err != nil || len(ends) == 0 {
		return false, err
	}
	for _, end := range ends {
		task, err := s.Task(ctx, end.ID)
		switch {
		case errors.Is(err, persistence.ErrNotFound):
			continue // already deleted, together with its files
		case err != nil:
			return false, err
		case task.EndedAt != end.EndedAt:
			continue // the task was resumed, or has ended again
		}
		if err := s.deleteFiles(ctx, end.ID); err != nil {
			return false, err
		}
	}
	to := before - writtenLate.Milliseconds()
	if more {
		to = ends[len(ends)-1].EndedAt
	}
	return more, objects.NoteSwept(ctx, s.bucket, to)
}

// nextEnded lists the first tasks that ended at or after a time. If more follow, the listed tasks
// did not all end in the same millisecond. So a caller that continues at the last one makes
// progress.
func (s Files) nextEnded(ctx context.Context, from, before int64, limit int) (ends []persistence.TaskEnd, more bool, err error) {
	for ; ; limit *= 2 {
		ends, err = s.EndedBetween(ctx, from, before, limit)
		if err != nil || len(ends) < limit {
			return ends, false, err
		}
		if ends[0].EndedAt != ends[limit-1].EndedAt {
			return ends, true, nil
		}
	}
}
