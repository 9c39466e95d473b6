package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/dialect/pocketflow/importer"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/schedulerdb"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const definition = `{"start":"a","nodes":{"a":{"kind":"executor","service":"x","post":{"output_key":"out"}},"p":{"kind":"approval","params":{"approval_key":"$shared.ok"}}},"edges":[{"from":"a","action":"default","to":"p"}]}`

// filesIn returns the contents of all files beside a database.
func filesIn(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(b)
	}
	return files
}

// scheduler returns a database with many tasks, and some that cannot be imported.
func scheduler(t *testing.T, tasks int) string {
	d := schedulerdb.New(t)
	d.Flow("order", definition)
	d.Version("ver-order-2", "flow-order", 2, definition)
	d.Version("ver-broken", "flow-order", 3, `{"start":"nowhere"}`)
	d.Version("ver-lost", "flow-that-was-deleted", 1, definition)
	for i := range tasks {
		id := fmt.Sprintf("task-%d", i)
		d.Task(schedulerdb.Task{ID: id, Version: "ver-order", Status: "running", Params: `{"v":1}`,
			Shared: `{"out":5,"_rt":{"ap:p":{}}}`, Node: "p", Created: 1_700_000_100, Updated: 1_700_000_105})
		d.Runs(id, schedulerdb.Run{Node: "a", Attempt: 1, Status: "ok", Output: 5, At: 1_700_000_104, Worker: "w", URL: "http://w"})
	}
	d.Task(schedulerdb.Task{ID: "task-broken", Version: "ver-broken", Status: "pending",
		Params: `{}`, Shared: `{}`, Node: "nowhere", Created: 1, Updated: 1})
	d.Task(schedulerdb.Task{ID: "task-lost", Version: "ver-nobody-knows", Status: "pending",
		Params: `{}`, Shared: `{}`, Node: "a", Created: 1, Updated: 1})
	d.Task(schedulerdb.Task{ID: "task.dotted", Version: "ver-order", Status: "pending",
		Params: `{}`, Shared: `{}`, Node: "a", Created: 1, Updated: 1})
	d.Runs("task.dotted", schedulerdb.Run{Node: "a", Attempt: 1, Status: "ok", At: 2})
	return d.Close()
}

func runImport(t *testing.T, path string, store persistence.Store, o importer.Options) (*importer.Report, []importer.Lack) {
	t.Helper()
	before := filesIn(t, path)
	f, err := importer.Open(t.Context(), path)
	require.NoError(t, err)
	var lacks []importer.Lack
	o.Lacks = func(l importer.Lack) { lacks = append(lacks, l) }
	report, err := importer.Import(t.Context(), f, store, o)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, before, filesIn(t, path), "byte for byte, and nothing beside it")
	return report, lacks
}

// stores runs a test with stores of both kinds.
func stores(t *testing.T, run func(t *testing.T, store persistence.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "troupe.db"), sqlite.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		run(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		s, err := postgres.Open(t.Context(), pgtest.DSN(t), postgres.Options{Schema: "band"})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		run(t, s)
	})
}

