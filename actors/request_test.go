package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/faulty"
	"github.com/troupe-engine/troupe/persistence"
)

// events counts the events of a type in a task's journal.
func (th *harness) events(t *testing.T, task string, kind flow.EventType) (n int) {
	t.Helper()
	rows, err := th.store.Rows(t.Context(), task, 0, persistence.Part{Rows: 10_000, Bytes: 1 << 30})
	require.NoError(t, err)
	for _, row := range rows {
		events, err := flow.DecodeEvents(row.Events)
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == kind {
				n++
			}
		}
	}
	return n
}

func TestManyRequestsWithLostAnswersTakeEffectOnce(t *testing.T) {
	const n = 300
	store := openStore(t, filepath.Join(t.TempDir(), "troupe.db"))
	t.Cleanup(func() { store.Close() })
	var armed atomic.Bool
	var asked atomic.Int64
	release, held := make(chan struct{}), make(chan struct{}, 1)
	count := func(kind string, message any) {
		if armed.Load() && kind == "task" && fmt.Sprintf("%T", message) == "*actors.taskCommand" {
			asked.Add(1)
		}
	}
	th := start(t, actors.Config{Host: actors.Host{Probe: count},
		Store: faulty.Wrap(store, faulty.Hooks{Commit: func(string, []persistence.Commit) faulty.Fault {
			select {
			case <-release:
				return faulty.Fault{After: func(context.Context) error {
					if armed.Swap(false) {
						return faulty.ErrLost
					}
					return nil
				}}
			default:
			}
			if !armed.Load() {
				return faulty.Fault{}
			}
			held <- struct{}{}
			return faulty.Hold(release)
		}})})
	id := th.begin(t, th.publish(t, untilApproved), `{}`)
	armed.Store(true)
	errs := make(chan error, n+1)
	ask := func(i int) {
		errs <- th.Do(t.Context(), id, flow.Signal{Key: fmt.Sprint("k", i), Value: json.RawMessage(`1`)}, "")
	}
	go ask(0)
	<-held
	for i := range n {
		go ask(i + 1)
	}
	require.Eventually(t, func() bool { return asked.Load() == n+1 }, patience, time.Millisecond)
	close(release)
	for range n + 1 {
		require.NoError(t, <-errs)
	}
	require.False(t, armed.Load(), "an answer was lost")
	require.Equal(t, n+1, th.events(t, id, flow.SignalReceived))
}

func TestWorkerReportsDoNotEvictUserRequests(t *testing.T) {
	th := start(t, actors.Config{})
	id := th.begin(t, th.publish(t, queueOverAList), `{"list":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5]}`)
	signal := func() {
		require.NoError(t, th.Do(t.Context(), id, flow.Signal{Key: "k", Value: json.RawMessage(`1`)}, "mine"))
	}
	signal()
	for range 34 {
		for _, got := range th.poll(t, patience, 1, "x") {
			require.NoError(t, th.Complete(t.Context(), got.Job.ID(), flow.Report{Output: json.RawMessage(`1`), Token: got.Token}))
		}
	}
	signal()
	require.Equal(t, 1, th.events(t, id, flow.SignalReceived))
}
