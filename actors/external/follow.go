package external

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// How long who has ended may be without a word in the files, how often these are looked at
// meanwhile, and after an error.
const (
	endGrace     = 5 * time.Second
	endPollPause = 100 * time.Millisecond
	errorPause   = time.Second
)

// Follow looks how an attempt is until it has ended, of a worker that is started here: when exited
// is closed it has a few seconds for its last words. It tells working once since when the worker is
// at it. said = the end was told by the worker itself.
func (o *Objects) Follow(ctx context.Context, x flow.External, exited <-chan struct{}, working func(since int64)) (status flow.ExternalStatus, said bool) {
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
