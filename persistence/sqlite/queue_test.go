package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJobsOfOneTimeAreAllListed: queues are read in pieces, and a piece may end between jobs of the
// same time.
func TestJobsOfOneTimeAreAllListed(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	plant(t, s, "INSERT INTO task_queue (task, job_id, service, enqueued_at, turn) SELECT 't' "+
		"|| i, i, 's' || (i % 7), 1 + i / 100, '' FROM n", 299)
	for _, tt := range []struct {
		services    []string
		after       int64
		limit, want int
	}{{nil, 0, 1000, 299}, {nil, 0, 250, 250}, {nil, 1, 1000, 200}, {[]string{"s1", "s2", "s1"}, 0, 1000, 86}} {
		rows, err := s.QueueRows(t.Context(), tt.services, tt.after, "", tt.limit)
		require.NoError(t, err)
		require.Len(t, rows, tt.want)
		seen := map[string]bool{}
		for i, row := range rows {
			seen[row.JobID] = true
			require.LessOrEqual(t, rows[max(i-1, 0)].EnqueuedAt, row.EnqueuedAt)
		}
		require.Len(t, seen, tt.want)
	}
}
