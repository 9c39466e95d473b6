package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"github.com/troupe-engine/troupe/persistence"
)

// throng are large numbers of rows. Rows of tasks are large, so that each page of their table holds
// few of them.
var throng = []struct {
	statement string
	many      int
}{
	{`INSERT INTO tasks (id, flow_id, version_id, status, cursor, last_action, error, paused, steps, followed, waits, created_at, updated_at, ended_at, resting, body_hash, snapshot_seq, params)
		SELECT 'e' || i, 'f' || (i % 100), 'v', iif(i % 4, 'completed', 'failed'), '', '', '', false, 0, 0, 0, i, i, i, false, '', 0, zeroblob(500) FROM n`, 10_000},
	{`INSERT INTO tasks (id, flow_id, version_id, status, cursor, last_action, error, paused, steps, followed, waits, created_at, updated_at, ended_at, resting, body_hash, snapshot_seq, params)
		SELECT 't' || i, 'f' || (i % 100), 'v', 'running', '', '', '', false, 0, 0, iif(i < 3, 2, 1), i, i, 0, i % 2, '', 0, zeroblob(500) FROM n`, 5_000},
	{`INSERT INTO task_labels (key, value, created_at, task, status)
		SELECT 'a', iif(i % 3, 'common', 'other'), i, 'e' || i, iif(i % 4, 'completed', 'failed') FROM n`, 10_000},
	{"INSERT INTO task_labels (key, value, created_at, task, status) SELECT 'b', i / 2, i, 'e' " +
		"|| i, iif(i % 4, 'completed', 'failed') FROM n", 10_000},
	{"INSERT INTO task_queue (task, job_id, service, enqueued_at, turn) SELECT 't' || i, i, 's' || (i % 200), i, i FROM n", 20_000},
	{"INSERT INTO flows (id, name, description, created_at) SELECT 'f' || i, 'f', hex(zeroblob(250)), i FROM n", 5_000},
	{"INSERT INTO flow_versions (id, flow_id, number, definition, status, hash, created_at) " +
		"SELECT i, 'f7', i, zeroblob(500000), 'published', '', i FROM n", 20},
	{"INSERT INTO schedules (id, name, flow_id, revision, due_at, body) SELECT i, 'n' || i, 'f' " +
		"|| (i % 1000), 1, 0, CAST('{}' AS BLOB) FROM n", 20_000},
}

// TestAQuestionReadsFewPages counts pages: a query may read its results and their index entries,
// but no rows that it then discards.
func TestAQuestionReadsFewPages(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{Readers: 1})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	for _, rows := range throng {
		plant(t, s, rows.statement, rows.many)
	}
	for name, tt := range map[string]struct {
		most int // pages
		ask  func() (int, error)
		want int // number of results
	}{
		"how many tasks are in each state": {300, func() (int, error) {
			counts, err := s.CountTasksBy(t.Context(), persistence.TaskFilter{}, persistence.By{})
			return counts["completed"].Count, err
		}, 7_500},
		"how many tasks of each shard have not ended": {100, func() (n int, err error) {
			counts, err := s.CountByShard(t.Context())
			for _, c := range counts {
				n += c.Active
			}
			return n, err
		}, 2_500},
		"tasks that wait for what few wait for": {300, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{Waits: 2, Limit: 50})
			return len(list), err
		}, 2},
		"how many wait for what many wait for": {100, func() (int, error) {
			return s.CountTasks(t.Context(), persistence.TaskFilter{Waits: 1, Most: 10_000})
		}, 4_998},
		"tasks of a flow that failed, by their end": {300, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{FlowID: "f8",
				Statuses: []string{"failed"}, ByEnd: true, Limit: 20})
			return len(list), err
		}, 20},
		"tasks with a label that few have, by their end": {100, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{Labels: map[string]string{"b": "100"}, ByEnd: true, Limit: 50})
			return len(list), err
		}, 2},
		"tasks with a label that many have, by their end": {2_000, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{Labels: map[string]string{"a": "common"}, ByEnd: true, Limit: 50})
			return len(list), err
		}, 50},
		"tasks with a label that many have and one that few have": {200, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{Labels: map[string]string{"a": "common", "b": "100"}, Limit: 50})
			return len(list), err
		}, 1},
		"tasks of a small flow with a label that many have": {1_500, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{FlowID: "f7",
				Labels: map[string]string{"a": "common"}, Limit: 100})
			return len(list), err
		}, 67},
		"how many tasks of a small flow have a label that many have": {1_500, func() (int, error) {
			return s.CountTasks(t.Context(), persistence.TaskFilter{FlowID: "f7", Labels: map[string]string{"a": "common"}, Most: 1_000})
		}, 67},
		"how many failed tasks of a small flow have a label that many have": {1_500, func() (int, error) {
			return s.CountTasks(t.Context(), persistence.TaskFilter{FlowID: "f8",
				Statuses: []string{"failed"}, Labels: map[string]string{"a": "common"}, Most: 1_000})
		}, 67},
		"versions of a flow with large definitions": {100, func() (int, error) {
			list, err := s.ListVersions(t.Context(), "f7")
			return len(list), err
		}, 20},
		"tasks whose ids begin as those of many": {400, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{IDPrefix: "e", Limit: 50})
			return len(list), err
		}, 50},
		"tasks whose ids begin as those of few": {100, func() (int, error) {
			list, err := s.ListTasks(t.Context(), persistence.TaskFilter{IDPrefix: "e999", Limit: 50})
			return len(list), err
		}, 11},
		"flows": {200, func() (int, error) {
			list, _, err := s.ListFlows(t.Context(), 0, 50)
			return len(list), err
		}, 50},
		"schedules of a flow": {200, func() (int, error) {
			list, err := s.ListSchedules(t.Context(), persistence.ScheduleFilter{FlowID: "f7", Limit: 50})
			return len(list), err
		}, 20},
		"jobs of all queues": {3_000, func() (int, error) {
			rows, err := s.QueueRows(t.Context(), nil, 0, "", 50)
			return len(rows), err
		}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			pages := pagesRead(t, s, func() {
				n, err := tt.ask()
				require.NoError(t, err)
				require.Equal(t, tt.want, n)
			})
			require.Less(t, pages, tt.most)
		})
	}
}

// pagesRead returns the number of pages that the only reader reads, including repeated reads,
// during do.
func pagesRead(t *testing.T, s *store, do func()) int {
	t.Helper()
	taken := func() (pages int) {
		conn, err := s.readers.db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.Raw(func(c any) error {
			for _, op := range []driver.DBStatusOp{driver.DBStatusCacheHit, driver.DBStatusCacheMiss} {
				n, _, err := c.(driver.DBStatus).Status(op, true)
				if err != nil {
					return err
				}
				pages += n
			}
			return nil
		}))
		return pages
	}
	taken()
	do()
	return taken()
}
