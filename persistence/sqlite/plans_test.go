package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// TestAPageIsReadFromAnIndexInItsOrder checks the plan of a list: the index from which each task of
// the page is read, and that only the few rows of its parts are sorted.
func TestAPageIsReadFromAnIndexInItsOrder(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	paused, before := true, persistence.Spot{CreatedAt: 5, ID: "t5"}
	for name, tt := range map[string]struct {
		filter persistence.TaskFilter
		want   []string
	}{
		"all": {persistence.TaskFilter{}, []string{"SCAN t USING INDEX tasks_created"}},
		"after a page": {persistence.TaskFilter{Before: before},
			[]string{"SEARCH t USING INDEX tasks_created"}},
		"a flow": {persistence.TaskFilter{FlowID: "f", Before: before},
			[]string{"SEARCH t USING INDEX tasks_of_flow"}},
		"failed": {persistence.TaskFilter{Statuses: []string{"failed"}},
			[]string{"t USING INDEX tasks_failed"}},
		"failed, after": {persistence.TaskFilter{Statuses: []string{"failed"},
			Before: before}, []string{"SEARCH t USING INDEX tasks_failed"}},
		"failed, by end": {persistence.TaskFilter{Statuses: []string{"failed"}, ByEnd: true,
			EndedFrom: 5}, []string{"SEARCH t USING INDEX tasks_failures (ended_at>?)"}},
		"paused": {persistence.TaskFilter{Paused: &paused}, []string{"SCAN t USING INDEX tasks_paused"}},
		"running": {persistence.TaskFilter{Statuses: []string{"running"}},
			[]string{"t USING INDEX tasks_open"}},
		"some states": {persistence.TaskFilter{Statuses: []string{"running", "pending",
			"failed", "canceled"}, Before: before}, []string{"tasks_open", "tasks_failed", "tasks_canceled"}},
		"a label": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}},
			[]string{"SEARCH l USING PRIMARY KEY (key=? AND value=?)",
				"SEARCH t USING INDEX sqlite_autoindex_tasks_1 (id=?)"}},
		"a label, after": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
			Before: before}, []string{"SEARCH l USING PRIMARY KEY (key=? AND value=? AND " +
			"(created_at,task)<(?,?))"}},
		"labels and a state": {persistence.TaskFilter{Labels: map[string]string{"team": "blue",
			"env": "test"}, Statuses: []string{"failed"}, Before: before},
			[]string{"SEARCH l USING COVERING INDEX task_labels_status (key=? AND value=? AND " +
				"status=? AND (created_at,task)<(?,?))"}},
		"a label and states": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"},
			Statuses: []string{"failed", "running"}},
			[]string{"SEARCH l USING PRIMARY KEY (key=? AND value=?)"}},
		"waits": {persistence.TaskFilter{Waits: flow.WaitApproval, Oldest: true},
			[]string{"t USING INDEX tasks_waiting"}},
		"newest update first": {persistence.TaskFilter{ByUpdate: true},
			[]string{"t USING INDEX tasks_unfinished", "SCAN t USING INDEX tasks_settled"}},
		"failed of a flow": {persistence.TaskFilter{FlowID: "f", Statuses: []string{"failed"},
			Before: before}, []string{"SEARCH t USING INDEX tasks_failed ((created_at,id)<(?,?))"}},
		"open of a flow": {persistence.TaskFilter{FlowID: "f", Statuses: []string{"running"}},
			[]string{"t USING INDEX tasks_open"}},
		"waiting of a flow": {persistence.TaskFilter{FlowID: "f", Waits: flow.WaitApproval},
			[]string{"t USING INDEX tasks_waiting"}},
		"by end": {persistence.TaskFilter{ByEnd: true, Before: before},
			[]string{"SEARCH t USING INDEX tasks_ended"}},
		"in a long queue": {persistence.TaskFilter{Queued: "s"},
			[]string{"t USING INDEX tasks_open", "SEARCH q "}},
	} {
		t.Run(name, func(t *testing.T) {
			// SQLite plans a list for its first limit
			for _, page := range []struct{ limit, offset int }{{50, 0}, {1, 0}, {2, 0}, {1, 2_999}} {
				tt.filter.Limit, tt.filter.Offset = page.limit, page.offset
				plan := explained(t, s, listing.List(dialect, tt.filter))
				for _, step := range tt.want {
					require.Contains(t, plan, step, page)
				}
				if len(tt.filter.Statuses) < 2 && !tt.filter.ByUpdate {
					require.NotContains(t, plan, "TEMP B-TREE", page)
				}
				require.NotContains(t, strings.ReplaceAll(plan, "SCAN t USING", ""), "SCAN t\n", page)
			}
		})
	}
}

