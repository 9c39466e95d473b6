package cluster

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
)

const (
	// breath is the minimum time between two reads of the store, regardless of hints.
	breath = 10 * time.Millisecond
	// longBreath is the minimum time between two reads for callers that cannot reach an owner,
	// because they request reads repeatedly.
	longBreath = 100 * time.Millisecond
)

// waitForWork waits until the store must be read again: after the given time, soon after a signal,
// or when a handover ends.
func (k *Keeper) waitForWork(ctx context.Context, again time.Duration) {
	for due := k.cfg.Host.Now().Add(again); ; {
		breath, over := k.waitForSignal(ctx, due.Sub(k.cfg.Host.Now()))
		if may := k.lookedAt.Add(breath); may.Before(due) {
			due = may
		}
		if over || !k.cfg.Host.Now().Before(due) {
			break
		}
	}
	if h := k.handing; h != nil && host.Closed(h.done) {
		k.finishHandover(h)
	}
}

// waitForSignal waits for d, the end of ctx or a handover, or a signal. For a signal, mayAfter is
// the minimum time since the last read.
func (k *Keeper) waitForSignal(ctx context.Context, d time.Duration) (mayAfter time.Duration, over bool) {
	up, stop := k.cfg.Host.Timer(d)
	defer stop()
	var handed chan struct{}
	if k.handing != nil {
		handed = k.handing.done
	}
	k.cfg.Host.Wait(func() bool {
		return host.Closed(up) || ctx.Err() != nil || host.Closed(handed) || len(k.wake) > 0 ||
			len(k.lookRequests) > 0 || len(k.cfg.Hints) > 0
	})
	changed := false
	select {
	case <-up:
	case <-ctx.Done():
	case <-handed:
	case <-k.wake:
		changed = true
	case <-k.cfg.Hints:
		changed = true
	case <-k.lookRequests:
	}
	// The result must not depend on which of several signals is received.
	for _, c := range []<-chan struct{}{k.wake, k.cfg.Hints} {
		changed = takeToken(c) || changed
	}
	takeToken(k.lookRequests)
	switch {
	case host.Closed(up) || ctx.Err() != nil || host.Closed(handed):
		return 0, true
	case changed:
		return breath, false
	}
	return longBreath, false
}

// takeToken takes a value from a channel without waiting, and reports whether it got a value.
func takeToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
