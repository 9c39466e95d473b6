package actors

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Work outside is adrift when it was begun for an attempt that is over: the member that has begun
// it names it in the job's report, the task says that nobody waits for it, and its tracker calls it
// off.

// hasDeferredWork reports whether a job's report names work outside that was begun for it. When its
// task is over, and has no actor any more, that has to end: nobody else knows of it.
func (f *activeJob) hasDeferredWork() bool {
	r, ok := f.report.(flow.Report)
	return ok && len(r.Deferred) > 0
}

// forwardDeferredWork tells of work outside that was begun for a job while the task ended.
func (t *task) forwardDeferredWork() {
	if t.inbox == nil {
		return
	}
	t.inbox.takeReports(func(landed []*activeJob) {
		for _, f := range landed {
			if f.hasDeferredWork() {
				t.m.sendMessage(t.m.tasks, reportsOf(t.id, []*activeJob{f}))
			}
		}
	})
}

// cancelOrphaned has work end which no row in the store tells of. That is tried as often as of any
// other, as long as this member is there.
func (x *externalWatcher) cancelOrphaned(jobs []flow.External) {
	x.m.runBackground(func() {
		for _, job := range jobs {
			if tracker := x.m.cfg.Trackers[job.Service]; tracker != nil {
				x.cancelWithRetries(tracker, job)
			}
		}
	})
}

func (x *externalWatcher) cancelWithRetries(tracker Tracker, job flow.External) {
	for try := range maxRecalls {
		err := x.cancelAtTracker(tracker, job)
		if err == nil || x.m.ctx.Err() != nil {
			return
		}
		x.m.log.WarnContext(x.logContext(job), "work outside that nobody waits for any longer could not be called off", "service", job.Service, "id", job.ID, "given_up", try+1 == maxRecalls, "error", err)
		if !x.m.sleepFor(time.Duration(pauseOf(job, try)) * time.Millisecond) {
			return
		}
	}
}
