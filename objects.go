package troupe

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"time"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/actors/external"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/persistence"
)

// Bucket keeps the files by which workers report that know nothing else of a member.
type Bucket = objects.Bucket

// BucketObject is one of the objects of a Bucket.
type BucketObject = objects.Object

// OpenBucket opens the bucket that a URL names.
type OpenBucket = objects.Opener

// openObjects opens the object store of a member, if it has one.
func (c *Config) openObjects(ctx context.Context) (objects.Bucket, error) {
	switch {
	case c.ObjectStoreKeep < 0:
		return nil, errors.New("the files of ended tasks cannot be kept for less than no time (--object-store-keep)")
	case c.ObjectStore == "" && c.ObjectStoreKeep > 0:
		return nil, errors.New("there is no object store whose files could be kept so long (--object-store-keep): give it with --object-store")
	case c.ObjectStore == "":
		return nil, nil
	}
	return objects.Open(ctx, c.ObjectStore, c.Buckets)
}

// withFiles is a store that deletes the files of tasks in a bucket with them.
type withFiles struct {
	persistence.Store
	bucket objects.Bucket
	log    *slog.Logger
}

// forget deletes the files of a task. Those that may not be deleted, such as files of another user in a folder that a worker has made, stay: they
// keep nobody from deleting all others.
func (s withFiles) forget(ctx context.Context, task string) error {
	err := objects.Forget(ctx, s.bucket, task)
	if errors.Is(err, fs.ErrPermission) {
		s.log.Warn("files of a task may not be deleted, and stay", "files", s.bucket.Address(objects.RunFolder(task)), "error", err)
		return nil
	}
	return err
}

// DeleteEnded deletes the files first: should it be cut short then, the tasks are still there, and deleted the next time.
func (s withFiles) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	ends, err := s.EndedBetween(ctx, 0, before, limit)
	if err != nil || len(ends) == 0 {
		return 0, err
	}
	for _, end := range ends {
		if err := s.forget(ctx, end.ID); err != nil {
			return 0, err
		}
	}
	return s.Store.DeleteEnded(ctx, ends[len(ends)-1].EndedAt+1, len(ends))
}

// DeleteFlow does the same with the tasks of a flow.
func (s withFiles) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	tasks, err := s.ListTasks(ctx, persistence.TaskFilter{FlowID: id, Limit: limit})
	if err != nil {
		return 0, err
	}
	for i := range tasks {
		if err := s.forget(ctx, tasks[i].ID); err != nil {
			return 0, err
		}
	}
	return s.Store.DeleteFlow(ctx, id, limit)
}

// How many tasks have their files deleted at once, and how late the end of a task may be written.
const (
	sweptAtOnce = 500
	writtenLate = time.Minute
)

// sweep deletes the files of tasks that ended before a time, which stay themselves.
func (s withFiles) sweep(ctx context.Context, before int64) (more bool, err error) {
	from, err := objects.Swept(ctx, s.bucket)
	if err != nil {
		return false, err
	}
	ends, more, err := s.nextEnded(ctx, from, before)
	if err != nil || len(ends) == 0 {
		return false, err
	}
	for _, end := range ends {
		if err := s.forget(ctx, end.ID); err != nil {
			return false, err
		}
	}
	to := before - writtenLate.Milliseconds()
	if more {
		to = ends[len(ends)-1].EndedAt
	}
	return more, objects.NoteSwept(ctx, s.bucket, to)
}

// nextEnded lists the first tasks that ended from a time on. When there are more, these have not all ended in one millisecond: who begins with the last
// of them gets further.
func (s withFiles) nextEnded(ctx context.Context, from, before int64) (ends []persistence.TaskEnd, more bool, err error) {
	for limit := sweptAtOnce; ; limit *= 2 {
		ends, err = s.EndedBetween(ctx, from, before, limit)
		if err != nil || len(ends) < limit {
			return ends, false, err
		}
		if ends[0].EndedAt != ends[limit-1].EndedAt {
			return ends, true, nil
		}
	}
}

// chores are what becomes of what nobody published, and of files.
func (e *Engine) chores() []actors.Chore {
	all := []actors.Chore{{Name: "tried definitions", Age: triedFor, Do: e.forgetTried}}
	if e.files != nil && e.cfg.ObjectStoreKeep != 0 {
		all = append(all, actors.Chore{Name: "files of ended tasks", Age: e.cfg.ObjectStoreKeep, Do: e.files.sweep})
	}
	if e.values != nil {
		all = append(all, actors.Chore{Name: "values that nothing refers to", Age: sweptAfter, Do: e.values.sweep})
	}
	return all
}

// starters are the program's, and those that come with every member.
func (e *Engine) starters() external.Starters {
	all := external.Starters{flow.ObjectStore: e.objects}
	maps.Copy(all, e.cfg.Starters)
	return e.services.Starters(all)
}

// newObjects looks after the files of attempts, in a bucket or in none.
func (e *Engine) newObjects(bucket objects.Bucket) *external.Objects {
	return external.NewObjects(external.ObjectsOptions{Bucket: bucket, Now: e.now, MaxOutput: e.cfg.Limits.OrDefault().Value})
}
