package cluster

import (
	"context"
	"slices"
	"sync"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

type plans struct{ err error }

func (p plans) Plan(context.Context, string) (*flow.Plan, error) {
	return &flow.Plan{FlowID: flowID}, p.err
}

// journal holds the rows of tasks that all members share.
type journal struct {
	mu    sync.Mutex
	tasks map[string]*stored
}

type stored struct {
	rows  []persistence.Row
	ended bool
	grown chan struct{}
}

// task is called with the lock held.
func (j *journal) task(id string) *stored {
	if j.tasks[id] == nil {
		j.tasks[id] = &stored{grown: make(chan struct{})}
	}
	return j.tasks[id]
}

// begin creates a task and reports whether it is new.
func (j *journal) begin(id string) bool {
	j.mu.Lock()
	begun := len(j.task(id).rows) > 0
	j.mu.Unlock()
	if !begun {
		j.add(id, false)
	}
	return !begun
}

func (j *journal) add(id string, end bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.task(id)
	t.rows = append(t.rows, persistence.Row{Seq: int64(len(t.rows) + 1), At: 7, Events: []byte("event")})
	t.ended = end
	close(t.grown)
	t.grown = make(chan struct{})
}

func (j *journal) read(id string, after int64) (rows []persistence.Row, ended bool, grown <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.task(id)
	return slices.Clone(t.rows[min(after, int64(len(t.rows))):]), t.ended, t.grown
}

func (j *journal) Rows(_ context.Context, task string, after int64, _ persistence.Part) ([]persistence.Row, error) {
	rows, _, _ := j.read(task, after)
	return rows, nil
}

func (j *journal) Task(_ context.Context, id string) (*persistence.TaskRow, error) {
	rows, ended, _ := j.read(id, 0)
	if len(rows) == 0 {
		return nil, persistence.ErrNotFound
	}
	row := &persistence.TaskRow{ID: id}
	if row.Status = string(flow.TaskRunning); ended {
		row.Status = string(flow.TaskCompleted)
	}
	return row, nil
}
