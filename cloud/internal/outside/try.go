// Package outside has what all do alike that begin jobs in clouds: how long they try, and what a
// job finds in its environment.
package outside

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/internal/tenure"
)

// Patience is how long a cloud may be out of reach, or have too much to do, until an attempt has
// failed.
const Patience = 60 * time.Second

const firstPause, longestPause = 500 * time.Millisecond, 8 * time.Second

// ErrLeaseLost is told by a member that slept too long.
var ErrLeaseLost = errors.New("this member has lost its lease, and begins no job any more")

// Held is asked directly before a job is begun: whoever lost his lease begins none, another member
// may have begun it.
func Held(ctx context.Context) error {
	if !tenure.Held(ctx) {
		return ErrLeaseLost
	}
	return nil
}

// Try does something until it is done, or there is no sense in it. passing says that trying again
// may help, after how long the other side wants that; 0 = it does not say.
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