// TestTasksEndedInAnIntervalAreReadByTheirEndTime: whichever their flow, tasks that ended in an
// interval are sorted within an index, and only those of the page are read.
func TestTasksEndedInAnIntervalAreReadByTheirEndTime(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	for _, f := range []persistence.TaskFilter{{EndedFrom: 5, Limit: 50}, {EndedFrom: 5, EndedTo: 9, FlowID: "f", Limit: 50}} {
		q := listing.List(dialect, f)
		require.Contains(t, explained(t, s, q), "SEARCH t USING COVERING INDEX tasks_ended (ended_at>?")
		seeks := opcodes(t, s, q)
		require.Contains(t, seeks, "SeekGE", "it begins at the time, and not at the first task that has ended")
		require.NotContains(t, seeks, "SeekGT")
	}
}

// opcodes returns the opcodes of a statement's program.
func opcodes(t *testing.T, s *store, q *listing.Query) (codes []string) {
	t.Helper()
	rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN "+q.String(), q.Args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var code string
		var unused any
		require.NoError(t, rows.Scan(&unused, &code, &unused, &unused, &unused, &unused, &unused, &unused))
		codes = append(codes, code)
	}
	require.NoError(t, rows.Err())
	return codes
}

// TestCountingReadsNoTaskWhenAnIndexSuffices checks counts of very many tasks.
func TestCountingReadsNoTaskWhenAnIndexSuffices(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	few := dialect
	few.ByJobs = true
	for name, tt := range map[string]struct {
		dialect listing.Dialect
		filter  persistence.TaskFilter
		want    []string
	}{
		"a flow": {dialect, persistence.TaskFilter{FlowID: "f"}, []string{"COVERING INDEX tasks_of_flow"}},
		"a time": {dialect, persistence.TaskFilter{CreatedFrom: 1, CreatedTo: 5},
			[]string{"COVERING INDEX tasks_created (created_at>? AND created_at<?)"}},
		"an end": {dialect, persistence.TaskFilter{EndedFrom: 1, FlowID: "f"},
			[]string{"COVERING INDEX tasks_ended (ended_at>?)"}},
		"failed of a flow": {dialect, persistence.TaskFilter{FlowID: "f",
			Statuses: []string{"failed"}}, []string{"COVERING INDEX tasks_fail"}},
		"ends of a flow": {dialect, persistence.TaskFilter{FlowID: "f",
			Statuses: []string{"failed", "canceled"}}, []string{"COVERING INDEX tasks_fail",
			"COVERING INDEX tasks_canceled"}},
		"a label": {dialect,
			persistence.TaskFilter{Labels: map[string]string{"team": "blue"}, CreatedFrom: 5},
			[]string{"SEARCH l USING PRIMARY KEY (key=? AND value=? AND created_at>?)"}},
		"in a queue of few": {few, persistence.TaskFilter{Queued: "s"},
			[]string{"SEARCH q USING COVERING INDEX task_queue_order (service=?)"}},
		"in a queue of many": {dialect, persistence.TaskFilter{Queued: "s"}, []string{"SEARCH q EXISTS USING PRIMARY KEY (task=?)"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.filter.Most = 100
			plan := explained(t, s, listing.Count(tt.dialect, tt.filter))
			for _, step := range tt.want {
				require.Contains(t, plan, step)
			}
		})
	}
}

func explained(t *testing.T, s *store, q *listing.Query) string {
	t.Helper()
	return planOf(t, s, q.String(), q.Args...)
}

