package externals

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/logids"
	"github.com/troupe-engine/troupe/persistence"
)

// Tracker polls and cancels external work of a service, which is a job in another system that a
// task waits for. The methods must be safe for concurrent use. Their context ends after 30 s. A
// panic counts as an error.
type Tracker interface {
	// Poll returns the status of external work. After an error the status is unknown, and Poll is
	// called again later. x contains the number and the start of consecutive failures, so that the
	// tracker can give up.
	Poll(ctx context.Context, x flow.External) (flow.ExternalStatus, error)
	// Cancel ends external work that is no longer needed. It may be called again after a failure or
	// a lost answer. It returns nil for work that has ended already.
	Cancel(ctx context.Context, x flow.External) error
}

// Keeper is a Tracker that keeps data of ended work until the end is stored.
type Keeper interface {
	// Ended reports that the end of external work, which Poll returned, is stored. The call is lost
	// if the member stops at that moment.
	Ended(ctx context.Context, x flow.External)
}

// trackerTimeout bounds one call to a tracker. maxRecalls is how often a cancellation is tried.
// externalRetryMS is the pause before a refused end is sent to the task again. maxExternalPause is
// the longest pause between polls. Both pauses are in milliseconds.
const (
	trackerTimeout   = 30 * time.Second
	maxRecalls       = 5
	externalRetryMS  = 1000
	maxExternalPause = 10_000
)

// pollRow polls or cancels external work. It returns false if a message to the task must be
// answered before the next poll.
func (x *Watcher) pollRow(row persistence.ExternalRow) bool {
	tracker := x.cfg.Trackers[row.Service]
	note := persistence.ExternalNote{ExternalID: row.Key(), Polls: row.Polls + 1, Memo: row.Memo,
		Pending: row.Pending, Recalled: row.Recalled}
	switch {
	case row.Recalled:
		x.cancelRecalled(tracker, row, note)
		return true
	case tracker == nil:
		x.reportEnd(row, note, flow.ExternalEnded{Error: fmt.Sprintf("no tracker for service type %q", row.Service)})
		return false
	}
	status, err := x.pollTracker(tracker, row.External)
	switch {
	case x.cfg.Work.HasEnded():
		return false
	case err != nil:
		x.recordPollFailure(row, note, status.Again, err)
		return true
	case status.Ended:
		output, err := x.cfg.OffloadValue(x.cfg.Work.Context(), row.Task, status.Output)
		if err != nil {
			x.recordPollFailure(row, note, 0, err)
			return true
		}
		x.reportEnd(row, note, flow.ExternalEnded{Output: output, Error: status.Error,
			Details: status.Details, Metrics: status.Metrics, BeganAt: status.BeganAt})
		return false
	}
	if status.Memo != nil {
		note.Memo = status.Memo
	}
	note.NextAt = x.cfg.Now() + pauseOf(row.External, row.Polls)
	if status.Again > 0 {
		note.NextAt = x.cfg.Now() + max(status.Again.Milliseconds(), 1)
	}
	if row.Pending && status.BeganAt > 0 {
		x.reportWorking(row, note, status.BeganAt)
		return false
	}
	x.enqueueNote(note)
	return true
}

// logContext returns the context for log lines about external work. The tracker gets a similar
// context.
func (x *Watcher) logContext(external flow.External) context.Context {
	return logids.JobID(x.cfg.Work.Context(), external.Job)
}

func (x *Watcher) pollTracker(tracker Tracker, external flow.External) (status flow.ExternalStatus, err error) {
	ctx, cancel := x.cfg.Work.WithTimeout(trackerTimeout)
	defer cancel()
	ctx = logids.JobID(ctx, external.Job)
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the tracker of %s panicked: %v", external.Service, reason)
		}
	}()
	status, err = tracker.Poll(ctx, external)
	switch {
	case err != nil:
	// another poll would give the same output
	case status.Ended && flow.CheckJSON(status.Output) != nil:
		status = flow.ExternalStatus{Ended: true,
			Error: fmt.Sprintf("the tracker of %s gave an output that is no JSON in UTF-8", external.Service)}
	case !status.Ended && flow.CheckJSON(status.Memo) != nil:
		err = fmt.Errorf("the tracker of %s gave a memo that is no JSON in UTF-8", external.Service)
	}
	return status, err
}

// recordPollFailure records that the status of a piece of work is unknown.
func (x *Watcher) recordPollFailure(row persistence.ExternalRow, note persistence.ExternalNote, again time.Duration, err error) {
	note.Failures, note.FailingAt = row.Failures+1, row.FailingAt
	if row.Failures == 0 {
		note.FailingAt = x.cfg.Now()
		x.cfg.Log.WarnContext(x.logContext(row.External),
			"checking external work failed, retrying", "service", row.Service, "id", row.ID,
			"error", err)
	}
	note.NextAt = x.cfg.Now() + max(pauseOf(row.External, row.Failures), again.Milliseconds())
	x.enqueueNote(note)
}

