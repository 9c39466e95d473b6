package actors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

func TestACarrierThatIgnoresItsContextDoesNotBlockShutdown(t *testing.T) {
	begun, release, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cfg := withFunc(func(context.Context, flow.Job) flow.Report {
		defer close(returned)
		close(begun)
		<-release
		return flow.Report{}
	})
	var log bytes.Buffer
	cfg.Lease, cfg.Host.Clock, cfg.Logger = time.Hour, quick{time.Now()}, slog.New(slog.NewTextHandler(&log, nil))
	th := start(t, cfg)
	// its clock is quick, so a store that is slow for a moment counts as unavailable
	id := th.insist(t, engine.NewTask{VersionID: th.publish(t, oneJob), Params: json.RawMessage(`{}`), Key: "k"})
	<-begun
	ended := make(chan struct{})
	go func() {
		th.Kill()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		require.Fail(t, "the member never ends")
	}
	require.Contains(t, log.String(), flow.JobID(id, flow.Address{Node: "a", Visit: 1, Attempt: 1}))
	close(release)
	<-returned
}

func TestAnUnansweredStoreCallIsRetried(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var commits, loads atomic.Int64
	th := start(t, actors.Config{Lease: time.Hour, IdleAfter: time.Second, Host: actors.Host{Clock: quick{time.Now()}},
		Store: faulty.Wrap(store, faulty.Hooks{
			Commit: func(string, []persistence.Commit) faulty.Fault {
				if commits.Add(1) == 1 {
					return faulty.Hold(nil)
				}
				return faulty.Fault{}
			},
			Call: func(ctx context.Context, name string) error {
				if name == "Load" && loads.Add(1) == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
		})})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id := th.insist(t, engine.NewTask{VersionID: th.publish(t, untilApproved), Key: "k"})
	th.eventuallyEmpty(t)
	// its clock is quick, so a store that is slow for a moment counts as unavailable
	require.Eventually(t, func() bool {
		err := th.Do(ctx, id, flow.Cancel{}, "")
		return err == nil || !assert.ErrorIs(t, err, engine.ErrUnavailable)
	}, patience, time.Millisecond)
	require.GreaterOrEqual(t, loads.Load(), int64(2))
}

func TestCanceledCallsOfAStoppingMemberAreNotLogged(t *testing.T) {
	asked := make(chan string, 10)
	store := faulty.Wrap(newLeaping(), faulty.Hooks{Call: func(ctx context.Context, name string) error {
		switch name {
		case "Join", "Renew", "Cluster", "Claim":
			return nil
		}
		asked <- name
		<-ctx.Done()
		return ctx.Err()
	}})
	var log bytes.Buffer
	th := start(t, actors.Config{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ElementsMatch(t, []string{"Unfinished", "DueWakes", "OpenKeys", "NextExternals"}, []string{<-asked, <-asked, <-asked, <-asked})
	th.Kill()
	require.Empty(t, log.String())
}
