package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// TestAPageIsReadFromAnIndexInItsOrder looks at how the database goes about a list: from which index each task of the
// page is read, and that none but the few rows of its parts are sorted.
func TestAPageIsReadFromAnIndexInItsOrder(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	before := persistence.Spot{CreatedAt: 5, ID: "t5"}
	for name, tt := range map[string]struct {
		filter persistence.TaskFilter
		want   []string
	}{
		"all":                 {persistence.TaskFilter{}, []string{"SCAN t USING INDEX tasks_created"}},
		"after a page":        {persistence.TaskFilter{Before: before}, []string{"SEARCH t USING INDEX tasks_created"}},
		"a flow":              {persistence.TaskFilter{FlowID: "f", Before: before}, []string{"SEARCH t USING INDEX tasks_of_flow"}},
		"failed":              {persistence.TaskFilter{Statuses: []string{"failed"}}, []string{"t USING INDEX tasks_failed"}},
		"failed, after":       {persistence.TaskFilter{Statuses: []string{"failed"}, Before: before}, []string{"SEARCH t USING INDEX tasks_failed"}},
		"running":             {persistence.TaskFilter{Statuses: []string{"running"}}, []string{"t USING INDEX tasks_open"}},
		"some states":         {persistence.TaskFilter{Statuses: []string{"running", "pending", "failed", "canceled"}, Before: before}, []string{"tasks_open", "tasks_failed", "tasks_canceled"}},
		"a label":             {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}}, []string{"SEARCH l USING PRIMARY KEY (key=? AND value=?)", "SEARCH t USING INDEX sqlite_autoindex_tasks_1 (id=?)"}},
		"a label, after":      {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}, Before: before}, []string{"SEARCH l USING PRIMARY KEY (key=? AND value=? AND (created_at,task)<(?,?))"}},
		"labels and a state":  {persistence.TaskFilter{Labels: map[string]string{"team": "blue", "env": "test"}, Statuses: []string{"failed"}}, []string{"SEARCH l USING PRIMARY KEY (key=? AND value=?)"}},
		"newest update first": {persistence.TaskFilter{ByUpdate: true}, []string{"SCAN t USING INDEX tasks_updated"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.filter.Limit = 50
			plan := explained(t, s, listing.List(dialect, tt.filter))
			for _, step := range tt.want {
				require.Contains(t, plan, step)
			}
			if len(tt.filter.Statuses) < 2 {
				require.NotContains(t, plan, "TEMP B-TREE")
			}
			require.NotContains(t, strings.ReplaceAll(plan, "SCAN t USING", ""), "SCAN t\n")
		})
	}
}

func explained(t *testing.T, s *store, q *listing.Query) string {
	t.Helper()
	rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q.String(), q.Args...)
	require.NoError(t, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(t, rows.Err())
	return plan.String()
}
