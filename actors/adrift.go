package actors

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// External work is orphaned when it was started for an attempt that has ended. The member that
// started it names it in the job's report, the task answers that the attempt has ended, and the
// tracker cancels the work.

// hasDeferredWork reports whether a job's report names external work that was started for the job.
// If the task has ended and has no actor anymore, that work must be canceled here, because no other
// component knows of it.
func (f *activeJob) hasDeferredWork() bool {
	r, ok := f.report.(flow.Report)
	return ok && len(r.Deferred) > 0
}

// forwardDeferredWork forwards reports of external work that was started for jobs while the task
// ended.
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

// cancelOrphaned cancels external work that has no row in the store. It retries as often as for any
// other external work, while this member runs.
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
		x.m.log.WarnContext(x.logContext(job),
			"work outside that nobody waits for any longer could not be called off", "service",
			job.Service, "id", job.ID, "given_up", try+1 == maxRecalls, "error", err)
		if !x.m.sleepFor(time.Duration(pauseOf(job, try)) * time.Millisecond) {
			return
		}
	}
}
