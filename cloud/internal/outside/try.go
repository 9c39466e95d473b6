// Package outside holds the common parts of services that start cloud jobs: retries, and the
// environment of a job.
package outside

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/internal/tenure"
)

// Patience is how long a cloud may be unreachable or overloaded before an attempt fails.
const Patience = 60 * time.Second

const firstPause, longestPause = 500 * time.Millisecond, 8 * time.Second

// ErrLeaseLost is the error of a member that was suspended for too long.
var ErrLeaseLost = errors.New("this member has lost its lease, and begins no job any more")

// Held is called directly before a job is started. A member without its lease must not start it,
// because another member may have done so.
func Held(ctx context.Context) error {
	if !tenure.Held(ctx) {
		return ErrLeaseLost
	}
	return nil
}

// Try calls do until it succeeds or a retry does not help. The function passing reports whether a
// retry may help; after returns the pause requested by the service, 0 if none.
func Try(ctx context.Context, do func() error, passing func(error) bool, after func(error) time.Duration) error {
	until := time.Now().Add(Patience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := do()
		wait := max(pause, after(err))
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrLeaseLost) || !passing(err) || time.Now().Add(wait).After(until) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
