package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/dialect/pocketflow"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Limits of what is held in memory and written at once.
const (
	// bytes of the runs of one task; a task with more is imported without them
	mostRuns   = 16 << 20
	batchTasks = 100
	batchBytes = 4 << 20
	smallEvent = 16 << 10 // above this size a task gets a snapshot, which is faster to read
)

// taskBatch is a batch of tasks that are written together.
type taskBatch struct {
	commits   []persistence.Commit
	histories []*pocketflow.History
	runs      []int // number of runs of each task in the file
	bytes     int
}

// importTask imports the task with a row id.
func (i *flowImporter) importTask(ctx context.Context, v *persistence.Version, plan *flow.Plan, row int64) error {
	t, err := i.file.taskAt(ctx, row)
	if err != nil {
		return fmt.Errorf("read a task: %w", err)
	}
	there, err := isStored(i, ctx, t.ID, persistence.Store.Task)
	switch {
	case err != nil:
		return err
	case there:
		i.report.Tasks.There++
		i.report.Runs.There += len(i.file.runs[t.ID])
		return nil
	}
	if t.ID == "" || !flow.IsText(t.ID) || strings.Contains(t.ID, ".") || flow.CheckName("the id", t.ID) != nil {
		i.refuseTask(t.ID, "its id cannot be part of the ids of jobs: it has a dot, or is empty, too long or no text")
		return nil
	}
	runs, too, err := i.file.runsOf(ctx, t.ID, mostRuns)
	if err != nil {
		return fmt.Errorf("read runs of the task %s: %w", t.ID, err)
	}
	said, err := pocketflow.Tell(v.ID, plan, t, runs)
	if err != nil {
		i.refuseTask(t.ID, err.Error())
		return nil
	}
	if too {
		said.Untold = len(i.file.runs[t.ID])
		said.Missing = append(said.Missing, fmt.Sprintf("its %d runs: they have more than %d MiB together", said.Untold, mostRuns>>20))
	}
	return i.addTask(ctx, v, &t, said)
}

// addTask adds a task to the batch.
func (i *flowImporter) addTask(ctx context.Context, v *persistence.Version, t *pocketflow.Task, said *pocketflow.History) error {
	row := flow.Row{Format: flow.Format}
	row.Add(said.Events)
	s := said.State
	c := persistence.Commit{Task: t.ID, Seq: 1, Events: row.Bytes(), At: s.UpdatedAt,
		Create:  &persistence.Create{FlowID: v.FlowID, VersionID: v.ID, Params: said.Params, CreatedAt: s.CreatedAt},
		Columns: new(persistence.Columns)}
	*c.Columns = persistence.ColumnsOf(s)
	c.Approvals = persistence.ApprovalRows(s, s.Approvals())
	if !s.Status.Ended() { // the serving member wakes it, even if it is running already
		c.Rest = &persistence.Rest{Resting: true, Due: max(i.now, 1)}
	}
	if len(c.Events) > smallEvent {
		c.Snapshot = flow.EncodeSnapshot(s)
	}
	b := &i.batch
	b.commits, b.histories, b.runs = append(b.commits, c), append(b.histories, said), append(b.runs, len(i.file.runs[t.ID]))
	if b.bytes += len(c.Events) + c.Snapshot.Len(); len(b.commits) == batchTasks || b.bytes > batchBytes {
		return i.flushBatch(ctx)
	}
	return nil
}

// flushBatch writes the batch.
func (i *flowImporter) flushBatch(ctx context.Context) error {
	b := i.batch
	i.batch = taskBatch{}
	if len(b.commits) == 0 {
		return nil
	}
	answers := make([]error, len(b.commits))
	if !i.o.DryRun {
		var err error
		if answers, err = i.commitEach(ctx, b.commits); err != nil {
			return fmt.Errorf("write tasks: %w", err)
		}
	}
	for k, answer := range answers {
		i.countAnswer(&b.commits[k], b.histories[k], b.runs[k], answer)
	}
	return i.renewLease(ctx)
}

// commitEach writes all commits that can be written. To find the refused commits, it writes one
// task at a time.
func (i *flowImporter) commitEach(ctx context.Context, commits []persistence.Commit) ([]error, error) {
	answers, err := i.store.Commit(ctx, i.me, commits)
	switch {
	case !errors.Is(err, persistence.ErrRefused):
		return answers, err
	case len(commits) == 1:
		return []error{err}, nil
	}
	answers = nil
	for k := range commits {
		one, err := i.commitEach(ctx, commits[k:k+1])
		if err != nil {
			return nil, err
		}
		answers = append(answers, one...)
	}
	return answers, nil
}

// countAnswer counts the result of one task.
func (i *flowImporter) countAnswer(c *persistence.Commit, said *pocketflow.History, runs int, answer error) {
	r := i.report
	switch {
	case errors.Is(answer, persistence.ErrExists):
		r.Tasks.There++
		r.Runs.There += runs
		return
	case answer != nil:
		i.refuseTask(c.Task, answer.Error())
		return
	}
	r.Tasks.Taken++
	for _, why := range said.Missing {
		i.reportMissing("task", c.Task, "taken without "+why)
	}
	r.Runs.Taken += runs - said.Untold
	r.Runs.Missing += said.Untold
	if c.Rest != nil {
		r.Unfinished++
	} else if r.Oldest == 0 || c.Columns.EndedAt < r.Oldest {
		r.Oldest = c.Columns.EndedAt
	}
}
