package actors_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

// crossing is a store that answers a renewal only when its member has left, and the member's Leave
// returns only after that.
type crossing struct {
	persistence.Store
	armed             atomic.Bool
	asked, left, told chan struct{}
}

func (s *crossing) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	if s.armed.CompareAndSwap(true, false) {
		close(s.asked)
		<-s.left
		defer close(s.told)
	}
	return s.Store.Renew(ctx, incarnation, ttl)
}

func (s *crossing) Leave(ctx context.Context, incarnation string) error {
	err := s.Store.Leave(ctx, incarnation)
	close(s.left)
	<-s.told
	return err
}

func TestARenewalThatCrossesALeaveIsNotATakeover(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	s := &crossing{Store: store, asked: make(chan struct{}), left: make(chan struct{}), told: make(chan struct{})}
	var log bytes.Buffer
	th := start(t, actors.Config{Store: s, Host: actors.Host{Clock: eager{}},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	s.armed.Store(true)
	<-s.asked
	require.NoError(t, th.Stop(t.Context()))
	require.Empty(t, log.String())
	select {
	case <-th.Lost():
		require.Fail(t, "a member that left was not taken over")
	default:
	}
}

func TestAnOutageOfTheStoreIsLoggedOnceAndWhenItIsOver(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var renewals atomic.Int64
	var log bytes.Buffer
	th := start(t, actors.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Host: actors.Host{Clock: eager{}},
		Store: faulty.Wrap(store, faulty.Hooks{Call: func(_ context.Context, name string) error {
			if name == "Renew" {
				if n := renewals.Add(1); n > 1 && n < 6 {
					return faulty.ErrFailed
				}
			}
			return nil
		}})})
	require.Eventually(t, func() bool { return renewals.Load() > 8 }, patience, time.Millisecond)
	th.Kill()
	require.Equal(t, 1, strings.Count(log.String(), "renewing the lease failed"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "renewing the lease works again"), log.String())
}

// lagging is a store whose renewals, when it is armed, wait until they are released, or fail.
type lagging struct {
	persistence.Store
	err   error
	armed atomic.Bool
	asked chan struct{}
}

func (s *lagging) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	if !s.armed.Load() {
		return s.Store.Renew(ctx, incarnation, ttl)
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
	if s.err == nil {
		<-ctx.Done()
		return persistence.Pulse{}, ctx.Err()
	}
	return persistence.Pulse{}, s.err
}

// ahead is an eager clock that can be advanced.
type ahead struct {
	eager
	by atomic.Int64
}

func (a *ahead) Now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

// late returns a member whose lease has expired without a renewal.
func late(t *testing.T, store persistence.Store, err error) *harness {
	slow := &lagging{Store: store, err: err, asked: make(chan struct{}, 1)}
	clock := &ahead{}
	th := start(t, actors.Config{Store: slow, Host: actors.Host{Clock: clock}, Lease: 30 * time.Minute})
	slow.armed.Store(true)
	<-slow.asked
	clock.by.Store(int64(2 * time.Hour))
	return th
}

func TestALateRenewalKeepsTheLeaseOfALockedStore(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	th := late(t, store, nil)
	require.NoError(t, th.Ready())
	th.begin(t, th.publish(t, queueOf("x")), `{}`)
	require.Len(t, th.poll(t, patience, 1, "x"), 1)
}

func TestALateRenewalLosesTheLeaseOfASharedStore(t *testing.T) {
	th := late(t, model.New(model.Options{}), nil)
	require.Equal(t, flow.Busy, flow.ErrorKindOf(th.Ready()))
}

func TestAFailingStoreIsReportedUnavailableIfLockedOrNot(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	th := late(t, store, faulty.ErrFailed)
	require.Eventually(t, func() bool { return flow.ErrorKindOf(th.Ready()) == flow.Busy }, patience, time.Millisecond)
}

// A renewal that hangs, because its request is lost, is canceled early enough for another one.
func TestAHangingRenewalDoesNotLoseTheLease(t *testing.T) {
	left := make(chan time.Duration, 1)
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Call: func(ctx context.Context, name string) error {
		if deadline, ok := ctx.Deadline(); ok && name == "Renew" {
			select {
			case left <- time.Until(deadline):
			default:
			}
		}
		return nil
	}})
	start(t, actors.Config{Store: store, Host: actors.Host{Clock: eager{}}, Lease: time.Hour})
	require.LessOrEqual(t, <-left, 24*time.Minute, "the next one is sent twelve minutes later")
}

func TestLeaseHeldTimeRestartsAfterFailedRenewals(t *testing.T) {
	var failing atomic.Bool
	clock := &ahead{}
	store := faulty.Wrap(model.New(model.Options{}), faulty.Hooks{Call: func(_ context.Context, name string) error {
		if name == "Renew" && failing.Load() {
			return faulty.ErrFailed
		}
		return nil
	}})
	th := start(t, actors.Config{Store: store, Host: actors.Host{Clock: clock}, Lease: 30 * time.Minute})
	clock.by.Store(int64(10 * time.Minute))
	require.GreaterOrEqual(t, th.Held(), 10*time.Minute)
	failing.Store(true)
	require.Eventually(t, func() bool { return th.Held() == 0 }, patience, time.Millisecond)
	failing.Store(false)
	require.Eventually(t, func() bool { return th.Held() > 0 && th.Held() < 10*time.Minute }, patience, time.Millisecond)
	clock.by.Store(int64(30 * time.Minute))
	require.Eventually(t, func() bool { return th.Held() > 0 && th.Held() < 10*time.Minute },
		patience, time.Millisecond, "a renewal came late")
}

// expectant is a clock that can be advanced, and reports when a caller starts to wait for the
// lease.
type expectant struct {
	ahead
	begun chan struct{}
}

func (e *expectant) AfterFunc(d time.Duration, f func()) func() bool {
	if d == 50*time.Millisecond {
		select {
		case e.begun <- struct{}{}:
		default:
		}
	}
	return e.ahead.AfterFunc(d, f)
}

// Other members may have taken over its task, and start the job, too.
func TestAQueuedJobDoesNotStartWithoutTheLease(t *testing.T) {
	slow := &lagging{Store: model.New(model.Options{}), err: faulty.ErrFailed, asked: make(chan struct{}, 1)}
	clock := &expectant{begun: make(chan struct{}, 1)}
	begun, finish := make(chan string, 2), make(chan struct{}, 2)
	cfg := withFunc(func(_ context.Context, j flow.Job) flow.Report {
		begun <- j.Task
		<-finish
		return flow.Report{}
	})
	cfg.Store, cfg.Host.Clock, cfg.Lease = slow, clock, 30*time.Minute
	cfg.Concurrency = map[flow.ExecType]int{flow.ExecFunc: 1}
	th := start(t, cfg)
	version := th.publish(t, oneJob)
	ids := []string{th.begin(t, version, `{}`), th.begin(t, version, `{}`)}
	first := <-begun
	slow.armed.Store(true)
	<-slow.asked
	clock.by.Store(int64(2 * time.Hour))
	finish <- struct{}{}
	<-clock.begun
	require.Empty(t, begun, "the second one is held")
	slow.armed.Store(false)
	require.NotEqual(t, first, <-begun)
	finish <- struct{}{}
	for _, id := range ids {
		require.Equal(t, flow.TaskCompleted, th.ended(t, id).State.Status)
	}
}
