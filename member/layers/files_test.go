package layers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/internal/testing/storetest"
	"github.com/troupe-engine/troupe/persistence"
)

// endings is a store that holds only the ends of tasks, in order.
type endings struct {
	persistence.Store
	ends []persistence.TaskEnd
	read int // number of ends read
}

func (s *endings) EndedBetween(_ context.Context, from, before int64, limit int) (list []persistence.TaskEnd, err error) {
	for _, end := range s.ends {
		if end.EndedAt >= from && end.EndedAt < before && len(list) < limit {
			list = append(list, end)
		}
	}
	s.read += len(list)
	return list, nil
}

func (s *endings) Task(_ context.Context, id string) (*persistence.TaskRow, error) {
	for _, end := range s.ends {
		if end.ID == id {
			return &persistence.TaskRow{ID: id, Columns: persistence.Columns{EndedAt: end.EndedAt}}, nil
		}
	}
	return nil, persistence.ErrNotFound
}

// TestFilesOfVeryManyTasksAreDeleted also covers more ends in one millisecond than a batch holds.
func TestFilesOfVeryManyTasksAreDeleted(t *testing.T) {
	hour := time.Hour.Milliseconds()
	store := &endings{}
	for i := range 3000 {
		store.ends = append(store.ends, persistence.TaskEnd{ID: fmt.Sprintf("t%d", i), EndedAt: hour + int64(max(i-1600, 0))})
	}
	young := persistence.TaskEnd{ID: "young", EndedAt: 3 * hour}
	store.ends = append(store.ends, young)
	bucket, err := objects.OpenDir(t.TempDir())
	require.NoError(t, err)
	for _, i := range []int{0, 499, 500, 1599, 1600, 2000, 2999} {
		require.NoError(t, bucket.Put(t.Context(), objects.Folder(store.ends[i].ID, "u", 1, 1)+objects.SpecFile, nil))
	}
	kept := objects.Folder(young.ID, "u", 1, 1) + objects.SpecFile
	require.NoError(t, bucket.Put(t.Context(), kept, nil))
	files := Files{store, bucket, slog.New(slog.DiscardHandler)}
	for more := true; more; {
		more, err = files.Sweep(t.Context(), 3*hour)
		require.NoError(t, err)
	}
	left, err := bucket.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, kept, left[0].Key)
	store.read = 0
	_, err = Files{store, bucket, files.log}.Sweep(t.Context(), 3*hour)
	require.NoError(t, err)
	require.Zero(t, store.read, "who comes next goes on from there")
}

// between is a store that runs a function after tasks were listed and before any is deleted.
type between struct {
	persistence.Store
	then func() error
}

func (s between) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	if err := s.then(); err != nil {
		return 0, err
	}
	return s.Store.DeleteEnded(ctx, before, limit)
}

// ending returns a store with tasks a to d, which have files and have ended one after another from
// 1 on.
func ending(t *testing.T) (s persistence.Store, bucket objects.Bucket, ends func(id string, status string, at int64)) {
	s = model.New(model.Options{})
	storetest.Publish(t, s, "flow", "version")
	me, err := s.Join(t.Context(), persistence.Joining{Name: "me", TTL: time.Hour})
	require.NoError(t, err)
	bucket, err = objects.OpenDir(t.TempDir())
	require.NoError(t, err)
	commit := func(c persistence.Commit) {
		answers, err := s.Commit(t.Context(), me, []persistence.Commit{c})
		require.NoError(t, err)
		require.NoError(t, answers[0])
	}
	seq := int64(1)
	ends = func(id string, status string, at int64) {
		seq++
		commit(persistence.Commit{Task: id, Seq: seq, Events: []byte("[]"), Columns: &persistence.Columns{Status: status, EndedAt: at}})
	}
	for i, id := range []string{"a", "b", "c", "d"} {
		commit(persistence.Commit{Task: id, Create: &persistence.Create{FlowID: "flow",
			VersionID: "version"}, Seq: 1, Events: []byte("[]"),
			Columns: &persistence.Columns{Status: "failed", EndedAt: int64(i + 1)}})
		require.NoError(t, bucket.Put(t.Context(), objects.Folder(id, "u", 1, 1)+objects.SpecFile, nil))
	}
	return s, bucket, ends
}

