package script

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
)

const (
	// startTime is how long a script waits for what its start needs.
	startTime = time.Minute
	// startAgainMS is how often it tries meanwhile.
	startAgainMS = 20
)

// patiently does what needs file descriptors and a process, again and again while this host has none to spare. Those who
// have to wait try one after the other: together they would take from each other what one of them needs.
func (c *Carrier) patiently(ctx context.Context, try func() error) error {
	err := try()
	if !exhausted(err) {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-bounded.Done():
	}
	for carry.Pause(bounded, startAgainMS) {
		if err = try(); !exhausted(err) {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("it could not be started within %s: %w; raise this host's limits (ulimit -n, -u), or lower --max-scripts", startTime, err)
}
