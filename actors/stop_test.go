package actors_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/model"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAJobBeyondTheGracePeriodDoesNotKeepOtherTasksFromResting(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	cfg := withFunc(func(ctx context.Context, _ flow.Job) flow.Report {
		<-ctx.Done()
		return flow.Report{Error: "stopped"}
	})
	cfg.Store = store
	th := start(t, cfg)
	busy := th.begin(t, th.publish(t, `{"start":"a","nodes":{"a":{"exec_type":"local_func","func":"f"}}}`), `{}`)
	waiting := th.begin(t, th.publish(t, untilApproved), `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, th.Stop(ctx))
	unfinished, err := store.Unfinished(t.Context(), nil, "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{busy}, unfinished, "task %s waits in the store", waiting)
}

// unreachable is a store that does not answer a member that leaves.
type unreachable struct{ persistence.Store }

func (unreachable) Leave(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestLeavingAnUnresponsiveStoreEnds(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	th := start(t, actors.Config{Store: unreachable{store}, Lease: 100 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- th.Stop(context.Background()) }()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(patience):
		require.Fail(t, "the member never ends")
	}
}

// telling is a clock that reports timers of a minute or more.
type telling struct{ long func() }

func (telling) Now() time.Time { return time.Now() }

func (c telling) AfterFunc(d time.Duration, f func()) func() bool {
	if d >= time.Minute {
		defer c.long()
	}
	return time.AfterFunc(d, f).Stop
}

// hoarding is a clock that keeps the functions of stopped timers of ten seconds or more, as the
// real one may do until their time.
type hoarding struct {
	telling
	kept *[]func()
	mu   *sync.Mutex
}

func (c hoarding) AfterFunc(d time.Duration, f func()) func() bool {
	if d >= 10*time.Second {
		c.mu.Lock()
		*c.kept = append(*c.kept, f)
		c.mu.Unlock()
	}
	return c.telling.AfterFunc(d, f)
}

func TestAnEndedMemberLeavesMemory(t *testing.T) {
	for name, end := range map[string]func(*actors.Member){
		"in order": func(m *actors.Member) { require.NoError(t, m.Stop(t.Context())) },
		"killed":   func(m *actors.Member) { m.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			kept := []func(){}
			defer runtime.KeepAlive(&kept)
			ended := func() weak.Pointer[actors.Member] {
				waits := make(chan struct{})
				m, err := actors.Start(t.Context(), actors.Config{Store: model.New(model.Options{}), Logger: slog.New(slog.DiscardHandler),
					Host: actors.Host{Clock: hoarding{telling{sync.OnceFunc(func() { close(waits) })}, &kept, &sync.Mutex{}}}})
				require.NoError(t, err)
				<-waits // it would fire long after the end
				end(m)
				return weak.Make(m)
			}()
			require.Eventually(t, func() bool {
				runtime.GC()
				return ended.Value() == nil
			}, patience, 50*time.Millisecond)
		})
	}
}