// haveFiles returns the tasks that have files, and the tasks that exist.
func haveFiles(t *testing.T, s persistence.Store, bucket objects.Bucket) (files, tasks []string) {
	for _, id := range []string{"a", "b", "c", "d"} {
		list, err := bucket.List(t.Context(), objects.RunFolder(id))
		require.NoError(t, err)
		if len(list) > 0 {
			files = append(files, id)
		}
		if _, err := s.Task(t.Context(), id); err == nil {
			tasks = append(tasks, id)
		}
	}
	return files, tasks
}

func TestATaskResumedBeforeItsDeletionKeepsItsFiles(t *testing.T) {
	s, bucket, ends := ending(t)
	files := Files{between{s, func() error { ends("a", "running", 0); return nil }}, bucket, slog.New(slog.DiscardHandler)}
	_, err := files.DeleteEnded(t.Context(), 100, 3)
	require.NoError(t, err)
	left, tasks := haveFiles(t, s, bucket)
	require.Contains(t, left, "a")
	require.Contains(t, tasks, "a")
	require.Equal(t, tasks, left)
	files.Store = s
	n, err := files.DeleteEnded(t.Context(), 100, 3)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	left, tasks = haveFiles(t, s, bucket)
	require.Equal(t, []string{"a"}, left)
	require.Equal(t, []string{"a"}, tasks)
}

func TestAnInterruptedDeletionIsFinished(t *testing.T) {
	s, bucket, _ := ending(t)
	killed := errors.New("the member is killed")
	files := Files{deleted{s, killed}, bucket, slog.New(slog.DiscardHandler)}
	_, err := files.DeleteEnded(t.Context(), 100, 9)
	require.ErrorIs(t, err, killed)
	files.Store = s
	n, err := files.DeleteEnded(t.Context(), 100, 9)
	require.NoError(t, err)
	require.Zero(t, n, "somebody may be about to delete the files")
	defer func(was time.Duration) { cutShort = was }(cutShort)
	cutShort = -time.Hour
	_, err = files.DeleteEnded(t.Context(), 100, 9)
	require.NoError(t, err)
	left, err := bucket.List(t.Context(), "./")
	require.NoError(t, err)
	require.Empty(t, left, "nor a note of them")
}

// deleted is a store that fails after tasks were deleted, as if its member had ended.
type deleted struct {
	persistence.Store
	err error
}

func (s deleted) DeleteEnded(ctx context.Context, before int64, limit int) (int, error) {
	n, err := s.Store.DeleteEnded(ctx, before, limit)
	return n, errors.Join(err, s.err)
}

func (s between) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	if err := s.then(); err != nil {
		return 0, err
	}
	return s.Store.DeleteFlow(ctx, id, limit)
}

func TestFilesWrittenDuringTheDeletionOfAFlowAreDeleted(t *testing.T) {
	s, bucket, _ := ending(t)
	files := Files{between{s, func() error {
		return bucket.Put(t.Context(), objects.Folder("b", "u", 1, 2)+objects.SpecFile, nil)
	}}, bucket, slog.New(slog.DiscardHandler)}
	_, err := files.DeleteFlow(t.Context(), "flow", 9)
	require.NoError(t, err)
	left, tasks := haveFiles(t, s, bucket)
	require.Empty(t, tasks)
	require.Empty(t, left)
}

// after is a bucket that runs a function after files were deleted.
type after struct {
	objects.Bucket
	then func(prefix string)
}

func (b after) Delete(ctx context.Context, prefix string) error {
	err := b.Bucket.Delete(ctx, prefix)
	b.then(prefix)
	return err
}

func TestATaskResumedDuringASweepKeepsItsFiles(t *testing.T) {
	s, bucket, ends := ending(t)
	files := Files{s, after{bucket, func(prefix string) {
		if prefix == objects.RunFolder("a") {
			ends("b", "running", 0)
		}
	}}, slog.New(slog.DiscardHandler)}
	_, err := files.Sweep(t.Context(), 100)
	require.NoError(t, err)
	left, _ := haveFiles(t, s, bucket)
	require.Equal(t, []string{"b"}, left)
}
