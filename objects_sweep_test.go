package troupe

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/objects"
	"github.com/troupe-engine/troupe/persistence"
)

// endings is a store of nothing but ends of tasks, in order.
type endings struct {
	persistence.Store
	ends []persistence.TaskEnd
	read int // how many were read
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

// TestFilesOfVeryManyTasksAreDeleted also has more of them end in one millisecond than are looked at together.
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
	files := withFiles{store, bucket, slog.New(slog.DiscardHandler)}
	for more := true; more; {
		more, err = files.sweep(t.Context(), 3*hour)
		require.NoError(t, err)
	}
	left, err := bucket.List(t.Context(), "runs/")
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, kept, left[0].Key)
	store.read = 0
	_, err = withFiles{store, bucket, files.log}.sweep(t.Context(), 3*hour)
	require.NoError(t, err)
	require.Zero(t, store.read, "who comes next goes on from there")
}
