package postgres

import (
	"slices"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/internal/listing"
)

// rows are the parameters of task_events.
type rows struct {
	task    []string
	seq, at []int64
	events  [][]byte
}

func newRows(batch []persistence.Commit) rows {
	n := len(batch)
	r := rows{make([]string, n), make([]int64, n), make([]int64, n), make([][]byte, n)}
	for i := range batch {
		r.task[i], r.seq[i], r.at[i], r.events[i] = batch[i].Task, batch[i].Seq, batch[i].At, batch[i].Events
		if malformed(&batch[i]) {
			r.seq[i] = 0 // which nothing follows
		}
	}
	return r
}

// malformed is a task that does not begin with row 1.
func malformed(c *persistence.Commit) bool {
	return c.Create != nil && (c.Seq != 1 || c.Events == nil)
}

// changes are the parameters of tasks and wakes; what is nil stays as it is.
type changes struct {
	task                                []string
	seq, at                             []int64
	status, cursor, lastAction, message []*string
	paused                              []*bool
	steps                               []*int
	endedAt                             []*int64
	snapshot                            [][]byte
	resting                             []*bool
	due                                 []int64

	flow, version, labels []*string // with Create
	params                [][]byte
	bodyHash              []*string
	createdAt             []*int64

	creates, updates, rests bool // whether there are any
}

// jobs are the parameters of task_queue.
type jobs struct {
	task, job, service []string
	at                 []int64
	outTask, outJob    []string
}

func newChanges(batch []persistence.Commit) (u changes) {
	for i := range batch {
		c := &batch[i]
		if !malformed(c) && (c.Create != nil || c.Columns != nil || c.Snapshot != nil || c.Rest != nil) {
			u.add(c)
		}
	}
	return u
}

func (u *changes) add(c *persistence.Commit) {
	u.task, u.seq, u.at = append(u.task, c.Task), append(u.seq, c.Seq), append(u.at, c.At)
	u.snapshot = append(u.snapshot, c.Snapshot)
	u.addColumns(c.Columns)
	u.addRest(c.Rest)
	u.addCreate(c.Create)
	u.creates = u.creates || c.Create != nil
	u.updates = u.updates || c.Create == nil
	u.rests = u.rests || c.Rest != nil
}

func (u *changes) addColumns(c *persistence.Columns) {
	if c == nil {
		u.status, u.cursor, u.lastAction, u.message = append(u.status, nil), append(u.cursor, nil), append(u.lastAction, nil), append(u.message, nil)
		u.paused, u.steps, u.endedAt = append(u.paused, nil), append(u.steps, nil), append(u.endedAt, nil)
		return
	}
	cursor, lastAction, message := listing.Text(c.Cursor), listing.Text(c.LastAction), listing.Text(c.Error)
	u.status, u.cursor, u.lastAction, u.message = append(u.status, &c.Status), append(u.cursor, &cursor), append(u.lastAction, &lastAction), append(u.message, &message)
	u.paused, u.steps, u.endedAt = append(u.paused, &c.Paused), append(u.steps, &c.Steps), append(u.endedAt, &c.EndedAt)
}

func (u *changes) addRest(r *persistence.Rest) {
	if r == nil {
		u.resting, u.due = append(u.resting, nil), append(u.due, 1) // a due time alone says nothing
		return
	}
	u.resting, u.due = append(u.resting, &r.Resting), append(u.due, r.Due)
}

func (u *changes) addCreate(c *persistence.Create) {
	if c == nil {
		u.flow, u.version, u.labels = append(u.flow, nil), append(u.version, nil), append(u.labels, nil)
		u.params, u.bodyHash, u.createdAt = append(u.params, nil), append(u.bodyHash, nil), append(u.createdAt, nil)
		return
	}
	u.flow, u.version, u.labels = append(u.flow, &c.FlowID), append(u.version, &c.VersionID), append(u.labels, listing.Labels(c.Labels))
	u.params, u.bodyHash, u.createdAt = append(u.params, c.Params), append(u.bodyHash, &c.BodyHash), append(u.createdAt, &c.CreatedAt)
}

// newJobs leaves a job out that one commit puts in and takes out, because both would happen at once.
func newJobs(batch []persistence.Commit) (q jobs) {
	for i := range batch {
		c := &batch[i]
		for _, row := range c.Enqueue {
			if !slices.Contains(c.Dequeue, row.JobID) {
				q.task, q.job, q.service, q.at = append(q.task, c.Task), append(q.job, row.JobID), append(q.service, row.Service), append(q.at, row.EnqueuedAt)
			}
		}
		for _, job := range c.Dequeue {
			q.outTask, q.outJob = append(q.outTask, c.Task), append(q.outJob, job)
		}
	}
	return q
}