func TestASchedulersDataIsImportedOnce(t *testing.T) {
	const tasks = 250 // more than a batch
	path := scheduler(t, tasks)
	stores(t, func(t *testing.T, store persistence.Store) {
		ctx := t.Context()
		report, lacks := runImport(t, path, store, importer.Options{})
		require.Equal(t, importer.Report{Flows: importer.Count{Taken: 1}, Versions: importer.Count{Taken: 2, Missing: 2},
			Tasks: importer.Count{Taken: tasks, Missing: 3}, Runs: importer.Count{Taken: tasks,
				Missing: 1}, Unfinished: tasks}, *report)
		why := map[string]string{}
		for _, l := range lacks {
			why[l.What+" "+l.ID] = l.Why
		}
		require.Len(t, why, 5)
		require.Contains(t, why["version ver-broken"], "nowhere")
		require.Equal(t, `its flow "flow-that-was-deleted" is not there`, why["version ver-lost"])
		require.Equal(t, "its version ver-broken is not taken", why["task task-broken"])
		require.Equal(t, `its version "ver-nobody-knows" is not there`, why["task task-lost"])
		require.Contains(t, why["task task.dotted"], "it has a dot")

		row, err := store.Task(ctx, "task-7")
		require.NoError(t, err)
		require.Equal(t, []any{"flow-order", "ver-order", 1, "running", "p", `{"v":1}`, int64(1_700_000_100_000)},
			[]any{row.FlowID, row.VersionID, row.VersionNumber, row.Status, row.Cursor, string(row.Params), row.CreatedAt})
		reader := persistence.NewReader(store, flow.Limits{})
		view, err := reader.View(ctx, "task-7")
		require.NoError(t, err)
		require.JSONEq(t, `{"out":5}`, string(view.State.Root.SharedJSON()))
		page, err := reader.Runs(ctx, "task-7", flow.Place{}, 10, 1<<20)
		require.NoError(t, err)
		require.Len(t, page.Runs, 1)
		require.Equal(t, "w", page.Runs[0].Worker)
		due, err := store.DueWakes(ctx, nil, time.Now().UnixMilli()+1000, 1000)
		require.NoError(t, err)
		require.Len(t, due, tasks, "whoever serves the store finds all that have not ended")
		versions, err := store.ListVersions(ctx, "flow-order")
		require.NoError(t, err)
		require.Len(t, versions, 2)
		version, err := store.Version(ctx, "ver-order")
		require.NoError(t, err)
		require.Contains(t, string(version.Definition), `"profile":"pocketflow"`, "as the scheduler's clients expect")

		again, _ := runImport(t, path, store, importer.Options{})
		require.Equal(t, importer.Report{Flows: importer.Count{There: 1}, Versions: importer.Count{There: 2, Missing: 2},
			Tasks: importer.Count{There: tasks, Missing: 3}, Runs: importer.Count{There: tasks, Missing: 1}}, *again)
		n, err := store.CountTasks(ctx, persistence.TaskFilter{})
		require.NoError(t, err)
		require.Equal(t, tasks, n)
	})
}

func TestADryRunNeedsNoStore(t *testing.T) {
	report, lacks := runImport(t, scheduler(t, 3), nil, importer.Options{DryRun: true})
	require.Equal(t, importer.Count{Taken: 3, Missing: 3}, report.Tasks)
	require.Equal(t, importer.Count{Taken: 2, Missing: 2}, report.Versions)
	require.Len(t, lacks, 5)
}

func TestAStoreThatAMemberServesIsNotImportedInto(t *testing.T) {
	path := scheduler(t, 1)
	store, err := postgres.Open(t.Context(), pgtest.DSN(t), postgres.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	me, err := store.Join(t.Context(), persistence.Joining{Name: "bob", Cluster: "troupe", Format: flow.Format, TTL: time.Minute})
	require.NoError(t, err)
	f, err := importer.Open(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	_, err = importer.Import(t.Context(), f, store, importer.Options{})
	require.ErrorIs(t, err, persistence.ErrTaken)
	require.ErrorContains(t, err, "member bob serves it; stop all members")
	require.NoError(t, store.Leave(t.Context(), me))
	runImport(t, path, store, importer.Options{})
}

func TestAFileThatIsNoSchedulersIsRefused(t *testing.T) {
	d := schedulerdb.New(t)
	d.Exec("DROP TABLE node_runs")
	path := d.Close()
	before := filesIn(t, path)
	_, err := importer.Open(t.Context(), path)
	require.ErrorContains(t, err, path+" is no database of a PocketFlow scheduler")
	require.ErrorContains(t, err, "it has no column node_runs.")
	require.Equal(t, before, filesIn(t, path))

	_, err = importer.Open(t.Context(), filepath.Join(t.TempDir(), "missing.db"))
	require.ErrorContains(t, err, "is not there, or is no SQLite database")
}

// Releases before the newest one have fewer columns.
func TestAnOlderSchedulersFileIsRead(t *testing.T) {
	d := schedulerdb.New(t)
	for _, column := range []string{"sub_status", "branch_id", "log_path"} {
		d.Exec("ALTER TABLE node_runs DROP COLUMN " + column)
	}
	d.Exec("ALTER TABLE flows DROP COLUMN description")
	path := d.Close()
	report, _ := runImport(t, path, nil, importer.Options{DryRun: true})
	require.Zero(t, report.Tasks)
}

func TestTheFileOfARunningSchedulerIsRefused(t *testing.T) {
	d := schedulerdb.New(t)
	d.Exec("PRAGMA journal_mode=WAL")
	d.Flow("order", definition)
	before := filesIn(t, d.Path)
	_, err := importer.Open(t.Context(), d.Path)
	require.ErrorContains(t, err, "is in use, or was not closed: there are changes of it in")
	require.Equal(t, before, filesIn(t, d.Path))
	runImport(t, d.Close(), nil, importer.Options{DryRun: true})
}