func planOf(t *testing.T, s *store, query string, args ...any) string {
	t.Helper()
	rows, err := s.readers.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
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

// TestADecisionAboutAKeyReadsFewWaitingRows checks the statements about a key with very many
// waiting rows.
func TestADecisionAboutAKeyReadsFewWaitingRows(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	for _, tt := range []struct {
		query string
		args  []any
		want  string
	}{
		{countHeld, []any{"k"}, "SEARCH permits USING COVERING INDEX permits_order (key=? AND state=?)"},
		{"SELECT * FROM permits " + ofFair, []any{"k", "f", 5}, "SEARCH permits USING INDEX permits_order (key=? AND state=? AND fair=?)"},
		{nextFair, []any{"k", "f"}, "SEARCH permits USING COVERING INDEX permits_order (key=? AND state=? AND fair>?)"},
		{oneFair, []any{"k"}, "SEARCH permits USING COVERING INDEX permits_order (key=? AND state=?)"},
		{"SELECT * FROM permits " + hasty, []any{"k", 5}, "USING INDEX permits_hasty (key=?)"},
		{"SELECT task, holder FROM permits " + undeliveredVerdicts, []any{1, "k", false, 1, 5}, "USING INDEX permits_untold (key=?)"},
		{openKeys, []any{"", 5}, "SEARCH p USING INDEX permits_open (key>?)"},
	} {
		plan := planOf(t, s, tt.query, tt.args...)
		require.Contains(t, plan, tt.want)
		require.NotContains(t, plan, "SCAN permits")
	}
}

// TestADecisionReadsFewRowsOfEachFairGroup counts rows: 20,000 of one group, and three of another.
func TestADecisionReadsFewRowsOfEachFairGroup(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	require.NoError(t, s.inTransaction(t.Context(), "plant", func(tx writeTx) error {
		_, err := tx.execCount(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
			INSERT INTO permits (task, holder, key, shard, most, per_ms, when_full, urgency, fair, asked_at, turn)
			SELECT 't', i, 'k', 0, 1, 0, '', 0, CASE WHEN i < 4 THEN 'small' ELSE 'large' END, i, '' FROM n`)
		return err
	}))
	require.NoError(t, s.inTransaction(t.Context(), "look", func(tx writeTx) error {
		rows, err := tx.listWaiting("k", "")
		require.Len(t, rows, persistence.PermitsAtOnce)
		require.Equal(t, []string{"large", "small", "large", "small", "large", "small", "large", "large"},
			[]string{rows[0].Fair, rows[1].Fair, rows[2].Fair, rows[3].Fair, rows[4].Fair, rows[5].Fair, rows[6].Fair, rows[7].Fair})
		return err
	}))
}

func TestUnusedKeysAreForgottenInPortions(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	require.NoError(t, s.inTransaction(t.Context(), "plant", func(tx writeTx) error {
		_, err := tx.execCount("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "+
			"WHERE i < 30) INSERT INTO permit_keys (key, idle_at) SELECT 'k' || i, CASE WHEN i "+
			"> 25 THEN ? ELSE i END FROM n",
			time.Now().Add(time.Minute).UnixMilli())
		return err
	}))
	for _, want := range []int{10, 10, 5, 0} {
		n, err := s.ForgetKeys(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	left, err := readRows(t.Context(), &s.readers, "list keys", listing.ScanValue[string], "SELECT key FROM permit_keys ORDER BY key")
	require.NoError(t, err)
	require.Equal(t, []string{"k26", "k27", "k28", "k29", "k30"}, left)
}

// TestACountByStateReadsNoTask: each state has an index that contains everything needed.
func TestACountByStateReadsNoTask(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	ofFlow := []string{"COVERING INDEX tasks_open", "COVERING INDEX tasks_ended_of_flow (flow_id=? AND status=?)"}
	for name, tt := range map[string]struct {
		filter persistence.TaskFilter
		want   []string
	}{
		"all": {persistence.TaskFilter{}, []string{"COVERING INDEX tasks_open",
			"COVERING INDEX tasks_completed", "COVERING INDEX tasks_fail", "COVERING INDEX tasks_canceled"}},
		"a flow": {persistence.TaskFilter{FlowID: "f"}, ofFlow},
		"flows":  {persistence.TaskFilter{FlowIDs: []string{"f", "g"}}, ofFlow},
		"a time": {persistence.TaskFilter{CreatedFrom: 5},
			[]string{"COVERING INDEX tasks_open (created_at>?)",
				"COVERING INDEX tasks_completed (created_at>?)"}},
		"a label": {persistence.TaskFilter{Labels: map[string]string{"team": "blue"}},
			[]string{"SEARCH l USING COVERING INDEX task_labels_status (key=? AND value=? AND status=?)"}},
		"ended later": {persistence.TaskFilter{EndedFrom: 5}, []string{"COVERING INDEX tasks_ended (ended_at>?)"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.filter.Most = 100
			plan := explained(t, s, listing.CountBy(dialect, tt.filter, persistence.By{}))
			for _, step := range tt.want {
				require.Contains(t, plan, step)
			}
			for line := range strings.Lines(plan) {
				if strings.Contains(line, "SEARCH") || strings.Contains(line, "SCAN t") {
					require.Contains(t, line, "COVERING INDEX", plan)
				}
			}
		})
	}
}

// TestHoldsAreFoundByOneScanHoweverManyAreDeleted: one query finds all of them.
func TestHoldsAreFoundByOneScanHoweverManyAreDeleted(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), Options{})
	require.NoError(t, err)
	defer opened.Close()
	s := opened.(*store)
	const many = 500
	plant(t, s, "INSERT INTO holds (owner, object, task, at) SELECT 'o' || i, 'x', 't', i FROM n", many)
	owners, err := s.DropHolds(t.Context(), many, many)
	require.NoError(t, err)
	require.Len(t, owners, many-1)
	require.Contains(t, planOf(t, s, dropHolds, 1, 1), "LIST SUBQUERY", "not one for each")
}
