package child

import (
	"context"
	"fmt"
	"time"
)

const (
	// startTimeout is how long a program waits for what its start needs.
	startTimeout = time.Minute
	// startRetryPause is how often it tries meanwhile.
	startRetryPause = 20 * time.Millisecond
)

// Patience has programs started on a host that may have no file descriptor or process to spare for
// a while. Those who have to wait try one after the other: together they would take from each other
// what one of them needs.
type Patience struct{ turn chan struct{} }

// NewPatience returns one for all who start programs in the same place.
func NewPatience() Patience { return Patience{make(chan struct{}, 1)} }

// Do tries again and again while what it needs is exhausted.
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
	return fmt.Errorf("it could not be started within %s: %w; raise this host's limits (ulimit -n, -u), or lower --max-scripts", startTimeout, err)
}
