package sim

import (
	"bytes"
	"maps"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// checkSideEffects checks the changes of a commit besides the journal.
func (c *commitChecker) checkSideEffects(t *taskShadow, commit *persistence.Commit) {
	in := c.store.tasks[commit.Task]
	want := persistence.Columns{Status: string(t.state.Status), Cursor: t.state.Root.Cursor, LastAction: t.state.Root.LastAction,
		Error: t.state.Error, Paused: t.state.Paused(), Steps: t.state.Steps, Followed: t.state.Followed, EndedAt: t.state.EndedAt}
	kinds, first := t.state.Waits()
	if want.Waits = kinds; first != nil {
		want.Wait = *first
	}
	if commit.Columns != nil && *commit.Columns != want {
		c.w.failRun("task %s: its columns are written as %+v, its journal says %+v", commit.Task, *commit.Columns, want)
	}
	have := in.Columns
	if have.Status != want.Status || have.Error != want.Error || have.Paused != want.Paused || have.EndedAt != want.EndedAt {
		c.w.failRun("task %s: its columns are %+v, its journal says %+v", commit.Task, have, want)
	}
	if commit.Snapshot != nil && !bytes.Equal(commit.Snapshot.Bytes(), c.encodeState(t.state)) {
		c.w.failRun("task %s: the snapshot at %d is not what its journal says", commit.Task, commit.Seq)
	}
	if commit.Snapshot != nil {
		c.checkSnapshot(t, commit)
	}
	c.checkQueue(t, commit.Task)
	c.checkKeys(t, commit.Task)
	c.checkExternals(t, commit.Task)
	c.checkRest(t, in)
}

// checkSnapshot checks that a decoded snapshot equals the state.
func (c *commitChecker) checkSnapshot(t *taskShadow, commit *persistence.Commit) {
	written := commit.Snapshot.Bytes()
	s, ok := flow.DecodeSnapshot(written, t.state.Plan)
	if !ok || !bytes.Equal(written, c.encodeState(s)) {
		c.w.failRun("task %s: the snapshot at %d reads as another state", commit.Task, commit.Seq)
	}
}

func (c *commitChecker) checkRest(t *taskShadow, in *storedTask) {
	if !in.resting {
		if in.due != 0 {
			c.w.failRun("task %s has a wake and is not at rest", in.ID)
		}
		return
	}
	due, idle := flow.Idle(t.state)
	if t.ended {
		c.w.failRun("task %s has ended and is at rest", in.ID)
	}
	if !idle || due != in.due {
		c.w.failRun("task %s is at rest until %d, but has to do something at %d (idle: %v)", in.ID, in.due, due, idle)
	}
}

func (c *commitChecker) encodeState(s *flow.State) []byte {
	return flow.EncodeSnapshot(s).Bytes()
}

// checkQueue checks that the queue holds exactly the pending queue jobs of a task and the claimed
// ones.
func (c *commitChecker) checkQueue(t *taskShadow, task string) {
	rows := c.store.jobsOf(task)
	waiting, claimed := queueJobs(t.state)
	for _, id := range waiting {
		if !slices.Contains(rows, id) {
			c.w.failRun("task %s: the job %s waits, the queue rows are %v", task, id, rows)
		}
	}
	for _, id := range rows {
		if !slices.Contains(waiting, id) && !slices.Contains(claimed, id) {
			c.w.failRun("task %s: queue rows %v, queue jobs that wait %v, and that are claimed %v", task, rows, waiting, claimed)
		}
	}
}

// queueJobs returns the queue attempts in flight. Attempts withdrawn by a gentle cancel stay
// pending until a decision has room for their withdrawal.
func queueJobs(s *flow.State) (waiting, claimed []string) {
	for _, e := range flow.Outstanding(s) {
		if job := flow.JobOf(e); job != nil && job.Exec.Type == flow.ExecQueue {
			waiting = append(waiting, job.ID())
		}
		if alarm, is := e.(flow.Alarm); is && alarm.Kind == flow.AlarmClaim {
			claimed = append(claimed, flow.JobID(s.Task, alarm.Address))
		}
	}
	return waiting, claimed
}

func (m *storeModel) jobsOf(task string) []string {
	var ids []string
	for id, q := range m.queue {
		if q.Task == task {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// atEnd checks the remaining data after the end of all tasks.
func (c *commitChecker) atEnd() {
	there := 0
	for _, id := range slices.Sorted(maps.Keys(c.tasks)) {
		t, in := c.tasks[id], c.store.tasks[id]
		if t.deleted {
			continue
		}
		there++
		if in.EndedAt == 0 || in.resting || in.due != 0 || len(c.store.jobsOf(id)) > 0 ||
			len(c.store.permits.Of(id)) > 0 || len(c.store.externals.Of(id)) > 0 {
			c.w.failRun("task %s is not done with: %+v, queue rows %v", id, *in, c.store.jobsOf(id))
		}
		c.foldAnew(t, in)
	}
	if there != len(c.store.tasks) {
		c.w.failRun("%d tasks were written and not deleted, %d are stored", there, len(c.store.tasks))
	}
}

// foldAnew folds the stored journal with and without the snapshot.
func (c *commitChecker) foldAnew(t *taskShadow, in *storedTask) {
	whole := flow.NewState(in.ID, t.state.Plan)
	for i, row := range in.rows {
		if row.Seq != int64(i+1) {
			c.w.failRun("task %s: row %d has number %d", in.ID, i+1, row.Seq)
		}
		if err := flow.Fold(whole, row.Events); err != nil {
			c.w.failRun("task %s, row %d: %v", in.ID, row.Seq, err)
		}
	}
	want := c.encodeState(t.state)
	if !bytes.Equal(want, c.encodeState(whole)) {
		c.w.failRun("task %s: folding the stored journal gives another state", in.ID)
	}
	if in.snapshot == nil {
		return
	}
	s, ok := flow.DecodeSnapshot(in.snapshot, t.state.Plan)
	if !ok {
		c.w.failRun("task %s: the snapshot cannot be read", in.ID)
		return
	}
	for _, row := range in.rows[in.snapshotSeq:] {
		if err := flow.Fold(s, row.Events); err != nil {
			c.w.failRun("task %s, row %d: %v", in.ID, row.Seq, err)
		}
	}
	if !bytes.Equal(want, c.encodeState(s)) {
		c.w.failRun("task %s: snapshot and later rows give another state than the whole journal", in.ID)
	}
}
