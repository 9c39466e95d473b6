package sqlite

import (
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// journalEnd is the key of a task's journal and its last row.
type journalEnd struct {
	n       int64 // number of the task, which is the key of its journal
	last    int64 // sequence number of the newest row
	labeled bool  // the task has labels
}

// endsBytes bounds the cache of journal ends; it is enough for about 12,000 tasks.
const endsBytes = 4 << 20

// findJournal returns the end of a task's journal, from a cache if possible. Cached ends stay valid
// until a rollback or the deletion of the task, because only the lane writes to the database.
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

// lookUpAll loads the uncached journal ends of a batch with one statement. Most ends are uncached
// after a restart, or when many timers are due.
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
	stmt, err := t.prepareQuery("SELECT t.id, t.n, (SELECT max(seq) FROM task_events WHERE task " +
		"= t.n), t.labels IS NOT NULL FROM json_each(?) j CROSS JOIN tasks t ON t.id = j.value")
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
