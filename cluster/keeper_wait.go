package cluster

import (
	"context"
	"time"

	"github.com/troupe-engine/troupe/internal/host"
)

const (
	// breath is between two looks, however many hints there are.
	breath = 10 * time.Millisecond
	// longBreath is between two looks for those who cannot reach an owner: they ask again and
	// again.
	longBreath = 100 * time.Millisecond
)

// waitForWork ends when it is time to look again: after a while, when somebody asks for it, though
// not more often than he may, or when a handover is over.
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

// waitForSignal lets a while pass, or less when ctx ends or a handover is over, or when somebody
// asks to look. Then it tells how long after the last look he may.
func (k *Keeper) waitForSignal(ctx context.Context, d time.Duration) (mayAfter time.Duration, over bool) {
	up, stop := k.cfg.Host.Timer(d)
	defer stop()
	var handed chan struct{}
	if k.handing != nil {
		handed = k.handing.done
	}
	k.cfg.Host.Wait(func() bool {
		return host.Closed(up) || ctx.Err() != nil || host.Closed(handed) || len(k.wake) > 0 || len(k.lookRequests) > 0 || len(k.cfg.Hints) > 0
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
	// Nothing depends on which it was of those that there were.
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

// takeToken takes what waits in a channel, and says whether there was something.
func takeToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
