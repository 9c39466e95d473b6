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
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/faulty"
)

// crossing is a store that answers a renewal only when its member has left, and lets it go only then.
type crossing struct {
	persistence.Store
	armed             atomic.Bool
	asked, left, told chan struct{}
}

func (s *crossing) Renew(ctx context.Context, incarnation string, ttl time.Duration) (time.Time, error) {
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

func TestARenewalThatCrossesTheMembersLeaveIsNoTakeover(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	s := &crossing{Store: store, asked: make(chan struct{}), left: make(chan struct{}), told: make(chan struct{})}
	var log bytes.Buffer
	th := start(t, actors.Config{Store: s, Host: actors.Host{Clock: eager{}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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
	require.Equal(t, 1, strings.Count(log.String(), "the lease could not be renewed"), log.String())
	require.Equal(t, 1, strings.Count(log.String(), "the lease is renewed again"), log.String())
}
