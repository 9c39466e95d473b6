package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// probeTime is the interval between probes of an unreachable member, and the timeout of each probe.
const probeTime = time.Second

// unreachableMembers holds the members that the last request did not reach, with the times of their
// next probes.
type unreachableMembers struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// recordReach records whether a member was reached. A canceled request is ignored, because it shows
// nothing.
func (u *unreachableMembers) recordReach(incarnation string, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.next[incarnation]; !errors.Is(err, ErrAway) {
		delete(u.next, incarnation)
	} else if !known {
		u.next[incarnation] = time.Time{}
	}
}

func (u *unreachableMembers) has(incarnation string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, is := u.next[incarnation]
	return is
}

// isDue reports whether it is time to probe a member, and records the probe.
func (u *unreachableMembers) isDue(incarnation string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	next, is := u.next[incarnation]
	if !is || now.Before(next) {
		return false
	}
	u.next[incarnation] = now.Add(probeTime)
	return true
}

// forgetGone drops members that are gone.
func (u *unreachableMembers) forgetGone(lives func(incarnation string) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.next, func(incarnation string, _ time.Time) bool { return !lives(incarnation) })
}
