package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// quick is a clock that runs a hundred times as fast.
type quick struct{ began time.Time }

func (q quick) Now() time.Time { return q.began.Add(100 * time.Since(q.began)) }

func (q quick) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d/100, f).Stop }

// lazy is a clock on which timers of more than two seconds take an hour. So periodic checks find
// nothing for which a notice is missing.
type lazy struct{}

func (lazy) Now() time.Time { return time.Now() }

func (lazy) AfterFunc(d time.Duration, f func()) func() bool {
	if d > 2*time.Second {
		d = time.Hour
	}
	return time.AfterFunc(d, f).Stop
}

// noting is a lazy clock that reports when a timer of the given duration starts.
type noting struct {
	lazy
	wait  time.Duration
	begun chan struct{}
}

func newNoting(wait time.Duration) noting { return noting{wait: wait, begun: make(chan struct{}, 1)} }

func (n noting) AfterFunc(d time.Duration, f func()) func() bool {
	if d == n.wait {
		select {
		case n.begun <- struct{}{}:
		default:
		}
	}
	return n.lazy.AfterFunc(d, f)
}

// catching is a lazy clock whose timers of the given duration fire when the test decides.
type catching struct {
	lazy
	wait   time.Duration
	caught chan func()
}

func newCatching(wait time.Duration) catching {
	return catching{wait: wait, caught: make(chan func(), 1000)}
}

func (c catching) AfterFunc(d time.Duration, f func()) func() bool {
	if d != c.wait {
		return c.lazy.AfterFunc(d, f)
	}
	c.caught <- f
	return func() bool { return true }
}

// next returns the function of the next timer.
func (c catching) next(t *testing.T) func() {
	t.Helper()
	select {
	case f := <-c.caught:
		return f
	case <-time.After(patience):
		require.FailNow(t, "nobody waits for that long")
		return nil
	}
}

// eager is a clock on which timers of minutes fire in a moment. So a lease of an hour is renewed
// often.
type eager struct{}

func (eager) Now() time.Time { return time.Now() }

func (eager) AfterFunc(d time.Duration, f func()) func() bool {
	if d > time.Minute && d < time.Hour {
		d = 10 * time.Millisecond
	}
	return time.AfterFunc(d, f).Stop
}

// leaping is a store whose clock can be advanced. There, no member waits for a lease to expire.
type leaping struct {
	persistence.Store
	ahead atomic.Int64
}

func newLeaping() *leaping {
	s := &leaping{}
	s.Store = model.New(model.Options{Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }})
	return s
}

func (s *leaping) Fence(ctx context.Context, incarnation string) (bool, error) {
	c, err := s.Cluster(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range c.Members {
		if m.Incarnation == incarnation {
			s.leap(time.Duration(max(0, m.Until-c.Now)) * time.Millisecond)
		}
	}
	return s.Store.Fence(ctx, incarnation)
}

func (s *leaping) leap(d time.Duration) { s.ahead.Add(int64(d)) }
