package child

import (
	"context"
	"fmt"
	"time"
)

const (
	// startTimeout is how long a start waits for missing resources.
	startTimeout = time.Minute
	// startRetryPause is the pause between two tries.
	startRetryPause = 20 * time.Millisecond
)

// Patience starts programs on a host that may temporarily lack file descriptors or processes.
// Waiting starts take turns, because together they would use up the resources that a single start
// needs.
type Patience struct{ turn chan struct{} }

// NewPatience returns a Patience to be shared by all starts of programs in one place.
func NewPatience() Patience { return Patience{make(chan struct{}, 1)} }

// Do calls try until it succeeds or fails for a reason other than exhausted resources.
func (p Patience) Do(ctx context.Context, try func() error) error {
	err := try()
	if !isExhausted(err) {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-bounded.Done():
	}
	ticker := time.NewTicker(startRetryPause)
	defer ticker.Stop()
	for bounded.Err() == nil {
		select {
		case <-ticker.C:
			if err = try(); !isExhausted(err) {
				return err
			}
		case <-bounded.Done():
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("it could not be started within %s: %w; raise this host's limits (ulimit "+
		"-n, -u), or lower --max-scripts", startTimeout, err)
}
