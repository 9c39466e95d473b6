package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// probeTime is how often, and for how long, a member that could not be reached is asked whether it
// can be again.
const probeTime = time.Second

// unreachableMembers are the members that could not be reached when they were last asked, and when
// they are probed again.
type unreachableMembers struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// recordReach keeps whether a member could be reached. That the caller did not wait says nothing.
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

// isDue reports whether it is time to probe a member, and notes that it is done.
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

// forgetGone forgets members that have gone.
func (u *unreachableMembers) forgetGone(lives func(incarnation string) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.next, func(incarnation string, _ time.Time) bool { return !lives(incarnation) })
}
