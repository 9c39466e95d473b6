package actors

import (
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// The queue table of the store holds the jobs that wait for pollers, or have waited, until the jobs
// end. A job that a poller gets at its start has no row, because writing and deleting the row takes
// a fifth of PostgreSQL's work for the step. The row is written later, when the job reports
// progress or is returned, so that the queue shows it.

// unlistedJobs are the jobs of a task in memory that have no row in the queue. A missing entry only
// costs a useless deletion.
type unlistedJobs map[flow.Address]bool

// addUnlisted records that a poller got a job as it started.
func (t taskJournal) addUnlisted(at flow.Address) {
	if t.unlisted == nil {
		t.unlisted = unlistedJobs{}
	}
	t.unlisted[at] = true
}

// removeJob removes a job and reports whether it was listed here, which means that it had no row in
// the queue.
func (h unlistedJobs) removeJob(at flow.Address) bool {
	was := h[at]
	delete(h, at)
	return was
}

// addQueue adds the changes to rows of poller jobs to the commit of the events that they follow
// from.
func (t taskJournal) addQueue(c *persistence.Commit, p *journalDraft) {
	for _, e := range p.effects {
		switch e := e.(type) {
		case flow.Dispatch:
			t.addJob(c, &e.Job)
		case flow.Ask, flow.Held, flow.Release:
			t.addPermits(c, e)
		case flow.Track, flow.Untrack, flow.Recall:
			t.addExternals(c, e)
		case flow.Over:
			if e.Queue {
				t.endJob(c, e.Address)
			}
		case flow.Withdraw:
			if e.Queue {
				t.endJob(c, e.Address)
			}
		}
	}
	for _, at := range p.heartbeatAttempts {
		if !t.unlisted.removeJob(at) {
			continue
		}
		if job, open := t.state.Job(at); open {
			c.Enqueue = append(c.Enqueue, queueRow(&job))
		}
	}
}

// addJob adds the queue row of a job. A returned job always gets one, even if the row exists,
// because it may have been claimed without a row.
func (t taskJournal) addJob(c *persistence.Commit, job *flow.Job) {
	if job.Exec.Type != flow.ExecQueue || !job.Again && t.unlisted[job.Address] {
		return
	}
	delete(t.unlisted, job.Address)
	c.Enqueue = append(c.Enqueue, queueRow(job))
}

func (t taskJournal) endJob(c *persistence.Commit, at flow.Address) {
	if !t.unlisted.removeJob(at) {
		c.Dequeue = append(c.Dequeue, flow.JobID(t.id, at))
	}
}

func queueRow(job *flow.Job) persistence.QueueRow {
	return persistence.QueueRow{
		JobID: job.ID(), Task: job.Task, Service: job.Exec.Service, EnqueuedAt: job.EnqueuedAt,
		Turn: job.Turn, Size: job.Size(), Labels: job.Exec.Labels,
	}
}
