package sqlite

import "github.com/troupe-engine/troupe/persistence"

// journal is where a task's journal is, and its end.
type journal struct {
	n       int64 // the task's number
	last    int64 // the newest row's sequence number
	labeled bool  // the task has labels
}

// endsBytes is for about 12,000 tasks.
const endsBytes = 4 << 20

// journal finds the end of a task's journal. What was written or looked for lately is known: nobody but the lane writes to the database,
// so it is as it was left, until a transaction is rolled back or the task is deleted.
func (t tx) journal(task string) (*journal, error) {
	if j, known := t.lane.ends.Get(task); known {
		return j, nil
	}
	j := &journal{}
	err := t.one("SELECT n, (SELECT max(seq) FROM task_events WHERE task = n), labels IS NOT NULL FROM tasks WHERE id = ?", []any{task}, &j.n, &j.last, &j.labeled)
	switch {
	case isNone(err):
		return nil, persistence.ErrUnknown
	case err != nil:
		return nil, err
	}
	t.note(task, j)
	return j, nil
}

func (t tx) note(task string, j *journal) { t.lane.ends.Put(task, j, 0) }
