package pocketflowhttp

import (
	"context"
	"slices"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// waitingQueue is this dialect's status of a running task that cannot continue until a poller has
// finished a job.
const waitingQueue = "waiting_queue"

// statusText returns a task's status in this dialect.
func statusText(s *flow.State) string {
	if waitsForQueue(s) {
		return waitingQueue
	}
	return string(s.Status)
}

// waitsForQueue reports whether only queue jobs are in flight in a task, at any depth.
func waitsForQueue(s *flow.State) bool {
	if s.Status != flow.TaskRunning || s.Paused() {
		return false
	}
	st := s.Root.Step
	for st != nil && st.Child != nil {
		st = st.Child.Step
	}
	if st == nil || st.Flying == 0 || len(st.Retrying) > 0 {
		return false
	}
	for i := range st.Units {
		if live := st.Units[i].Live; live != nil && live.Carrier != "" {
			return false // a member carries it out
		}
	}
	return true
}

// pageOfTasks lists tasks, newest change first. `running` and `waiting_queue` are one status in the
// store; the queue shows which tasks wait for a poller.
func (g *graph) pageOfTasks(ctx context.Context, status, version string, offset, limit int) ([]persistence.TaskRow, int, error) {
	f := persistence.TaskFilter{VersionID: version, ByUpdate: true, Offset: offset, Limit: limit}
	if status == "" {
		return g.plainPage(ctx, f)
	}
	stored := api.StateOf(status)
	if stored == "" { // no task has this status
		return nil, 0, nil
	}
	f.Statuses = []string{string(stored)}
	if stored != flow.TaskRunning {
		return g.plainPage(ctx, f)
	}
	return g.runningPage(ctx, f, status == waitingQueue)
}

func (g *graph) plainPage(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, int, error) {
	total, err := g.Store.CountTasks(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	rows, err := g.Store.ListTasks(ctx, f)
	return rows, total, err
}

// queueScan is the maximum number of queue entries that are read to distinguish waiting tasks from
// running tasks.
const queueScan = 10_000

// runningPage lists either the running tasks that wait for a poller, or all other running tasks.
func (g *graph) runningPage(ctx context.Context, f persistence.TaskFilter, waiting bool) ([]persistence.TaskRow, int, error) {
	waits, err := g.tasksAtQueue(ctx, f.VersionID)
	if err != nil {
		return nil, 0, err
	}
	total := len(waits)
	if !waiting {
		running, err := g.Store.CountTasks(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		total = max(0, running-len(waits))
	}
	rows := []persistence.TaskRow{}
	skip, limit := f.Offset, f.Limit
	for f.Offset, f.Limit = 0, 500; len(rows) < limit; f.Offset += f.Limit {
		part, err := g.Store.ListTasks(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		for _, row := range part {
			switch {
			case waits[row.ID] != waiting:
			case skip > 0:
				skip--
			case len(rows) < limit:
				rows = append(rows, row)
			}
		}
		if len(part) < f.Limit {
			break
		}
	}
	return rows, total, nil
}

// tasksAtQueue returns the tasks that only wait for pollers.
func (g *graph) tasksAtQueue(ctx context.Context, version string) (map[string]bool, error) {
	rows, err := g.Store.QueueRows(ctx, nil, 0, "", queueScan)
	if err != nil {
		return nil, err
	}
	tasks := make([]string, len(rows))
	for i, row := range rows {
		tasks[i] = row.Task
	}
	slices.Sort(tasks)
	waits := map[string]bool{}
	err = g.Reader.Each(ctx, slices.Compact(tasks), func(v *persistence.View) error {
		if waitsForQueue(v.State) && (version == "" || v.VersionID == version) {
			waits[v.ID] = true
		}
		return nil
	})
	return waits, err
}