// pauseOf returns the pause before the next poll of external work, in milliseconds. It doubles from
// one to ten seconds and has jitter. The jitter is a hash of the work and the count, so it is equal
// on every member.
func pauseOf(x flow.External, times int) int64 {
	ms := int64(maxExternalPause)
	if times < 4 {
		ms = 1000 << times
	}
	h := fnv.New64a()
	h.Write([]byte(x.Job + strconv.Itoa(x.Index) + "/" + strconv.Itoa(times)))
	return ms*9/10 + int64(h.Sum64()>>11)%(ms/5)
}

// reportEnd sends the end of external work to its task. Any answer removes the row, even if the
// task no longer needs the work.
func (x *Watcher) reportEnd(row persistence.ExternalRow, note persistence.ExternalNote, end flow.ExternalEnded) {
	end.Index = row.Index
	x.sendToTask(row, note, func(a flow.Address) flow.Command {
		end.Address = a
		return end
	}, func(note *persistence.ExternalNote) {
		note.Gone = true
		x.notifyKeeper(row.External)
	})
}

// reportWorking reports to a task that external work has started after it was created.
func (x *Watcher) reportWorking(row persistence.ExternalRow, note persistence.ExternalNote, since int64) {
	x.sendToTask(row, note, func(a flow.Address) flow.Command { return flow.Working{Address: a, At: since} },
		func(note *persistence.ExternalNote) { note.Pending = false })
}

// sendToTask sends a command about external work to its task, and records the change when the task
// has accepted the command. Otherwise the owner of the task sends it again later.
func (x *Watcher) sendToTask(row persistence.ExternalRow, note persistence.ExternalNote,
	word func(flow.Address) flow.Command, heard func(*persistence.ExternalNote)) {
	_, a, err := flow.ParseJobID(row.Job)
	if err != nil {
		x.cfg.Log.Error("external work has an invalid attempt name", "task", row.Task, "error", err)
		note.Gone = true
		x.enqueueNote(note)
		x.cfg.Work.Run(x.pollPending)
		return
	}
	x.cfg.SendOrder(engine.Order{Task: row.Task, Command: word(a)}, func(err error) {
		switch {
		case flow.ErrorKindOf(err) == flow.Moved:
			x.releaseRow(row.Key())
		case engine.IsDelivered(err):
			heard(&note)
			x.enqueueNote(note)
		default:
			note.Polls, note.NextAt = row.Polls, x.cfg.Now()+externalRetryMS
			x.enqueueNote(note)
		}
		x.cfg.Work.Run(x.pollPending)
	})
}

// notifyKeeper notifies the tracker that the end of its external work is stored.
func (x *Watcher) notifyKeeper(external flow.External) {
	keeper, ok := x.cfg.Trackers[external.Service].(Keeper)
	if !ok {
		return
	}
	x.cfg.Work.Run(func() {
		ctx, cancel := x.cfg.Work.WithTimeout(trackerTimeout)
		defer cancel()
		ctx = logids.JobID(ctx, external.Job)
		defer func() {
			if reason := recover(); reason != nil {
				x.cfg.Log.ErrorContext(ctx,
					"tracker panicked in its notification of a stored result", "service",
					external.Service, "reason", reason)
			}
		}()
		keeper.Ended(ctx, external)
	})
}

// cancelRecalled cancels external work that is no longer needed, with at most maxRecalls tries.
func (x *Watcher) cancelRecalled(tracker Tracker, row persistence.ExternalRow, note persistence.ExternalNote) {
	var err error
	if tracker != nil {
		err = x.cancelAtTracker(tracker, row.External)
	}
	if x.cfg.Work.HasEnded() {
		return
	}
	note.Polls, note.Failures, note.NextAt = row.Polls, row.Failures+1, x.cfg.Now()+pauseOf(row.External, row.Failures)
	note.Gone = err == nil || note.Failures >= maxRecalls
	if err != nil {
		x.cfg.Log.WarnContext(x.logContext(row.External),
			"canceling abandoned external work failed", "service",
			row.Service, "id", row.ID, "abandoned", note.Gone, "error", err)
	}
	x.enqueueNote(note)
}

func (x *Watcher) cancelAtTracker(tracker Tracker, external flow.External) (err error) {
	ctx, cancel := x.cfg.Work.WithTimeout(trackerTimeout)
	defer cancel()
	ctx = logids.JobID(ctx, external.Job)
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the tracker of %s panicked: %v", external.Service, reason)
		}
	}()
	return tracker.Cancel(ctx, external)
}
