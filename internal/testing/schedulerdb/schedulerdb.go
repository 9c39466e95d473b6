// Package schedulerdb creates databases of a PocketFlow scheduler for tests: its tables, with rows
// in the form written by its engine.
package schedulerdb

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver
)

// tables are the tables of the scheduler's newest release.
const tables = `
	CREATE TABLE flows (id TEXT PRIMARY KEY, name TEXT, description TEXT, created_at INTEGER);
	CREATE TABLE flow_versions (id TEXT PRIMARY KEY, flow_id TEXT, version INTEGER, definition_json TEXT, status TEXT, created_at INTEGER);
	CREATE TABLE nodes (id TEXT PRIMARY KEY, flow_version_id TEXT, node_key TEXT, service TEXT, kind TEXT, config_json TEXT);
	CREATE TABLE edges (id TEXT PRIMARY KEY, flow_version_id TEXT, from_node_key TEXT, action TEXT, to_node_key TEXT);
	CREATE TABLE tasks (id TEXT PRIMARY KEY, flow_version_id TEXT, status TEXT, params_json TEXT, shared_json TEXT, current_node_key TEXT, last_action TEXT,
		step_count INTEGER, retry_state_json TEXT, lease_owner TEXT, lease_expiry INTEGER, request_id TEXT, created_at INTEGER, updated_at INTEGER);
	CREATE TABLE node_runs (id TEXT PRIMARY KEY, task_id TEXT, node_key TEXT, attempt_no INTEGER, status TEXT, sub_status TEXT, branch_id TEXT, prep_json TEXT,
		exec_input_json TEXT, exec_output_json TEXT, error_text TEXT, action TEXT, started_at INTEGER, finished_at INTEGER, worker_id TEXT, worker_url TEXT, log_path TEXT);
	CREATE TABLE workers (id TEXT PRIMARY KEY, url TEXT, services_json TEXT, load INTEGER, last_heartbeat INTEGER, status TEXT, type TEXT);
	CREATE TABLE task_queue (id TEXT PRIMARY KEY, task_id TEXT, node_key TEXT, service TEXT, input_json TEXT, status TEXT, worker_id TEXT, created_at INTEGER,
		started_at INTEGER, timeout_at INTEGER);`

// DB is a database under construction.
type DB struct {
	Path string
	t    testing.TB
	db   *sql.DB
	rows int
}

// New creates a database in a folder of its own.
func New(t testing.TB) *DB {
	t.Helper()
	d := &DB{Path: filepath.Join(t.TempDir(), "scheduler.db"), t: t}
	var err error
	d.db, err = sql.Open("sqlite", d.Path)
	require.NoError(t, err)
	d.db.SetMaxOpenConns(1)
	d.mustExec(tables)
	return d
}

func (d *DB) mustExec(statement string, args ...any) {
	d.t.Helper()
	_, err := d.db.Exec(statement, args...)
	require.NoError(d.t, err)
}

// Exec executes a statement, for data that no scheduler writes.
func (d *DB) Exec(statement string, args ...any) { d.t.Helper(); d.mustExec(statement, args...) }

// Close closes the database and returns its path.
func (d *DB) Close() string {
	d.t.Helper()
	require.NoError(d.t, d.db.Close())
	return d.Path
}

// Flow adds a flow with version 1. The version has the id ver-NAME, the flow flow-NAME.
func (d *DB) Flow(name, definition string) {
	d.t.Helper()
	d.mustExec("INSERT INTO flows VALUES (?, ?, ?, ?)", "flow-"+name, name, "the flow "+name, 1_700_000_000)
	d.Version("ver-"+name, "flow-"+name, 1, definition)
}

// Version adds a version to a flow.
func (d *DB) Version(id, flow string, number int, definition string) {
	d.t.Helper()
	d.mustExec("INSERT INTO flow_versions VALUES (?, ?, ?, ?, 'published', ?)", id, flow, number, definition, 1_700_000_001)
}

// Task is a row of tasks.
type Task struct {
	ID, Version, Status, Params, Shared, Node, Action string
	Created, Updated                                  int64
}

// Task adds a task.
func (d *DB) Task(k Task) {
	d.t.Helper()
	d.mustExec(`INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, 7, '{}', 'scheduler-a', ?, '', ?, ?)`,
		k.ID, k.Version, k.Status, k.Params, k.Shared, k.Node, k.Action, k.Updated+3, k.Created, k.Updated)
}

// Run is a row of node_runs. As in the original, its end time equals its start time unless it is
// queued.
type Run struct {
	Node                       string
	Attempt                    int
	Status, Sub, Branch        string
	Input, Output              any
	Error, Action, Worker, URL string
	At                         int64
}

// Runs adds the runs of a task.
func (d *DB) Runs(task string, runs ...Run) {
	d.t.Helper()
	for _, r := range runs {
		d.rows++
		ended := r.At
		if r.Status == "queued" || r.Status == "running" {
			ended = 0
		}
		d.mustExec(
			"INSERT INTO node_runs VALUES (?, ?, ?, ?, ?, ?, ?, '{}', ?, ?, ?, ?, ?, ?, ?, ?, '')",
			fmt.Sprintf("run-%d", d.rows), task, r.Node, r.Attempt, r.Status,
			r.Sub, r.Branch, toJSON(d.t, r.Input), toJSON(d.t, r.Output), r.Error, r.Action, r.At, ended, r.Worker, r.URL)
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}
