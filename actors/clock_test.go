package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/model"
)

// quick is a clock by which everything takes a hundredth of its time.
type quick struct{ began time.Time }

func (q quick) Now() time.Time { return q.began.Add(100 * time.Since(q.began)) }

func (q quick) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d/100, f).Stop }

// lazy is a clock by which what is to happen in some seconds happens in an hour: nobody finds by
// looking every now and then what he was not told.
type lazy struct{}

func (lazy) Now() time.Time { return time.Now() }

func (lazy) AfterFunc(d time.Duration, f func()) func() bool {
	if d > 2*time.Second {
		d = time.Hour
	}
	return time.AfterFunc(d, f).Stop
}

// noting is a lazy clock that tells when somebody begins to wait for just so long.
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

// catching is a lazy clock by which what is to happen after just so long happens when the test says
// so.
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

// next is what is to happen next.
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

// eager is a clock by which what is to happen in minutes happens in a moment: a lease of an hour,
// which nobody could miss, is renewed often.
type eager struct{}

func (eager) Now() time.Time { return time.Now() }

func (eager) AfterFunc(d time.Duration, f func()) func() bool {
	if d > time.Minute && d < time.Hour {
		d = 10 * time.Millisecond
	}
	return time.AfterFunc(d, f).Stop
}

// leaping is a store whose clock can be put forward. Nobody waits there for a lease to run out.
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
