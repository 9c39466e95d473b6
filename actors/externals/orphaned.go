package externals

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// External work is orphaned if it was started for an attempt that has ended. The report of the job
// names the work, the task answers that the attempt has ended, and this member cancels the work.

// CancelOrphaned cancels external work that has no row in the store. It retries as for other
// external work, as long as this member runs.
func (x *Watcher) CancelOrphaned(jobs []flow.External) {
	x.cfg.Work.Run(func() {
		for _, job := range jobs {
			if tracker := x.cfg.Trackers[job.Service]; tracker != nil {
				x.cancelWithRetries(tracker, job)
			}
		}
	})
}

func (x *Watcher) cancelWithRetries(tracker Tracker, job flow.External) {
	for try := range maxRecalls {
		err := x.cancelAtTracker(tracker, job)
		if err == nil || x.cfg.Work.HasEnded() {
			return
		}
		x.cfg.Log.WarnContext(x.logContext(job),
			"canceling abandoned external work failed", "service",
			job.Service, "id", job.ID, "abandoned", try+1 == maxRecalls, "error", err)
		if !x.cfg.Work.Sleep(time.Duration(pauseOf(job, try)) * time.Millisecond) {
			return
		}
	}
}
