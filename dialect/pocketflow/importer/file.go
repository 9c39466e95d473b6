package importer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/dialect/pocketflow"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/sqlite"
)

// File is the database of a scheduler.
type File struct {
	db      *sql.DB
	columns map[string][]string // by table
	tasks   map[string][]int64  // row ids, by version
	runs    map[string][]int64  // row ids, by task
}

// needed contains the columns that a scheduler's database has in all releases.
var needed = map[string][]string{
	"flows":         {"id", "name"},
	"flow_versions": {"id", "flow_id", "version", "definition_json"},
	"tasks":         {"id", "flow_version_id", "status", "params_json", "shared_json", "current_node_key"},
	"node_runs":     {"task_id", "node_key", "status"},
}

// Open opens the file at path without changing it.
func Open(ctx context.Context, path string) (*File, error) {
	db, err := sqlite.OpenForeign(path)
	if err != nil {
		return nil, err
	}
	f := &File{db: db, columns: map[string][]string{}}
	if err := f.checkColumns(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is no database of a PocketFlow scheduler, or cannot be read: %w", path, err), db.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }

func (f *File) checkColumns(ctx context.Context) (err error) {
	for table, columns := range needed {
		if f.columns[table], err = queryAll(ctx, f.db, scanOne[string], "SELECT name FROM pragma_table_info(?)", table); err != nil {
			return err
		}
		for _, column := range columns {
			if !slices.Contains(f.columns[table], column) {
				return fmt.Errorf("it has no column %s.%s", table, column)
			}
		}
	}
	if f.tasks, err = f.indexRows(ctx, "tasks", "flow_version_id"); err != nil {
		return err
	}
	f.runs, err = f.indexRows(ctx, "node_runs", "task_id")
	return err
}

// indexRows returns row ids of a table by a column for which the scheduler has no index.
func (f *File) indexRows(ctx context.Context, table, column string) (map[string][]int64, error) {
	type entry struct {
		row int64
		of  string
	}
	rows, err := queryAll(ctx, f.db, func(r *sql.Rows, e *entry) error { return r.Scan(&e.row, &e.of) },
		"SELECT rowid, coalesce("+column+", '') FROM "+table+" ORDER BY rowid")
	found := map[string][]int64{}
	for _, e := range rows {
		found[e.of] = append(found[e.of], e.row)
	}
	return found, err
}

// selectQuery returns a query for columns of a table. Columns that this release of the scheduler
// lacks are empty.
func (f *File) selectQuery(table, where string, columns ...string) string {
	list := make([]string, len(columns))
	for i, column := range columns {
		name, number, _ := strings.Cut(column, ":")
		empty := cmp.Or(number, "''")
		if list[i] = empty; slices.Contains(f.columns[table], name) {
			list[i] = "coalesce(" + name + ", " + empty + ")"
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + table + where
}

// readFlows returns the flows in order of creation.
func (f *File) readFlows(ctx context.Context) ([]persistence.Flow, error) {
	return queryAll(ctx, f.db, func(r *sql.Rows, v *persistence.Flow) error {
		err := r.Scan(&v.ID, &v.Name, &v.Description, &v.CreatedAt)
		v.CreatedAt *= 1000
		return err
	}, f.selectQuery("flows", " ORDER BY rowid", "id", "name", "description", "created_at:0"))
}

// readVersions returns the versions in order of creation, without their definitions.
func (f *File) readVersions(ctx context.Context) ([]persistence.Version, error) {
	return queryAll(ctx, f.db, func(r *sql.Rows, v *persistence.Version) error {
		err := r.Scan(&v.ID, &v.FlowID, &v.Number, &v.Status, &v.CreatedAt)
		v.CreatedAt *= 1000
		return err
	}, f.selectQuery("flow_versions", " ORDER BY rowid", "id", "flow_id", "version:0", "status", "created_at:0"))
}

func (f *File) readDefinition(ctx context.Context, version string) ([]byte, error) {
	texts, err := queryAll(ctx, f.db, scanOne[string], f.selectQuery("flow_versions", " WHERE id = ?", "definition_json"), version)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	return []byte(texts[0]), nil
}

// taskAt reads the task with a row id.
func (f *File) taskAt(ctx context.Context, row int64) (pocketflow.Task, error) {
	list, err := queryAll(ctx, f.db, func(r *sql.Rows, t *pocketflow.Task) error {
		return r.Scan(&t.ID, &t.Status, &t.Params, &t.Shared, &t.Node, &t.Action, &t.CreatedAt, &t.UpdatedAt)
	}, f.selectQuery("tasks", " WHERE rowid = ?", "id", "status", "params_json", "shared_json",
		"current_node_key", "last_action", "created_at:0", "updated_at:0"), row)
	if err != nil || len(list) == 0 {
		return pocketflow.Task{}, cmp.Or(err, sql.ErrNoRows)
	}
	return list[0], nil
}

// runsAtOnce is the number of runs read by one query.
const runsAtOnce = 500

// runsOf returns the runs of a task in order of start. Runs of the same second are in the order in
// which they were stored. too is true if they exceed most bytes; in this case not all are read.
func (f *File) runsOf(ctx context.Context, task string, most int) (runs []pocketflow.Run, too bool, err error) {
	size := 0
	for rows := range slices.Chunk(f.runs[task], runsAtOnce) {
		marks, args := strings.TrimSuffix(strings.Repeat("?,", len(rows)), ","), make([]any, len(rows))
		for i, row := range rows {
			args[i] = row
		}
		more, err := queryAll(ctx, f.db, func(r *sql.Rows, v *pocketflow.Run) error {
			return r.Scan(&v.Node, &v.Attempt, &v.Status, &v.Sub, &v.Branch, &v.Input, &v.Output,
				&v.Error, &v.Action, &v.StartedAt, &v.FinishedAt, &v.Worker, &v.URL)
		}, f.selectQuery("node_runs", " WHERE rowid IN ("+marks+") ORDER BY rowid", "node_key",
			"attempt_no:0", "status", "sub_status", "branch_id", "exec_input_json",
			"exec_output_json", "error_text", "action", "started_at:0", "finished_at:0", "worker_id", "worker_url"), args...)
		if err != nil {
			return nil, false, err
		}
		for i := range more {
			size += len(more[i].Input) + len(more[i].Output) + len(more[i].Error)
		}
		if runs = append(runs, more...); size > most {
			return nil, true, nil
		}
	}
	slices.SortStableFunc(runs, func(a, b pocketflow.Run) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	return runs, false, nil
}

func scanOne[T any](r *sql.Rows, v *T) error { return r.Scan(v) }

// queryAll returns the rows of a query.
func queryAll[T any](ctx context.Context, db *sql.DB, scan func(*sql.Rows, *T) error, query string, args ...any) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}
