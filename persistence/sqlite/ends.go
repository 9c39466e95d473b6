package sqlite

import (
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// journalEnd is where a task's journal is, and its end.
type journalEnd struct {
	n       int64 // the task's number
	last    int64 // the newest row's sequence number
	labeled bool  // the task has labels
}

// endsBytes is for about 12,000 tasks.
const endsBytes = 4 << 20

// findJournal finds the end of a task's journal. What was written or looked for lately is known:
// nobody but the lane writes to the database, so it is as it was left, until a transaction is
// rolled back or the task is deleted.
func (t writeTx) findJournal(task string) (*journalEnd, error) {
	if j, known := t.lane.ends.Get(task); known {
		return j, nil
	}
	if err := t.lookUp([]string{task}); err != nil {
		return nil, err
	}
	j, known := t.lane.ends.Get(task)
	if !known {
		return nil, persistence.ErrUnknown
	}
	return j, nil
}

// lookUpAll looks for the journals of a batch that are not known, by one statement: after a restart
// and when many timers are due that is most of them.
func (t writeTx) lookUpAll(batch []persistence.Commit) error {
	var unknown []string
	for i := range batch {
		c := &batch[i]
		if _, known := t.lane.ends.Get(c.Task); !known && c.Create == nil {
			unknown = append(unknown, c.Task)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return t.lookUp(unknown)
}

func (t writeTx) lookUp(tasks []string) error {
	stmt, err := t.prepareQuery("SELECT t.id, t.n, (SELECT max(seq) FROM task_events WHERE task = t.n), t.labels IS NOT NULL FROM json_each(?) j CROSS JOIN tasks t ON t.id = j.value")
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(t.ctx, *listing.AsJSON(tasks))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var task string
		j := &journalEnd{}
		if err := rows.Scan(&task, &j.n, &j.last, &j.labeled); err != nil {
			return err
		}
		t.cacheEnd(task, j)
	}
	return rows.Err()
}

func (t writeTx) cacheEnd(task string, j *journalEnd) { t.lane.ends.Put(task, j, 0) }
