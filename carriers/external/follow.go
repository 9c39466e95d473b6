package external

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// endGrace is how long the status may be missing after the worker has ended. endPollPause is the
// pause between polls in that time. errorPause is the pause after an error.
const (
	endGrace     = 5 * time.Second
	endPollPause = 100 * time.Millisecond
	errorPause   = time.Second
)

// Follow polls an attempt until it has ended, for a worker that this member started. After exited
// is closed, the status may take a few more seconds. It calls working once when the worker reports
// its start. said reports whether the worker itself reported the end.
func (o *Objects) Follow(ctx context.Context, x flow.External, exited <-chan struct{},
	working func(since int64)) (status flow.ExternalStatus, said bool) {
	var last <-chan time.Time
	x.Pending = true
	for final := false; ; {
		var err error
		status, said, err = o.pollAttempt(ctx, &x)
		if x.Pending && status.BeganAt > 0 {
			x.Pending = false
			working(status.BeganAt)
		}
		switch {
		case status.Ended:
			return status, said
		case final:
			return failedStatus("exited without a status"), false
		case err != nil:
			x.Failures++
			status.Again = errorPause
		default:
			x.Failures, x.Memo = 0, status.Memo
		}
		if last != nil {
			status.Again = endPollPause
		}
		select {
		case <-ctx.Done():
			return failedStatus(context.Cause(ctx).Error()), false
		case <-exited:
			exited, last = nil, time.After(endGrace)
		case <-last:
			final = true
		case <-time.After(status.Again):
		}
	}
}
