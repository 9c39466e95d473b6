package actors

import (
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// In the queue of the store are the jobs that wait for pollers, and those that have waited until
// they end. A job that a waiting poller got as it began need not be there: its row would be written
// and deleted again with each step, a fifth of what PostgreSQL does for that. It is written when
// the worker tells something of a job that takes longer, so that the queue shows it, and when the
// job is returned.

// unlistedJobs are the jobs of a task in memory that are not in the queue. One that is forgotten
// here costs a deletion in vain.
type unlistedJobs map[flow.Address]bool

// addUnlisted notes that a poller has got a job as that began.
func (t *task) addUnlisted(at flow.Address) {
	if t.unlisted == nil {
		t.unlisted = unlistedJobs{}
	}
	t.unlisted[at] = true
}

// removeJob reports whether a job was not in the queue; from now on it is, or it is over.
func (h unlistedJobs) removeJob(at flow.Address) bool {
	was := h[at]
	delete(h, at)
	return was
}

// addQueue makes and ends the rows of jobs for pollers, with the events they follow from.
func (t *task) addQueue(c *persistence.Commit, p *journalDraft) {
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

// addJob puts a job into the queue, also one that was there and is returned: it may have been
// handed out before it came there.
func (t *task) addJob(c *persistence.Commit, job *flow.Job) {
	if job.Exec.Type != flow.ExecQueue || !job.Again && t.unlisted[job.Address] {
		return
	}
	delete(t.unlisted, job.Address)
	c.Enqueue = append(c.Enqueue, queueRow(job))
}

func (t *task) endJob(c *persistence.Commit, at flow.Address) {
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
